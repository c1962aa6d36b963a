"""`convbench speed` in real processes, which are interrupted or end."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from command_line import settings
from repositories import commit
from runs import left_running
from speed_suites import DOCS, FIRST, GOALS, SECOND, stored


def start(folder, *arguments):
    """The command in a process of its own, on one core."""
    command = [sys.executable, "-m", "convbench", "speed", *arguments]
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **settings(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
    )


def finish(process):
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


ROW = """
[[row]]
name = "{name}"
what = "a filter"
ours = "cpu.shift"
goals = [{{ than = "copy", geomean = 0.001 }}]
problems = ["{label}"]
"""
THIRD, FOURTH = "n1c1h7w9k1r3s3p1", "n1c1h6w9k1r3s3p1"


@pytest.mark.proof
def test_an_interrupted_measurement_keeps_what_was_finished_and_goes_on_from_there(project):
    """Interrupted three times, each time by another signal while the next problem is measured."""
    rows = "".join(ROW.format(name=label, label=label) for label in (THIRD, FOURTH))
    (project / "benchmarks" / "commands" / "speed.toml").write_text(GOALS + rows)
    labels = [FIRST, SECOND, THIRD, FOURTH]
    before = ""
    for made, signum in enumerate([signal.SIGINT, signal.SIGTERM, signal.SIGKILL], 1):
        process = start(project)
        for text in process.stdout:
            if text.startswith("[1/"):
                break
        time.sleep(0.1)  # by now the next problem is being measured
        process.send_signal(signum)
        done = finish(process)
        assert done.returncode != 0
        if signum != signal.SIGKILL:
            said = f"Error: interrupted: 1 of {5 - made} measurements are made; the same command resumes there"
            assert done.stderr.splitlines() == [said]
            assert left_running(project) == []
        assert stored(project).startswith(before)
        before = stored(project)
        assert [json.loads(text)["problem"] for text in before.splitlines()] == labels[:made]
        assert (project / "docs" / "speed.md").read_text() == DOCS

    done = finish(start(project))
    assert done.returncode == 0, done.stderr
    assert "1 of 8 measurements are to be made" in done.stdout
    assert stored(project).startswith(before)
    lines = [json.loads(text) for text in stored(project).splitlines()]
    assert [(each["problem"], each["threads"]) for each in lines] == [(label, 1) for label in labels]
    for each in lines:
        assert [(cell["name"], cell["status"], len(cell["samples"]) >= 7) for cell in each["cells"]] == [
            *(("copy", "ok", True), ("cpu.shift", "ok", True)),
        ]
        assert set(each["pools"].values()) == {1}
    said = stored(project) + "".join(str(path.relative_to(project)) for path in project.glob("results/*/speed/*"))
    assert os.uname().nodename not in said
    assert str(project.parent) not in said
    # The report stands between the marks, as it was printed, and the prose around them as it was.
    text = (project / "docs" / "speed.md").read_text()
    before, after = DOCS.split("\nold\n")
    assert text.startswith(before)
    assert text.endswith(after)
    assert text[len(before) : -len(after)].strip() in done.stdout


WRONG = """

def _wrong(problem, input, weight):
    return lambda: input * 1.01, lambda output: output


def _leaving(problem, input, weight):
    import os

    return lambda: os._exit(3), lambda output: output


BARE |= {"wrong": _wrong, "leaving": _leaving}
OTHERS |= dict.fromkeys(("wrong", "leaving"), _bare)
"""


@pytest.mark.slow
def test_a_wrong_candidate_has_no_time_and_one_that_ends_the_process_leaves_the_others(project):
    goals = GOALS.replace('ours = "cpu.shift"', 'ours = "leaving"', 1).replace('ours = "cpu.shift"', 'ours = "wrong"', 1)
    (project / "benchmarks" / "commands" / "speed.toml").write_text(goals)
    with (project / "benchmarks" / "commands" / "speed.py").open("a") as file:
        file.write(WRONG)
    commit(project, "wrong")
    done = finish(start(project))
    assert done.returncode == 1
    assert done.stderr == "Error: 2 candidates or measurements failed and are not timed; see the reasons above\n"
    assert f"{FIRST}, 1 thread: FAILED, leaving ended the process with status 3: it printed nothing" in done.stdout
    (kept,) = map(json.loads, stored(project).splitlines())
    copy, wrong = kept["cells"]
    assert (copy["status"], wrong["status"], "samples" in wrong) == ("ok", "failed", False)
    assert f"* {SECOND}, 1 thread: wrong failed: WrongAnswer: relative L2 error" in done.stdout
    assert done.stdout.count("not judged: no time for 1 of 1 problems") == 4
    assert " met: " not in done.stdout
