"""`gate --dirty` judges the working tree as it is, and leaves it as it was."""

import json

import pytest
from command_line import inside
from gate_commits import CODE, SLOWER, built_by, commit_all
from gate_projects import Sample

from convbench.asv.project import load
from convbench.gate import resolve

CELL = ("--bench", r"Filled\.time_filled\(10, 'a'", "--budget", "0.3")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return commit_all(Sample(tmp_path_factory.mktemp("dirty") / "project"))


@pytest.fixture
def dirty(project, python, tmp_path):
    """`gate --dirty`: what it printed and its JSON."""

    def run(*arguments):
        file = tmp_path / "report.json"
        with built_by(python):
            done = inside(project.folder, "gate", "--dirty", *arguments, "--json", str(file))
        return done, json.loads(file.read_text()) if file.exists() else None

    yield run
    project.git("checkout", "--quiet", "--force", "main")
    project.git("clean", "--quiet", "--force", "-d")


def test_changed_staged_and_new_files_are_measured_and_nothing_is_touched(project, dirty):
    project.write({"sample/__init__.py": "from sample.new import *\n", "sample/new.py": SLOWER, "results/x.json": "{}"})
    project.git("add", "sample/__init__.py")
    project.write({"sample/__init__.py": "from sample.new import *\nfrom sample.new import spin\n"})
    before = project.git("status", "--porcelain"), project.git("rev-parse", "HEAD"), project.git("for-each-ref")
    done, report = dirty(*CELL)
    assert (project.git("status", "--porcelain"), project.git("rev-parse", "HEAD"), project.git("for-each-ref")) == before
    assert [cell["verdict"] for cell in report["cells"]] == ["regressed"]
    assert done.returncode == 1
    assert (report["compared"], report["base"]) == ("uncommitted changes", before[1])
    assert f"head {report['head'][:10]}, uncommitted changes" in done.stdout
    files = project.git("ls-tree", "-r", "--name-only", report["head"]).split()
    assert "sample/new.py" in files
    assert "results/x.json" not in files
    assert "new import spin" in project.git("show", f"{report['head']}:sample/__init__.py")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "there are no uncommitted changes"),
        ({"results/x.json": "{}", "html/index.html": ""}, "there are no uncommitted changes"),
        ({"sample/__init__.py": CODE}, "there are no uncommitted changes"),
    ],
)
def test_nothing_uncommitted(project, dirty, files, said):
    project.write(files)
    done, report = dirty()
    assert (done.returncode, report) == (2, None)
    assert said in done.stderr


@pytest.mark.parametrize("more", [("HEAD~1", "HEAD"), ("--self-test",), ("--installed",)])
def test_what_excludes_it(dirty, more):
    done, report = dirty(*more)
    assert (done.returncode, report) == (2, None)
    assert "--dirty" in done.stderr


def test_the_same_tree_is_the_same_commit(project, dirty):
    project.write({"sample/new.py": ""})
    first, second = (dirty("--bench", "nothing has this name")[1]["head"] for _ in range(2))
    assert first == second


def test_changes_in_other_repositories_are_refused(tmp_path):
    """A commit would have their commit alone."""
    made, module = (Sample(tmp_path / name) for name in ("project", "module"))
    module.commit({"code.py": ""})
    made.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(module.folder), "library")
    made.commit({"sample/__init__.py": ""})
    found = load(made.folder / "asv.conf.json")

    def refused(said):
        with pytest.raises(resolve.Usage, match=said):
            resolve.commits(found, None, None, dirty=True)

    for name in ("code.py", "new.py"):
        made.write({f"library/{name}": "changed = 1"})
        refused("the submodule library has changes inside, .*: commit and push them there")
        made.git("-C", "library", "stash", "--quiet", "--include-untracked")
    made.write({"results/x.json": "{}", ".gitignore": ".convbench\n", "sample/__init__.py": "changed = 1"})
    Sample(made.folder / "results" / "kept").commit({"x": ""})  # left out as all results are
    assert resolve.commits(found, None, None, dirty=True)["base"] == found.commit()
    Sample(made.folder / "nested").commit({"x": ""})
    refused("nested is a repository of its own and no submodule, .*: have git ignore it")
