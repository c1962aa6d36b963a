"""Calls of the gate that are refused before anything is built."""

import json

import pytest
from command_line import inside
from gate_projects import Sample

from convbench.gate import discover


@pytest.fixture
def project(tmp_path):
    made = Sample(tmp_path / "project")
    made.commit({"benchmarks/b.py": "def time_nothing():\n    pass\n", "sample/__init__.py": ""})
    return made


def mistake(folder, *arguments):
    """The error of a refused call."""
    done = inside(folder, "gate", *map(str, arguments))
    assert done.returncode == 2, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / ".asv").exists()  # nothing was built
    assert not (folder / ".convbench").exists()
    return lines[0]


def test_a_dirty_tree(project):
    project.write({"sample/__init__.py": "changed = True\n"})
    said = mistake(project.folder)
    assert said.startswith("Error: sample/__init__.py has uncommitted changes")
    assert "name the head" in said


def test_results_that_a_run_wrote_are_no_dirt(project):
    """They change nothing that is measured: the base is looked for, as from a clean tree."""
    project.commit({"results/benchmarks.json": "{}"})
    project.write({"results/benchmarks.json": "{ }"})
    assert "git knows no commit 'nonsense'" in mistake(project.folder, "nonsense")


def test_results_may_lie_outside_of_the_repository(project):
    conf = json.loads((project.folder / "asv.conf.json").read_text())
    project.commit({"asv.conf.json": json.dumps({**conf, "results_dir": "../kept"})})
    assert "git knows no commit 'nonsense'" in mistake(project.folder, "nonsense")


@pytest.mark.parametrize("arguments", [["nonsense"], ["HEAD~7"], ["main", "nonsense"], ["asv.conf.json"], ["HEAD^{tree}"]])
def test_an_unknown_revision(project, arguments):
    assert f"git knows no commit {arguments[-1]!r}" in mistake(project.folder, *arguments)


def test_no_configuration(tmp_path):
    assert "no asv.conf.json in" in mistake(tmp_path)


def test_no_repository(tmp_path):
    (tmp_path / "asv.conf.json").write_text('{"version": 1, "project": "x", "repo": "."}')
    assert "not a git repository" in mistake(tmp_path)


def test_a_first_branch_that_is_not_here(project):
    conf = json.loads((project.folder / "asv.conf.json").read_text())
    project.commit({"asv.conf.json": json.dumps(conf | {"branches": ["trunk"]})})
    said = mistake(project.folder)
    assert "trunk" in said
    assert "give the base" in said


@pytest.mark.parametrize(
    ("setting", "value", "kind"),
    [
        ("pythons", "3.11", "a list of strings"),
        ("pythons", [3.11], "a list of strings"),
        ("default_benchmark_timeout", "60", "a number of seconds"),
        ("install_timeout", None, "a number of seconds"),
        ("environment_type", ["virtualenv"], "text"),
        ("build_command", {"make": 1}, "a list of commands"),
        ("matrix", "numpy", "an object"),
        ("exclude", {"python": "3.11"}, "a list of objects"),
        ("branches", [3], "a list of strings"),
        ("benchmark_dir", "", "text"),
    ],
)
def test_a_setting_of_another_kind(project, setting, value, kind):
    conf = json.loads((project.folder / "asv.conf.json").read_text())
    project.commit({"asv.conf.json": json.dumps(conf | {setting: value})})
    said = mistake(project.folder)
    assert said == f"Error: asv.conf.json is not a valid asv configuration: {setting} is not {kind}"


@pytest.mark.parametrize("options", [["--accept", "x"], ["--reason", "x"]])
def test_accepted_without_a_reason(project, options):
    assert "--accept and --reason must be given together" in mistake(project.folder, *options)


def test_a_malformed_accept_file(project):
    project.commit({".asv.toml": "accept = 3"})
    said = mistake(project.folder, "HEAD~1", "HEAD", "--accept-file", project.folder / ".asv.toml")
    assert said == "Error: .asv.toml may hold only [[accept]] tables"


@pytest.mark.parametrize("option", ["--json", "--markdown"])
def test_a_report_in_no_folder(project, option):
    project.commit({"sample/__init__.py": "changed = True"})
    said = mistake(project.folder, "HEAD~1", option, project.folder / "nowhere" / "report")
    assert "cannot be written" in said
    assert "nowhere is not a folder" in said


@pytest.mark.parametrize("options", [["--budget", "0"], ["--budget", "-1"], ["--budget", "x"], ["--bench", "("], ["--jsn"]])
def test_mistyped(project, options):
    mistake(project.folder, *options)


def test_an_exception_that_was_not_foreseen_is_called_a_fault_of_ours(gate, monkeypatch):
    monkeypatch.setattr(discover, "discover", lambda *_: 1 / 0)
    done, report = gate("base", "twin")
    assert done.returncode == 4
    assert (
        "this is a fault of convbench, please report it: ZeroDivisionError: division by zero (traceback: " in report["error"]
    )
    assert report["traceback"].startswith("Traceback (most recent call last)")
    assert report["error"] in done.stdout
