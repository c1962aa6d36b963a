"""convbench run on a suite that is not ours, with real processes: what is finished is kept, and nothing is left running."""

import json
import os
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

import compressed
import pytest
from command_line import inside, sentence
from repositories import commit, git
from runs import (
    CONFIGURATION,
    PREINSTALLED,
    SUITE,
    convbench,
    left_running,
    results,
    start,
    suite_project,
    wait_for_line,
    wait_until,
)

from convbench.asv import machine
from convbench.run import classes
from convbench.stored import results as stored
from convbench.stored import side_lines

pytestmark = [pytest.mark.first, pytest.mark.timeout(600)]
SIGNALS = [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.proof)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("other")
    return suite_project(folder, SUITE.format(pace=folder / "pace"))


@pytest.fixture(scope="module", params=SIGNALS)
def story(folder, request):
    """A run that is interrupted in its second class, the one that resumes there, a third, and one with --again.

    While the second goes on, a commit is made.
    """
    subprocess.run(["rm", "-rf", folder / "results"], check=True)
    told = SimpleNamespace(folder=folder, head=git(folder, "rev-parse", "HEAD"))
    (folder / "pace").write_text("60")
    process = start(folder, "run", "--busy")
    wait_for_line(process, "speed.Fast:")
    log = folder / ".convbench" / "run" / "asv.log"
    wait_until(lambda: "speed.Slow" in log.read_text())
    process.send_signal(request.param)
    told.out, told.err = process.communicate(timeout=60)
    told.status, told.interrupted, told.left = process.returncode, results(folder), left_running(folder)

    (folder / "pace").write_text("0.01")
    process = start(folder, "run", "--busy")
    wait_for_line(process, "building commit")
    (folder / "note").write_text("a commit while the run goes on")
    commit(folder, "meanwhile")
    told.second = (*process.communicate(timeout=120), process.returncode)
    git(folder, "reset", "--quiet", "--hard", told.head)
    told.resumed = results(folder)
    told.files = [path.name for path in folder.glob("results/*/*-*.json")]

    told.third = inside(folder, "run", "--busy")
    told.repeated = results(folder)
    told.again = inside(folder, "run", "--busy", "--again", "--bench", "Fast")
    told.anew = results(folder)
    return told


@pytest.mark.slow
def test_an_interrupted_run_keeps_what_was_finished_and_goes_on_from_there(story):
    assert story.status == 1, story.out
    (line,) = story.err.strip().splitlines()
    assert line.startswith("Error: interrupted: 1 of 3 classes are done, speed.Slow is not")
    assert list(story.interrupted) == ["speed.Fast.time_it"]
    assert story.left == []
    out, err, status = story.second
    assert "2 have results already" in out
    assert story.resumed["speed.Fast.time_it"] == story.interrupted["speed.Fast.time_it"]
    assert all(value > 0.01 for value in story.resumed["speed.Slow.time_it"])
    assert (status, err.strip().split(";")[0]) == (1, "Error: 1 cell failed")


@pytest.mark.slow
def test_what_is_measured_is_the_commit_the_run_began_with(story):
    (name,) = story.files
    assert name.startswith(story.head[:8])


@pytest.mark.slow
def test_a_second_run_measures_only_what_failed_and_again_measures_all(story):
    before, after = story.resumed, story.repeated
    assert before["speed.Unwell.time_it"][1] is None
    assert before["speed.Unwell.time_it"][0] > 0
    assert story.third.returncode == 1
    assert "1 cell of 1 class, 5 have results already" in story.third.stdout
    assert "speed.Unwell: 0 timed, 0 skipped, 1 FAILED" in story.third.stdout
    assert after["speed.Fast.time_it"] == before["speed.Fast.time_it"]
    assert after["speed.Unwell.time_it"][0] == before["speed.Unwell.time_it"][0]
    assert "2 cells of 1 class:" in story.again.stdout
    assert story.anew["speed.Fast.time_it"] != before["speed.Fast.time_it"]


@pytest.mark.slow
def test_the_table_shows_a_suite_that_is_not_ours(story):
    done = inside(story.folder, "table")
    assert done.returncode == 0, done.stderr
    assert [f"speed.{name}.time_it" in done.stdout for name in ("Fast", "Slow", "Unwell")] == [True] * 3
    assert "FAILED, " in done.stdout
    assert "asv gives no reason" not in done.stdout


def test_two_runs_at_once_are_refused(folder):
    first = start(folder, "run", "--busy", "--again", "--bench", "Slow")
    wait_for_line(first, "building commit")
    done = inside(folder, "run", "--busy")
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert done.returncode == 1
    assert done.stderr.strip() == "Error: another `convbench` command is measuring here; two at once would disturb each other"
    assert left_running(folder) == []


def test_a_project_that_does_not_build_is_one_sentence(folder):
    configuration = {
        **CONFIGURATION,
        **PREINSTALLED,
        "build_command": ["python -c \"raise SystemExit('Unknown compiler(s): cc')\""],
    }
    (folder / "asv.conf.json").write_text(json.dumps(configuration))
    commit(folder, "does not build")
    try:
        done = inside(folder, "run", "--busy")
    finally:
        git(folder, "reset", "--quiet", "--hard", "HEAD~")
    assert "no C compiler was found" in sentence(done)


@pytest.mark.slow
def test_the_side_file_says_what_a_suite_that_is_not_ours_was_measured_with(story):
    (path,) = story.folder.glob(f"results/*/*{side_lines.ENDING}")
    lines = [json.loads(line) for line in compressed.read_text(path).splitlines()]
    (kept,) = [line["versions"] for line in lines if "benchmark" not in line]
    assert {"python", "asv_runner"} <= kept.keys()
    assert kept["python"].count(".") == 2


@pytest.mark.slow
def test_the_machine_is_named_by_its_processor_and_not_by_its_host(story):
    (machine,) = [path.parent for path in Path(story.folder, "results").glob("*/machine.json")]
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
        done = inside(folder, "run", "--busy")
    finally:
        draft.unlink()
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "Error: the suite has uncommitted changes, and results are kept by commit: benchmarks/draft.py"
    )


@pytest.mark.skipif(machine.has_device(), reason="this machine may have a CUDA device")
def test_cells_for_devices_are_not_started_where_none_is_unless_they_are_named(tmp_path):
    suite = "class On:\n    rounds, repeat, number, warmup_time = 1, 1, 1, 0\n    def time_it(self): pass\n"
    suite += "class Off(On):\n    def time_it(self): pass\n    time_it.device = 'cuda'\n"
    suite += "class Mixed(On):\n    params, param_names = [['cpu.a', 'gpu.a']], ['implementation']\n"
    suite += "    def time_it(self, name): assert name == 'cpu.a'\n"
    suite += "    time_it.implementations = {'cpu.a': {'device': 'cpu'}, 'gpu.a': {'device': 'cuda'}}\n"
    suite += "class Both(Mixed):\n    def time_it(self, name): pass\n"
    suite += "    time_it.implementations, time_it.device = Mixed.time_it.implementations, 'cuda'\n"
    folder = suite_project(tmp_path, suite)
    code, out, err = convbench(folder, "run", "--busy")
    assert (code, set(results(folder))) == (0, {"speed.On.time_it", "speed.Mixed.time_it"}), err
    assert "4 cells of GPU implementations are not started: there is no CUDA device\n" in out
    assert convbench(folder, "run", "--busy", "--bench", "Off")[0] == 0
    assert set(results(folder)) == {"speed.On.time_it", "speed.Mixed.time_it", "speed.Off.time_it"}


@pytest.mark.slow
def test_a_matrix_keeps_the_results_of_every_environment(tmp_path):
    """A second run measures nothing, and says that changes are not committed."""
    suite = "import os\n\n\ndef track_size():\n    return int(os.environ['SIZE'])\n"
    folder = suite_project(tmp_path, suite, PREINSTALLED | {"matrix": {"env_nobuild": {"SIZE": ["2", "8"]}}})
    code, _, err = convbench(folder, "run", "--busy")
    assert code == 0, err
    files = {path.stem[-5:]: json.loads(path.read_text()) for path in folder.glob("results/*/*-*.json")}
    assert {size: file["results"]["speed.track_size"][0] for size, file in files.items()} == {"SIZE2": [2], "SIZE8": [8]}
    (folder / ".gitignore").write_text("env\nresults\nhome\n.convbench\n__pycache__\nmore\n")
    _, out, _ = convbench(folder, "run", "--busy")
    assert "have results" in out
    assert out.startswith("uncommitted changes are not measured")


def test_a_cell_that_fails_in_one_process_of_two_has_no_time(tmp_path):
    """asv keeps the samples of the process that did not fail; they are removed, and the reason stays."""
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
    compressed.write_text(side_lines.path(path), "\n".join(map(json.dumps, lines)))
    known = {name: {"params": params, "param_names": ["implementation", "size"], "version": "1", "unit": "seconds"}}
    failed = classes.failed_cells(side_lines.path(path))
    assert failed == [(name, ("'b'", "1"))]
    classes.remove_times(path, failed)
    struck = json.loads(path.read_text())["results"][name]
    assert [column[2] for column in (struck[0], struck[3], struck[4])] == [None] * 3
    assert struck[0][:2] == [1.0, 2.0]
    cells = stored.load(path, known).cells
    assert list(cells.status) == ["ok", "ok", "failed", "not measured"]
    assert cells.reason[2] == "WrongAnswer: twice as much"
