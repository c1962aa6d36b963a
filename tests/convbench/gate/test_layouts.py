"""Locations of a configuration, its suite and its repository, and the commit that a head is compared with."""

import json
import subprocess

import pytest
from command_line import inside, sentence
from gate_commits import built_by, interpreter
from gate_projects import FAST, PACKAGE, SLOW, SUITE, Sample
from repositories import commit, git

from convbench.asv import project
from convbench.gate import resolve
from convbench.stored import history

BUDGET = ("--budget", "0.3")


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return interpreter(tmp_path_factory.mktemp("python"))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class Laid:
    """A repository with suite and configuration in a folder, and the commit before the package became slower."""

    def __init__(self, top, folder=".", **settings):
        self.top, self.folder = top, top / folder
        top.mkdir(parents=True)
        git(top, "init", "--quiet")
        conf = {"version": 1, "project": "sample", "repo": "." if folder == "." else "..", "branches": ["main"], **settings}
        conf = {key: value for key, value in conf.items() if value != "absent"}
        write(self.folder / "asv.conf.json", f"// with a comment\n{json.dumps(conf)}")
        write(top / ".gitignore", ".convbench\n.asv\n__pycache__\n")
        write(self.folder / conf.get("benchmark_dir", "benchmarks") / "suite.py", SUITE)
        write(top / "sample" / "__init__.py", PACKAGE.format(FAST))
        self.base = commit(top, "fast")
        git(top, "checkout", "--quiet", "-b", "topic")
        write(top / "sample" / "__init__.py", PACKAGE.format(SLOW))
        self.head = commit(top, "slow")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "settings"),
    [
        (".", {}),
        ("perf", {}),
        ("perf", {"benchmark_dir": "suites/speed"}),
        (".", {"branches": "absent"}),
        (".", {"branches": [None]}),
        ("perf", {"launch_method": "spawn"}),
    ],
    ids=str,
)
def test_a_slower_head_is_found_in_every_layout(tmp_path, python, folder, settings):
    laid = Laid(tmp_path / "top", folder, **settings)
    with built_by(python):
        done = inside(laid.folder, "gate", *BUDGET)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "regressed  suite.time_work" in done.stdout


@pytest.mark.slow
def test_a_suite_in_a_repository_of_its_own(tmp_path, python):
    package, suite = Laid(tmp_path / "package"), tmp_path / "suite"
    git(tmp_path, "init", "--quiet", str(suite))
    write(
        suite / "asv.conf.json", json.dumps({"version": 1, "project": "sample", "repo": "../package", "branches": ["main"]})
    )
    write(suite / "benchmarks" / "other.py", SUITE)
    commit(suite, "a suite")
    with built_by(python):
        done = inside(suite, "gate", *BUDGET)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "regressed  other.time_work" in done.stdout
    write(package.top / "sample" / "__init__.py", PACKAGE.format(FAST))
    assert "sample/__init__.py has uncommitted changes" in sentence(inside(suite, "gate"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ignored", "a repository"])
def test_a_suite_that_the_head_does_not_have(tmp_path, python, kind):
    laid = Laid(tmp_path / "top", "perf")
    git(laid.top, "rm", "--quiet", "-r", "--cached", "perf")
    write(laid.top / ".gitignore", ".convbench\n.asv\nperf\n")
    commit(laid.top, "without a suite")
    if kind == "a repository":
        git(laid.folder, "init", "--quiet")
        commit(laid.folder, "a suite")
    with built_by(python):
        done = inside(laid.folder, "gate", laid.base, "HEAD", *BUDGET)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "regressed  suite.time_work" in done.stdout
    assert "the head has no benchmarks: the one beside asv.conf.json measures both sides\n" in done.stdout


@pytest.mark.proof
def test_a_package_in_a_folder_of_the_repository(tmp_path, package_index):
    made = Sample(tmp_path / "project")
    conf = json.loads((made.folder / "asv.conf.json").read_text())
    (made.folder / "python").mkdir()
    for name in ("backend.py", "pyproject.toml"):
        (made.folder / name).rename(made.folder / "python" / name)
    package = "python/sample/__init__.py"
    files = {"asv.conf.json": json.dumps(conf | {"repo_subdir": "python"}), "benchmarks/suite.py": SUITE}
    base = made.commit({**files, package: PACKAGE.format(FAST)})
    head = made.commit({package: PACKAGE.format(SLOW)})
    done = inside(made.folder, "gate", base, head, *BUDGET)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "regressed  suite.time_work" in done.stdout


def test_a_repository_elsewhere_is_cloned_and_asked(tmp_path):
    there = Laid(tmp_path / "there")
    git(there.top, "checkout", "--quiet", "main")
    url = f"file://{there.top}"
    write(
        tmp_path / "here" / "asv.conf.json",
        json.dumps({"version": 1, "project": "mirror", "repo": url, "branches": ["main"]}),
    )
    here = project.load(tmp_path / "here" / "asv.conf.json")
    assert here.is_mirror
    assert resolve.commits(here, None, "topic") == {"base": there.base, "head": there.head}
    assert here.uncommitted() is None
    write(there.top / "new", "")
    newest = commit(there.top, "new")
    here.pull()
    assert here.commit("main") == newest


def test_a_bare_repository_is_asked_as_it_is(tmp_path):
    there = Laid(tmp_path / "there")
    git(tmp_path, "clone", "--quiet", "--bare", str(there.top), "project.git")
    write(
        tmp_path / "here" / "asv.conf.json",
        json.dumps({"version": 1, "project": "sample", "repo": "../project.git", "branches": ["main"]}),
    )
    here = project.load(tmp_path / "here" / "asv.conf.json")
    assert resolve.commits(here, None, "topic") == {"base": there.base, "head": there.head}
    assert resolve.newest(here, None) == there.head
    assert [one.subject for one in history.commits(here)] == ["fast", "slow"]
    with pytest.raises(resolve.Usage, match="has no work tree here"):
        resolve.commits(here, None, None, dirty=True)


def test_subjects_of_commits_need_not_be_utf_8(tmp_path):
    laid = Laid(tmp_path / "top")
    calls = {"cwd": laid.top, "check": True, "capture_output": True}
    content = subprocess.run(["git", "cat-file", "commit", "HEAD"], **calls).stdout.replace(b"slow", b"slow \xe4")
    made = subprocess.run(["git", "hash-object", "-t", "commit", "-w", "--stdin"], input=content, **calls).stdout
    git(laid.top, "reset", "--quiet", "--soft", made.decode().strip())
    found = history.commits(project.load(laid.folder / "asv.conf.json"))
    assert [commit.subject for commit in found] == ["fast", "slow \ufffd"]


def test_a_linked_work_tree_is_its_own_head(tmp_path):
    laid = Laid(tmp_path / "top")
    git(laid.top, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"), laid.base)
    linked = project.load(tmp_path / "linked" / "asv.conf.json")
    assert resolve.newest(linked, None) == laid.base
    write(tmp_path / "linked" / "sample" / "__init__.py", "changed")
    assert linked.uncommitted() == "sample/__init__.py"
    assert project.load(laid.folder / "asv.conf.json").uncommitted() is None


@pytest.mark.parametrize("changed", ["sample/__init__.py", "perf/benchmarks/suite.py", "setup.py"])
def test_the_whole_repository_has_to_be_committed(tmp_path, changed):
    laid = Laid(tmp_path / "top", "perf")
    write(laid.top / "setup.py", "")
    commit(laid.top, "more")
    write(laid.top / changed, "changed")
    assert f"{changed} has uncommitted changes" in sentence(inside(laid.folder, "gate"))


def test_results_may_be_uncommitted(tmp_path):
    laid = Laid(tmp_path / "top", "perf", results_dir="../kept")
    write(laid.top / "kept" / "benchmarks.json", "{}")
    commit(laid.top, "results")
    write(laid.top / "kept" / "benchmarks.json", "{ }")
    assert project.load(laid.folder / "asv.conf.json").uncommitted() is None


# Which base


def clone(laid, folder, *options):
    subprocess.run(["git", "clone", "--quiet", *options, f"file://{laid.top}", folder], check=True, capture_output=True)
    return project.load(folder / laid.folder.relative_to(laid.top) / "asv.conf.json")


@pytest.mark.parametrize("branches", ["absent", [None], ["main"]], ids=str)
def test_the_default_base_is_where_the_head_left_the_default_branch(tmp_path, branches):
    laid = Laid(tmp_path / "top", branches=branches)
    found = resolve.commits(project.load(laid.folder / "asv.conf.json"), None, None)
    assert found == {"base": laid.base, "head": laid.head}


def test_a_clones_default_branch_is_what_its_remote_says(tmp_path):
    laid = Laid(tmp_path / "top", branches="absent")
    git(laid.top, "branch", "--quiet", "master", "topic")
    git(laid.top, "checkout", "--quiet", "main")
    there = clone(laid, tmp_path / "clone")
    git(there.root, "checkout", "--quiet", "-b", "mine", "origin/topic")
    assert resolve.commits(there, None, None)["base"] == laid.base


@pytest.mark.parametrize("names", [["one"], ["main", "master"]], ids=str)
def test_without_a_default_branch_the_base_has_to_be_named(tmp_path, names):
    laid = Laid(tmp_path / "top", branches="absent")
    git(laid.top, "branch", "--quiet", "--move", "main", names[0])
    for name in names[1:]:
        git(laid.top, "branch", "--quiet", name, laid.base)
    with pytest.raises(
        resolve.Usage, match="has no branches, and git no default branch: give the base, as convbench gate BASE"
    ):
        resolve.commits(project.load(laid.folder / "asv.conf.json"), None, None)


def test_a_commit_is_not_compared_with_itself(tmp_path):
    laid = Laid(tmp_path / "top")
    for arguments in (["topic", "topic"], ["HEAD"]):
        said = sentence(inside(laid.folder, "gate", *arguments))
        assert said.startswith(f"Error: base and head are the same commit, {laid.head[:10]}: ")
    git(laid.top, "checkout", "--quiet", "main")
    assert "are the same commit" in sentence(inside(laid.folder, "gate"))


def test_a_shallow_clone_says_so(tmp_path):
    laid = Laid(tmp_path / "top")
    git(laid.top, "checkout", "--quiet", "main")
    write(laid.top / "new", "")
    newest = commit(laid.top, "new")
    there = clone(laid, tmp_path / "clone", "--depth", "1", "--no-single-branch")
    git(there.root, "checkout", "--quiet", "-b", "topic", "origin/topic")
    assert resolve.commits(there, "origin/main", None) == {"base": newest, "head": laid.head}
    with pytest.raises(resolve.Usage, match="no commit in common; this clone is shallow: fetch more history"):
        resolve.commits(there, None, None)
    with pytest.raises(resolve.Usage, match=r"git knows no commit 'HEAD~1' in .*; this clone is shallow"):
        resolve.commits(there, "HEAD~1", None)


@pytest.mark.parametrize(("branches", "said"), [(["main"], "no branch main"), ("absent", "has no branches")])
def test_a_shallow_clone_of_one_branch_says_so(tmp_path, branches, said):
    there = clone(Laid(tmp_path / "top", branches=branches), tmp_path / "clone", "--depth", "1", "--branch", "topic")
    git(there.root, "remote", "remove", "origin")
    with pytest.raises(resolve.Usage, match=f"{said}.*: give the base, .*; this clone is shallow: fetch more history"):
        resolve.commits(there, None, None)


# Which configuration


def test_the_configuration_is_found_here_above_and_in_the_repository(tmp_path, monkeypatch):
    laid = Laid(tmp_path / "top", "perf")
    for folder in (laid.folder, laid.folder / "benchmarks", laid.top, laid.top / "sample"):
        monkeypatch.chdir(folder)
        assert project.find().root == laid.folder
    write(laid.top / ".venv" / "asv" / "asv.conf.json", "{}")  # asv's own template, not committed
    assert project.find().root == laid.folder


def test_one_of_several_configurations_has_to_be_named(tmp_path, monkeypatch):
    laid = Laid(tmp_path / "top", "perf")
    write(laid.top / "other" / "asv.conf.json", (laid.folder / "asv.conf.json").read_text())
    commit(laid.top, "another suite")
    for command in (["gate"], ["run"], ["table"], ["history"], ["export", "all.csv"]):
        done = inside(laid.top, *command)
        assert done.returncode == 2
        said = sentence(done)
        assert said == "Error: several asv configurations: other/asv.conf.json, perf/asv.conf.json; name one with --config"
    write(laid.folder / "asv.conf.jsonc", (laid.folder / "asv.conf.json").read_text())
    said = sentence(inside(laid.folder, "gate"))
    assert said.startswith("Error: several asv configurations: asv.conf.json and asv.conf.jsonc in ")
    done = inside(laid.top, "table", "--config", "perf/asv.conf.json")
    assert "no results yet in results/" in sentence(done)
