"""The branch of results: what the weekly job copies from an artifact, and what it restores."""

import os
import re
import shutil
import textwrap

import pytest
from workflows import ROOT, command, commit, git, shell, steps, write


@pytest.fixture
def remote(tmp_path):
    """A repository to push to, and a week's results."""
    folder = tmp_path / "remote" / "octo-org" / "convbench"
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--bare", "--initial-branch", "main")
    work = tmp_path / "work"
    git(tmp_path, "clone", "--quiet", folder, work)
    git(work, "switch", "--quiet", "--create", "main")
    commit(work, "README")
    git(work, "push", "--quiet", "origin", "main")
    command(tmp_path / "bin/gh", "true")
    return folder


def keep(folder, remote, fill=lambda new: None, **machines):
    """Run the job that pushes, in a fresh folder. machines: content of a machine's file; fill: adds more to the artifact."""
    folder.mkdir()
    for machine, content in machines.items():
        write(folder / "new" / machine / "machine.json", content)
    fill(folder / "new")
    there = {"GITHUB_SERVER_URL": f"file://{remote.parents[1]}", "GITHUB_REPOSITORY": "octo-org/convbench"}
    path = f"{remote.parents[2] / 'bin'}:{os.environ['PATH']}"
    return shell("weekly.keep", "Commit to the branch of results", folder, **there, PATH=path, GITHUB_SHA="5" * 40)


def kept(remote):
    """The files of the branch `results`: {path: mode}."""
    lines = git(remote, "ls-tree", "-r", "-z", "results").split("\0")
    return {path: about.split()[0] for about, _, path in (line.partition("\t") for line in lines if line)}


def test_results_go_to_a_branch_without_a_history_and_main_stays(remote, tmp_path):
    main = git(remote, "rev-parse", "main")
    assert keep(tmp_path / "first", remote, epyc="1").returncode == 0
    assert git(remote, "rev-list", "--count", "results") == "1"
    done = keep(tmp_path / "second", remote, epyc="2", xeon="3")
    assert done.returncode == 0, done.stderr
    assert git(remote, "log", "--format=%s", "results").splitlines() == ["Results of 55555555"] * 2
    assert list(kept(remote)) == ["epyc/machine.json", "xeon/machine.json"]
    assert git(remote, "show", "results:epyc/machine.json") == "2"
    assert "nothing new" in keep(tmp_path / "third", remote, epyc="2").stdout
    assert git(remote, "for-each-ref", "--format=%(refname:short)").splitlines() == ["main", "results"]
    assert git(remote, "rev-parse", "main") == main


def test_where_the_remote_cannot_be_asked_no_branch_is_begun(remote, tmp_path):
    shutil.rmtree(remote)
    assert keep(tmp_path / "first", remote, epyc="1").returncode not in (0, 2)


def test_the_job_that_pushes_ends_its_file_with_its_script():
    """It can be run by itself: the whole shell is there, and nothing of it comes from the workflow's environment."""
    text = (ROOT / ".github/workflows/weekly.yml").read_text(encoding="utf-8")
    (step,) = [step for step in steps("weekly.keep") if "run" in step]
    assert textwrap.dedent(text[text.index("          gh auth setup-git") :]) == step["run"]
    assert step["env"].keys() == {"GH_TOKEN"}


COMMIT = "12345678"


def test_every_kind_of_result_is_kept(remote, tmp_path):
    names = {
        *(path.removeprefix("results/") for path in git(ROOT, "ls-files", "results").splitlines()),
        "epyc-2cores/unbuilt.jsonl",
        f"epyc-2cores/{COMMIT}-env-0f343b0931126a20f133d67c2b018a3b.json",  # as asv shortens a long name
        f"epyc-2cores/{COMMIT}-virtualenv-py3.13-numpy_=2.0-OMP_NUM_THREADS2.cells.jsonl.gz",
    }
    done = keep(tmp_path / "first", remote, lambda new: [write(new / path, path) for path in names])
    assert done.returncode == 0, done.stderr
    assert set(kept(remote)) == names
    assert "passed over" not in done.stdout


GOOD = f"epyc-2cores/{COMMIT}-virtualenv-py3.11.json"
STRANGE = [
    ".git/config",
    ".git/hooks/pre-commit",
    ".gitattributes",
    ".gitmodules",
    ".github/workflows/pages.yml",
    "Makefile",
    "index.html",
    "machine.json",
    "benchmarks.json.sh",
    "nested/benchmarks.json",
    "epyc-2cores/.gitattributes",
    "epyc-2cores/.git/config",
    "epyc-2cores/12345678.json",
    "epyc-2cores/1234567-virtualenv-py3.11.json",
    "epyc-2cores/ABCDEF01-virtualenv-py3.11.json",
    "epyc-2cores/12345678-virtualenv-py3.11.json.new",
    "epyc-2cores/12345678-virtualenv py3.11.json",
    "epyc-2cores/12345678-virtualenv-py3.11\n.json",
    "epyc-2cores/12345678-\x1b[2Jpy3.11.json",
    "epyc-2cores/12345678-py3.11.json\nepyc-2cores/machine.json",
    "epyc-2cores/12345678-é.json",
    "epyc-2cores/speed/12345678.json",
    "epyc-2cores/speed/12345678.jsonl",
    "epyc-2cores/speed/deep/12345678.jsonl.gz",
    "epyc-2cores/other/12345678.jsonl.gz",
    "epyc-2cores/deep/epyc-2cores/machine.json",
    "EPYC/machine.json",
    "épyc/machine.json",
    "-epyc/machine.json",
    "epyc 2/machine.json",
    "$(id)/machine.json",
    "\n::set-env name=PATH::x/machine.json",
    "::stop-commands::x",
]


def test_what_is_no_result_is_passed_over_and_counted(remote, tmp_path):
    def fill(new):
        for path in [GOOD, *STRANGE]:
            write(new / path)
        (new / GOOD).chmod(0o755)
        (new / "epyc-2cores/machine.json").symlink_to("/etc/passwd")
        (new / "linked").symlink_to("epyc-2cores")
        os.mkfifo(new / "epyc-2cores/unbuilt.jsonl")
        with (new / f"epyc-2cores/{COMMIT}-large.json").open("w") as file:
            file.truncate(100 << 20)

    done = keep(tmp_path / "first", remote, fill)
    assert done.returncode == 0, done.stderr
    assert kept(remote) == {GOOD: "100644"}
    assert f"{len(STRANGE) + 4} files of the artifact are not results and were passed over" in done.stdout
    for word in ("::", "\x1b", "epyc"):
        assert word not in done.stdout


def test_an_artifact_is_no_repository(remote, tmp_path):
    """Its .git/config would name a program that git starts, with the token in its environment."""

    def fill(new):
        config = f'[core]\n\tfsmonitor = "touch {tmp_path}/started; false"\n[remote "origin"]\n\turl = {remote}\n'
        write(new / ".git/config", config)
        write(new / ".gitattributes", "* filter=x\n")

    assert keep(tmp_path / "first", remote, fill, epyc="1").returncode == 0
    assert not (tmp_path / "started").exists()
    assert list(kept(remote)) == ["epyc/machine.json"]


def test_an_artifact_that_is_a_link_holds_nothing(remote, tmp_path):
    write(tmp_path / "elsewhere/epyc/machine.json")
    done = keep(tmp_path / "first", remote, lambda new: new.symlink_to(tmp_path / "elsewhere"))
    assert done.returncode == 0, done.stderr
    assert "nothing new" in done.stdout
    assert git(remote, "for-each-ref", "--format=%(refname:short)") == "main"


@pytest.fixture
def branch(remote, tmp_path):
    """A branch of results that an earlier week's artifact could write to: it has links and more than results."""
    work = tmp_path / "poisoned"
    git(tmp_path, "clone", "--quiet", remote, work)
    git(work, "switch", "--quiet", "--orphan", "results")
    write(work / "old/machine.json", "branch")
    write(work / "both/machine.json", "branch")
    for path in STRANGE:
        if ".git/" not in path and not path.endswith(".gitmodules"):
            write(work / path)
    (tmp_path / "outside").write_text("untouched")
    (work / "epyc").mkdir()
    (work / "epyc/machine.json").symlink_to(tmp_path / "outside")
    (work / "linked").symlink_to(tmp_path)
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "poisoned")
    git(work, "push", "--quiet", "origin", "results")
    return work


@pytest.mark.parametrize("machine", ["epyc", "linked"])
def test_links_on_the_branch_lead_nowhere(branch, remote, tmp_path, machine):
    """A link to a file, and one to a folder: what is kept replaces them, and is not written to where they point."""
    done = keep(tmp_path / "first", remote, **{machine: "new"})
    assert (tmp_path / "outside").read_text() == "untouched"
    assert not (tmp_path / "machine.json").exists()
    assert done.returncode == 0, done.stderr
    assert kept(remote)[f"{machine}/machine.json"] == kept(remote)["old/machine.json"] == "100644"
    assert git(remote, "show", f"results:{machine}/machine.json") == "new"


def test_results_of_earlier_weeks_do_not_replace_those_of_main(branch, remote, tmp_path):
    work = tmp_path / "work"
    git(work, "fetch", "--quiet", "origin")
    write(work / "results/both/machine.json", "main")
    done = shell("weekly.measure", "Add the results of earlier weeks", work)
    assert done.returncode == 0, done.stderr
    found = {
        str(path.relative_to(work / "results")): path.read_text() for path in work.glob("results/**/*") if path.is_file()
    }
    assert found == {"old/machine.json": "branch", "both/machine.json": "main"}
    assert not any(path.is_symlink() for path in work.glob("results/**/*"))


def test_without_a_branch_of_results_there_is_nothing_to_add(remote, tmp_path):
    assert shell("weekly.measure", "Add the results of earlier weeks", tmp_path / "work").returncode == 0


def test_both_jobs_know_the_same_names_of_results():
    scripts = [
        step["run"] for job in ("weekly.measure", "weekly.keep") for step in steps(job) if "machine='" in step.get("run", "")
    ]
    (first,), (second,) = (re.findall(r"^ *machine=(?:.*\n)*?.*results=.*$", script, re.MULTILINE) for script in scripts)
    assert textwrap.dedent(first) == textwrap.dedent(second)
