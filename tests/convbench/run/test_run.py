"""convbench run on a suite that is not ours, with real processes: what is finished is kept, and nothing is left running."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from repositories import commit, git
from runs import CONFIGURATION, SUITE, convbench, left_running, results, start

from convbench.run import classes
from convbench.stored import results as stored

SIGNALS = [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, package_index):
    folder = tmp_path_factory.mktemp("other")
    (folder / "asv.conf.json").write_text(json.dumps(CONFIGURATION))
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "__init__.py").write_text("")
    (folder / "benchmarks" / "speed.py").write_text(SUITE.format(pace=folder / "pace"))
    (folder / ".gitignore").write_text("env\nresults\nhome\npace\n.convbench\n__pycache__\n")
    (folder / "home").mkdir()
    git(folder, "init", "--quiet")
    commit(folder, "a suite")
    return folder


@pytest.mark.parametrize("signum", SIGNALS)
def test_an_interrupted_run_keeps_what_was_finished_and_goes_on_from_there(folder, signum):
    subprocess.run(["rm", "-rf", folder / "results"], check=True)
    (folder / "pace").write_text("60")
    process = start(folder, "run", "--busy")
    for line in process.stdout:
        if "speed.Fast:" in line:
            break
    time.sleep(2)  # by now the next class is being measured
    process.send_signal(signum)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, out
    (sentence,) = err.strip().splitlines()
    assert sentence.startswith("Error: interrupted: 1 of 3 classes are done, speed.Slow is not")
    assert list(results(folder)) == ["speed.Fast.time_it"]
    assert left_running(folder) == []
    before = results(folder)["speed.Fast.time_it"]

    (folder / "pace").write_text("0.01")
    status, out, err = convbench(folder, "run", "--busy")
    assert "2 are there already" in out
    assert results(folder)["speed.Fast.time_it"] == before
    assert all(value > 0.01 for value in results(folder)["speed.Slow.time_it"])
    assert (status, err.strip().split(";")[0]) == (1, "Error: 1 of the cells failed and have no time")


def test_a_second_run_measures_only_what_failed_and_again_measures_all(folder):
    (folder / "pace").write_text("0.001")
    convbench(folder, "run", "--busy")
    before = results(folder)
    assert before["speed.Unwell.time_it"][1] is None
    assert before["speed.Unwell.time_it"][0] > 0
    status, out, _ = convbench(folder, "run", "--busy")
    assert status == 1
    assert "1 cells in 1 classes, 5 are there already" in out
    assert "speed.Unwell: 0 times, 0 left out, 1 FAILED" in out
    after = results(folder)
    assert after["speed.Fast.time_it"] == before["speed.Fast.time_it"]
    assert after["speed.Unwell.time_it"][0] == before["speed.Unwell.time_it"][0]
    _, out, _ = convbench(folder, "run", "--busy", "--again", "--bench", "Fast")
    assert "2 cells in 1 classes" in out
    assert results(folder)["speed.Fast.time_it"] != before["speed.Fast.time_it"]


def test_the_table_shows_a_suite_that_is_not_ours(folder):
    convbench(folder, "run", "--busy")
    status, out, err = convbench(folder, "table")
    assert status == 0, err
    assert [f"speed.{name}.time_it" in out for name in ("Fast", "Slow", "Unwell")] == [True] * 3
    assert "FAILED, ended without a report" in out


def test_two_runs_at_once_are_refused(folder):
    (folder / "pace").write_text("60")
    first = start(folder, "run", "--busy", "--again", "--bench", "Slow")
    first.stdout.readline()
    time.sleep(1)
    status, _, err = convbench(folder, "run", "--busy")
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert status == 1
    assert (
        err.strip()
        == "Error: another `convbench run`, `gate` or `speed` is measuring here; two at once would disturb each other"
    )
    assert left_running(folder) == []


def test_a_project_that_does_not_build_is_one_sentence(folder):
    configuration = {**CONFIGURATION, "build_command": ["python -c \"raise SystemExit('Unknown compiler(s): cc')\""]}
    (folder / "asv.conf.json").write_text(json.dumps(configuration))
    commit(folder, "does not build")
    try:
        status, _, err = convbench(folder, "run", "--busy")
    finally:
        git(folder, "reset", "--quiet", "--hard", "HEAD~")
    assert status == 1
    (sentence,) = err.strip().splitlines()
    assert sentence.startswith("Error: ")
    assert "no C compiler was found" in sentence


def test_the_machine_is_named_by_its_processor_and_not_by_its_host(folder):
    (machine,) = [path.parent for path in Path(folder, "results").glob("*/machine.json")]
    facts = json.loads((machine / "machine.json").read_text())
    assert facts["machine"] == machine.name
    assert machine.name.endswith("cores")
    host = os.uname()
    assert host.nodename not in (machine.name, *facts.values())
    assert host.release not in json.dumps(facts)


def test_a_suite_with_uncommitted_changes_is_refused(folder):
    draft = folder / "benchmarks" / "draft.py"
    draft.write_text("")
    try:
        status, _, err = convbench(folder, "run", "--busy")
    finally:
        draft.unlink()
    assert status == 1
    assert err.strip() == ("Error: the suite has uncommitted changes, and results are kept by commit: benchmarks/draft.py")


def test_what_is_measured_is_the_commit_the_run_began_with(folder):
    (folder / "pace").write_text("0.5")
    subprocess.run(["rm", "-rf", folder / "results"], check=True)
    before = git(folder, "rev-parse", "HEAD")
    process = start(folder, "run", "--busy", "--bench", "Fast", "--bench", "Slow")
    for line in process.stdout:
        if "speed.Fast:" in line:
            break
    (folder / "note").write_text("a commit while the run goes on")
    commit(folder, "meanwhile")
    try:
        out, err = process.communicate(timeout=120)
    finally:
        git(folder, "reset", "--quiet", "--hard", before)
    assert process.returncode == 0, out + err
    (file,) = [path for path in folder.glob("results/*/*.json") if path.name != "machine.json"]
    assert file.name.startswith(before[:8])
    assert all(value >= 0.5 for value in results(folder)["speed.Slow.time_it"])


def test_a_cell_that_fails_in_one_process_of_two_has_no_time(tmp_path):
    """asv keeps the samples of the process that did not fail; they are struck, and the reason stays."""
    name, params = "conv2d.Size.time_conv2d", [["'a'", "'b'"], ["1", "2"]]
    columns = ["result", "params", "version", "stats_q_25", "samples"]
    row = [[1.0, 2.0, 3.0, float("nan")], params, "1", [1.0, 2.0, 3.0, None], [[1.0], [2.0], [3.0], None]]
    facts = {"commit_hash": "0" * 40, "env_name": "env", "date": 0, "params": {"machine": "box"}}
    path = tmp_path / "box" / "00000000-env.json"
    path.parent.mkdir()
    path.write_text(json.dumps({**facts, "result_columns": columns, "results": {name: row}}))
    cell = {"benchmark": name, "params": ["'b'", "1"]}
    lines = [
        {**cell, "run": "7", "status": "ok"},
        {**cell, "run": "8", "status": "failed", "reason": "WrongAnswer: twice as much"},
        {**cell, "run": "8", "status": "ok"},
    ]
    stored.side_file(path).write_text("\n".join(map(json.dumps, lines)))
    known = {name: {"params": params, "param_names": ["implementation", "size"], "version": "1", "unit": "seconds"}}
    failed = [c for c, line in stored.side_lines(stored.side_file(path)).items() if line["status"] == "failed"]
    assert failed == [(name, ("'b'", "1"))]
    classes._strike(path, failed)
    struck = json.loads(path.read_text())["results"][name]
    assert [column[2] for column in (struck[0], struck[3], struck[4])] == [None] * 3
    assert struck[0][:2] == [1.0, 2.0]
    cells = stored.load(path, known).cells
    assert list(cells.status) == ["ok", "ok", "failed", "not measured"]
    assert cells.reason[2] == "WrongAnswer: twice as much"
