"""Every error is one sentence that says what to do."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time

import click
import filelock
import psutil
import pytest
from command_line import inside, process, sentence

from convbench.asv import machine
from convbench.common import load
from convbench.run import built_commit
from convbench.stored import results

CONFIGURATION = '{"version": 1, "project": "other", "repo": "."}'


def git(folder, *arguments):
    names = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "-C", folder, *names, *arguments], check=True, capture_output=True)


@pytest.fixture
def project(tmp_path):
    """A project of one commit, without results and without a suite."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "asv.conf.json").write_text(CONFIGURATION)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


def store(project, text=None):
    """One results file of a suite with one benchmark."""
    known = {"lists.time_sort": {"params": [["1"]], "param_names": ["n"], "version": "1", "unit": "seconds"}}
    content = {
        "commit_hash": "0" * 40,
        "env_name": "env",
        "date": 0,
        "params": {"machine": "box"},
        "result_columns": ["result", "params", "version"],
        "results": {"lists.time_sort": [[1.0], [["1"]], "1"]},
    }
    (project / "results" / "box").mkdir(parents=True)
    (project / "results" / "benchmarks.json").write_text(json.dumps(known) if text is None else text)
    (project / "results" / "box" / "00000000-env.json").write_text(json.dumps(content))


# The project


@pytest.mark.parametrize(
    "arguments", [["run"], ["table"], ["speed"], ["try", "1x1x5x5", "1x1x3x3"]], ids=lambda words: words[0]
)
def test_no_configuration(tmp_path, arguments):
    said = sentence((process if arguments == ["run"] else inside)(tmp_path, *arguments))
    assert "no asv.conf.json in" in said
    assert "above it, or in its repository" in said


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        '{"version": 1, "project": "x"',
        "not JSON",
        "[]",
        "3",
        "null",
        '{"project": "x", "repo": "."}',
        '{"version": 1, "project": "x"}',
        '{"version": 1, "repo": ""}',
        '{"version": 99, "repo": "."}',
        '{"version": 1, "repo": ".", "results_dir": 3}',
    ],
)
def test_a_broken_configuration(tmp_path, content):
    (tmp_path / "asv.conf.json").write_text(content)
    assert sentence(inside(tmp_path, "table")).startswith("Error: asv.conf.json")


def test_a_broken_configuration_in_a_process(tmp_path):
    (tmp_path / "asv.conf.json").write_text('{"version": 1, ')
    assert sentence(process(tmp_path, "table")).startswith("Error: asv.conf.json")


def test_a_configuration_above_is_found(project):
    (project / "deep" / "er").mkdir(parents=True)
    assert "no results yet" in sentence(inside(project / "deep" / "er", "table"))


def test_no_repository(tmp_path):
    (tmp_path / "asv.conf.json").write_text(CONFIGURATION)
    assert "not a git repository" in sentence(inside(tmp_path, "run"))


def test_no_commit_yet(tmp_path):
    (tmp_path / "asv.conf.json").write_text(CONFIGURATION)
    git(tmp_path, "init", "--quiet")
    assert "HEAD" in sentence(inside(tmp_path, "run"))


def test_no_git(project, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert "git is not installed" in sentence(inside(project, "run"))


# convbench table


def test_no_results_yet(project):
    assert sentence(inside(project, "table")) == (
        "Error: no results yet in results/: measure with `convbench run --quick` first"
    )


def test_no_results_of_that_machine_or_commit(project):
    store(project)
    said = "Error: no results of machine 'den' in results/, only of box"
    assert sentence(inside(project, "table", "--machine", "den")) == said
    assert "no results yet of HEAD in results/" in sentence(inside(project, "table", "--commit", "HEAD"))


@pytest.mark.parametrize("commit", ["0123456789", "HEAD~5", "asv.conf.json", "--all"])
def test_an_unknown_commit(project, commit):
    store(project)
    assert repr(commit) in sentence(inside(project, "table", f"--commit={commit}"))


@pytest.mark.parametrize("arguments", [["-b", "nothing"], ["-b", "TIME"], ["-b", r"\(2\)$"]])
def test_filters_that_leave_nothing(project, arguments):
    store(project)
    assert "match (results of older benchmark versions are ignored)" in sentence(inside(project, "table", *arguments))


@pytest.mark.parametrize("command", ["table", "run"])
@pytest.mark.parametrize("pattern", ["(", "*", "[a-"])
def test_a_broken_regular_expression(project, command, pattern):
    store(project)
    assert repr(pattern) in sentence(inside(project, command, "--bench", pattern))


@pytest.mark.parametrize("content", ["{", "[]", ""])
def test_a_broken_list_of_benchmarks(project, content):
    store(project, content)
    assert sentence(inside(project, "table")).startswith("Error: results/benchmarks.json ")


@pytest.mark.parametrize(("arguments", "word"), [(["--bench", "find"], "match ("), (["--bench", "("], "'('")])
def test_the_same_in_a_process(project, arguments, word):
    store(project)
    assert word in sentence(process(project, "table", *arguments))


@pytest.mark.parametrize("arguments", [["tabel"], ["table", "--jsn"], ["run", "--bench"], ["try", "1x1x5x5"]])
def test_mistyped(project, arguments):
    sentence(inside(project, *arguments))


# convbench run


def test_two_runs_at_once(project):
    (project / ".convbench").mkdir()
    with filelock.FileLock(project / ".convbench" / "lock"):
        said = sentence(inside(project, "run"))
    assert said == "Error: another `convbench` command is measuring here; two at once would disturb each other"


@pytest.mark.parametrize("name", ["results", ".convbench"])
def test_a_folder_that_cannot_be_made(project, name):
    (project / name).write_text("a file")
    said = sentence(inside(project, "run", "--busy"))
    assert f"cannot write to {project / name}: " in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(project):
    project.chmod(0o555)
    try:
        said = sentence(inside(project, "run"))
    finally:
        project.chmod(0o755)
    assert "cannot write to" in said


def test_a_results_file_of_this_commit_that_is_broken(project, monkeypatch):
    """The run cannot resume from it or add to it; asv would stop at it, too."""
    commit = subprocess.check_output(["git", "-C", project, "rev-parse", "HEAD"], text=True)
    store(project)
    (project / "results" / "box" / f"{commit[:8]}-env.json").write_text("{")

    def build(workspace, commit):
        (workspace.folder / "benchmarks.json").write_text((project / "results" / "benchmarks.json").read_text())
        (workspace.private / "machine.json").write_text("{}")
        return built_commit.BuiltCommit(commit, results.benchmarks(workspace.folder), [{"env_name": "env", "versions": {}}])

    monkeypatch.setattr(built_commit, "build", build)
    monkeypatch.setattr(machine, "name", lambda: "box")
    assert sentence(inside(project, "run", "--busy")).startswith(f"Error: box/{commit[:8]}-env.json ")


@contextlib.contextmanager
def busy_cores():
    """Every core kept busy by a process that does nothing else."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(psutil.cpu_count())]
    try:
        time.sleep(0.3)
        yield len(processes)
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def test_a_machine_too_busy_to_measure_on(monkeypatch):
    monkeypatch.setattr(load, "MAX_WAIT_SECONDS", 1)
    with busy_cores() as cores, pytest.raises(click.ClickException) as caught:
        load.wait_until_quiet()
    said = re.fullmatch(
        r"this machine is too busy to measure on: other processes use (\d+\.\d) of (\d+) cores; "
        r"stop other processes, or use --busy to measure anyway",
        caught.value.message,
    )
    assert said
    assert load.MAX_BUSY_CORES < float(said[1]) <= cores
    assert int(said[2]) == cores


def test_a_suite_that_cannot_try(project):
    assert "python -m benchmarks try" in sentence(inside(project, "try", "1x3x16x16", "4x3x3x3"))
