"""convbench compare as a command: which results it finds, what it says of them, and mistakes."""

import contextlib
import json
import math
import subprocess
import sys

import pytest
from click.testing import CliRunner
from compared_projects import Project, numbered

from convbench.asv import machine
from convbench.cli.main import main

NAN = math.nan


# A project with results


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder)


def run(project, *arguments, revisions=("HEAD~1", "HEAD")):
    with contextlib.chdir(project.folder):
        return CliRunner().invoke(main, ["compare", *revisions, *arguments], catch_exceptions=False)


def sort(times, version="1", samples=True, repeat=5, started=0):
    return {"lists.time_sort": (times, version, samples, repeat, started)}


def both(project, before, after, **more):
    project.store(project.base, sort(before), **more)
    project.store(project.head, sort(after), **more)


def cells(project, *arguments):
    """The cells as written by --json, by their first parameter, and the exit status."""
    path = project.folder / "out.json"
    done = run(project, "--json", str(path), *arguments)
    assert done.stderr == ""
    found = strict(path.read_text())
    assert found["exit_status"] == done.exit_code
    return {one["params"][0]: one for one in found["cells"]}, done.exit_code


def strict(content):
    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    return json.loads(content, parse_constant=refuse)


def sentence(done):
    (line,) = done.stderr.splitlines()
    assert (done.exit_code, done.stdout) == (2, "")
    assert line.startswith("Error: ")
    return line


@pytest.mark.parametrize(
    ("before", "after", "status", "verdicts"),
    [
        ({"1": 1.0, "2": 2.0}, {"1": 1.01, "2": 2.0}, 0, ["same", "same"]),
        ({"1": 1.0, "2": 2.0}, {"1": 1.0, "2": NAN}, 0, ["same", "unknown"]),
        ({"1": 1.0, "2": 2.0}, {"1": 0.5, "2": 2.0}, 0, ["differs", "same"]),
        ({"1": 1.0, "2": 2.0}, {"1": 1.0, "2": 4.0}, 1, ["same", "differs"]),
        ({"1": 1.0, "2": NAN}, {"1": None, "2": 4.0}, 4, ["unknown", "unknown"]),
    ],
)
def test_exit_statuses_of_the_command(project, before, after, status, verdicts):
    both(project, before, after)
    found, code = cells(project)
    assert (code, [found[n]["verdict"] for n in "12"]) == (status, verdicts)


def test_in_a_process_of_its_own(project):
    """With the name and the exit status that a shell sees."""
    both(project, {"1": 1.0}, {"1": 2.0})
    command = [sys.executable, "-m", "convbench", "compare", "HEAD~1", "HEAD"]
    done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(f"stored, not paired: box, {project.base[:8]} (before) and {project.head[:8]} (after), env")
    assert done.stdout.splitlines()[-1] == "1 cell: 1 differ (1 slower, 0 faster), 0 same, 0 unknown"


def test_sorted_by_the_number_and_not_by_its_letters(project):
    factors = {"2": 2, "100": 100, "5": 5, "12": 12, "1": 1, "0.2": 0.2, "gone": 1}
    both(project, dict.fromkeys(factors, 1.0), {**factors, "gone": NAN})
    found, code = cells(project)
    expected = ["100", "12", "5", "2", "1", "0.2", "gone"]
    assert (list(found), code) == (expected, 1)
    shown = run(project).stdout
    assert [line.split("(")[1].split(")")[0] for line in shown.splitlines() if line.lstrip().startswith("lists.")] == expected


def test_the_file_says_what_was_compared(project):
    both(project, {"1": 1.0, "2": NAN}, {"1": 2.0, "2": 1.0})
    path = project.folder / "out.json"
    run(project, "--json", str(path))
    content = strict(path.read_text())
    assert {key: value for key, value in content.items() if key != "cells"} == {
        "kind": "stored, not paired",
        "base": project.base,
        "head": project.head,
        "machine": "box",
        "environment": "env",
        "exit_status": 1,
    }
    assert content["cells"] == [
        {
            "benchmark": "lists.time_sort",
            "params": ["1"],
            "verdict": "differs",
            "before": 1.0,
            "after": 2.0,
            "ratio": 2.0,
            "reason": "slower by over 10 %",
        },
        {
            "benchmark": "lists.time_sort",
            "params": ["2"],
            "verdict": "unknown",
            "before": None,
            "after": 1.0,
            "ratio": None,
            "reason": "before: not measured",
        },
    ]


def test_why_a_cell_has_no_time(project):
    names = ["failed", "killed", "skipped", "unmeasured"]
    lines = [
        {"params": ["failed"], "status": "failed", "reason": "WrongAnswer: by 3"},
        {"params": ["skipped"], "status": "skipped", "reason": "unsupported: groups=2"},
    ]
    project.store(project.base, sort(dict.fromkeys([*names, "gone"], 1.0)))
    times = dict(zip(names, [1.0, None, NAN, NAN], strict=True))
    project.store(project.head, sort(times), side=lines)
    found, code = cells(project)
    assert code == 4
    assert {name: one["reason"] for name, one in found.items()} == {
        "failed": "after: failed, WrongAnswer: by 3",
        "killed": "after: failed, no time (asv gives no reason)",
        "skipped": "after: skipped, unsupported: groups=2",
        "unmeasured": "after: not measured",
        "gone": "after: not stored",
    }
    assert {(one["verdict"], one["before"], one["after"]) for one in found.values()} == {("unknown", 1.0, None)}


def test_another_version_is_not_the_same_benchmark(project):
    project.store(project.base, sort({"1": 1.0}, "a" * 64))
    project.store(project.head, sort({"1": 9.0}, "b" * 64))
    found, code = cells(project)
    assert code == 4
    assert (found["1"]["verdict"], found["1"]["ratio"], found["1"]["before"], found["1"]["after"]) == (
        "unknown",
        None,
        1.0,
        9.0,
    )
    assert found["1"]["reason"] == "not the same benchmark: version aaaaaaaa before, bbbbbbbb after"


def test_two_files_of_a_version_that_is_no_longer_the_newest_are_compared(project):
    both(project, {"1": 1.0}, {"1": 2.0})
    project.store(numbered(7), sort({"1": 1.0}, "2"))
    assert cells(project)[1] == 1


def test_what_benchmarks_json_no_longer_has_is_unknown(project):
    both(project, {"1": 1.0}, {"1": 2.0})
    (project.folder / "results" / "benchmarks.json").write_text("{}")
    found, code = cells(project)
    assert (code, "benchmarks.json no longer has it" in found["1"]["reason"]) == (4, True)


@pytest.mark.parametrize(("unit", "code"), [("seconds", 1), ("bytes", 4), ("unit", 4)])
def test_only_times_are_compared(project, unit, code):
    both(project, {"1": 1.0}, {"1": 2.0}, unit=unit)
    found, status = cells(project)
    assert status == code
    assert (found["1"]["reason"] == f"before and after: not a time, but in {unit}") == (code == 4)


def test_a_time_of_zero_has_no_ratio(project):
    both(project, {"1": 0.0}, {"1": 2.0})
    assert cells(project)[0]["1"]["reason"] == "before: a time of 0 s"


@pytest.mark.parametrize(("repeat", "verdict"), [(5, "differs"), (2, "differs"), (1, "unknown"), (None, "unknown")])
def test_quartiles_serve_where_samples_were_not_kept(project, repeat, verdict):
    """As asv stores them unless told to keep samples; how many there were it says either way."""
    for commit, time in ((project.base, 1.0), (project.head, 2.0)):
        project.store(commit, sort({"1": time}, samples=False, repeat=repeat))
    assert cells(project)[0]["1"]["verdict"] == verdict


@pytest.mark.parametrize("pattern", ["time_sort\\(2\\)", "\\(2", "^lists.*2"])
def test_cells_are_picked_by_name_and_parameters(project, pattern):
    both(project, {"1": 1.0, "2": 1.0}, {"1": 9.0, "2": 1.0})
    found, code = cells(project, "--bench", pattern)
    assert (list(found), code) == (["2"], 0)


# Machines and environments


def test_the_newest_of_several_environments_in_common(project):
    for environment, started, after in (("old", 1, 9.0), ("new", 2, 1.0), ("third", 3, 9.0)):
        times = {project.base: 1.0, project.head: after}
        for commit in [project.base, project.head][environment == "third" :]:
            project.store(commit, sort({"1": times[commit]}, started=started), environment)
    done = run(project)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].endswith(", new")
    assert "measured less recently and not shown: old\n" in done.stdout


def test_environments_that_differ_are_not_compared(project):
    project.store(project.base, sort({"1": 1.0}), "env-a")
    project.store(project.head, sort({"1": 1.0}), "env-b")
    said = sentence(run(project))
    assert "no environment in common on box" in said
    assert said.endswith(": env-a; env-b")


def test_machines_that_differ_are_not_compared(project):
    project.store(project.base, sort({"1": 1.0}), box="box")
    project.store(project.head, sort({"1": 1.0}), box="den")
    said = sentence(run(project, "--machine", "box"))
    assert f"no results of commit {project.head[:8]} on box in results/" in said
    assert "`convbench run`" in said


def test_this_machine_comes_first(project, monkeypatch):
    both(project, {"1": 1.0}, {"1": 1.0}, box="box")
    both(project, {"1": 1.0}, {"1": 2.0}, box="den")
    assert sentence(run(project)) == "Error: no results of this machine in results/: say which with --machine: box, den"
    assert [run(project, "--machine", name).exit_code for name in ("box", "den")] == [0, 1]
    for name, code in (("box", 0), ("den", 1)):
        monkeypatch.setattr(machine, "name", lambda name=name: name)
        assert run(project).exit_code == code


def test_a_machine_without_results(project):
    both(project, {"1": 1.0}, {"1": 1.0})
    said = sentence(run(project, "--machine", "den"))
    assert said == "Error: no results of machine 'den' in results/, only of box"


# Mistakes


def test_no_configuration(project):
    (project.folder / "asv.conf.json").unlink()
    assert "no asv.conf.json" in sentence(run(project))


def test_no_results(project):
    assert "measure commits with `convbench run` first" in sentence(run(project))


@pytest.mark.parametrize("revisions", [("nonsense", "HEAD"), ("HEAD", "nonsense")])
def test_an_unknown_commit(project, revisions):
    both(project, {"1": 1.0}, {"1": 1.0})
    assert "'nonsense'" in sentence(run(project, revisions=revisions))


def test_a_commit_without_results(project):
    project.store(project.head, sort({"1": 1.0}))
    assert f"no results of commit {project.base[:8]} on box" in sentence(run(project))


def test_a_commit_that_only_begins_like_a_stored_one(project):
    project.store(project.base, sort({"1": 1.0}))
    project.store(project.head[:8].ljust(40, "0"), sort({"1": 1.0}))
    assert f"no results of commit {project.head[:8]} on box" in sentence(run(project))


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"params": {"machine": "box"}}'])
@pytest.mark.parametrize("which", ["base", "head"])
def test_a_corrupt_file_is_named(project, which, content):
    both(project, {"1": 1.0}, {"1": 1.0})
    name = f"box/{getattr(project, which)[:8]}-env.json"
    (project.folder / "results" / name).write_text(content)
    assert sentence(run(project)).startswith(f"Error: {name} ")


@pytest.mark.parametrize("column", ["stats_repeat", "samples"])
@pytest.mark.parametrize("content", [3, ["a"], [["a"]], [{}]])
def test_a_column_that_makes_no_sense(project, column, content):
    """It is named, or skipped where the rest of the cell is enough; never a traceback."""
    both(project, {"1": 1.0}, {"1": 1.0})
    path = project.folder / "results" / "box" / f"{project.head[:8]}-env.json"
    whole = json.loads(path.read_text())
    whole["results"]["lists.time_sort"][whole["result_columns"].index(column)] = content
    path.write_text(json.dumps(whole))
    done = run(project)
    assert done.exit_code in (0, 2)
    if done.exit_code == 2:
        assert f"box/{path.name} is unreadable: " in sentence(done)


def test_the_file_of_another_commit_may_be_corrupt(project):
    both(project, {"1": 1.0}, {"1": 1.0})
    (project.folder / "results" / "box" / "00000000-env.json").write_text("{")
    done = run(project)
    assert (done.exit_code, done.stderr) == (0, "")


def test_a_broken_list_of_benchmarks(project):
    both(project, {"1": 1.0}, {"1": 1.0})
    (project.folder / "results" / "benchmarks.json").write_text("{")
    assert sentence(run(project)).startswith("Error: results/benchmarks.json ")


def test_filters_that_leave_nothing(project):
    both(project, {"1": 1.0}, {"1": 1.0})
    assert "matches these filters" in sentence(run(project, "--bench", "nothing"))


def test_a_file_that_cannot_be_written(project):
    both(project, {"1": 1.0}, {"1": 1.0})
    assert "cannot write to missing/out.json" in sentence(run(project, "--json", "missing/out.json"))


@pytest.mark.parametrize("arguments", [["--bench", "("], ["--json", "."], ["--jsn"], ["third"]])
def test_mistyped(project, arguments):
    both(project, {"1": 1.0}, {"1": 9.0})
    done = run(project, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith("Error: ")
