"""Gates that a signal, a full disk or another gate stops: they leave their reports and nothing else."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time

import gate_commits
import pytest
from command_line import settings
from gate_commits import left_behind
from gate_reports import valid

from convbench.common import interrupts, lock
from convbench.gate import workers

SIGNALS = [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.proof)]


@pytest.fixture(scope="module")
def command(python):
    """The words of a command; nothing is built for it."""
    return lambda *arguments: [sys.executable, gate_commits.__file__, str(python), "gate", "--all", *map(str, arguments)]


@pytest.fixture
def started(sample, command, tmp_path):
    """Starts a gate, and waits for a condition on its output or on a file."""
    out, processes = tmp_path / "out", []

    def start(is_ready, *arguments):
        with out.open("w") as output:
            processes.append(
                subprocess.Popen(
                    command(*arguments),
                    cwd=sample.folder,
                    env=os.environ | settings(sample.folder),
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
        until = time.monotonic() + 120
        while not is_ready() and processes[0].poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        assert processes[0].poll() is None, out.read_text()
        return processes[0]

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_stopped(sample, started, tmp_path, number):
    file, pair = tmp_path / "report.json", [sample.commits[name] for name in ("base", "twin")]
    process = started(file.exists, *pair, "--bench", r"Unsteady.*\([1-3]\)$", "--budget", "4", "--json", file)
    assert json.loads(file.read_text())["rounds"] >= 1
    process.send_signal(number)
    assert process.wait(60) == 4
    said = (tmp_path / "out").read_text()
    assert "Traceback" not in said
    assert said.count("interrupted: ") == 1
    report = valid(json.loads(file.read_text()))
    assert report["exit_status"] == 4
    assert report["error"].startswith("interrupted")
    assert any(cell["rounds"] for cell in report["cells"])
    assert left_behind(sample.folder) == []
    assert list(tmp_path.glob(".*.new")) == []


@pytest.mark.slow
def test_stopped_before_the_first_round_has_ended(sample, started, tmp_path):
    """The report lists the cells."""
    file, out, pair = tmp_path / "report.json", tmp_path / "out", [sample.commits[name] for name in ("base", "twin")]
    process = started(
        lambda: "cells, about" in out.read_text(), *pair, "--bench", "Unsteady|time_plain", "--budget", "10", "--json", file
    )
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 4
    report = valid(json.loads(file.read_text()))
    assert report["error"].startswith("interrupted")
    assert {(cell["verdict"], cell["reason"]) for cell in report["cells"]} == {("not measured", "it was not finished")}
    assert len(report["cells"]) == 61
    assert "unsteady: 60 not measured" in out.read_text()
    assert left_behind(sample.folder) == []


@pytest.mark.proof
def test_a_self_test_that_is_stopped(sample, started, tmp_path):
    out = tmp_path / "out"
    asked = ("--self-test", "--bench", r"time_plain|Unsteady.*\([1-3]\)$", "--budget", "0.05")
    process = started(lambda: "false alarms in" in out.read_text(), *asked)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 4
    said = out.read_text()
    assert said.count("Error: interrupted: see above for the rates of 1 of 4 gates\n") == 1, said
    assert "Traceback" not in said
    assert left_behind(sample.folder) == []


def test_two_at_once(sample, command):
    environment = os.environ | settings(sample.folder)
    work = sample.folder / ".convbench"
    with lock.lock(work, sample.folder / "results"):
        done = subprocess.run(
            command(sample.commits["base"], sample.commits["twin"]),
            cwd=sample.folder,
            env=environment,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 4
    assert "measuring here; two at once would disturb each other" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.slow
def test_the_disk_fills_when_it_writes_its_report(sample, command, tmp_path):
    """Files may not grow beyond so many bytes."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (26_000, 26_000))

    pair = [sample.commits[name] for name in ("base", "twin")]
    arguments = [*pair, "--bench", "Unsteady", "--budget", "0.2", "--json", tmp_path / "report.json"]
    done = subprocess.run(
        command(*arguments),
        cwd=sample.folder,
        env=os.environ | settings(sample.folder),
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stdout.count("report.json cannot be written: ") == 1, done.stdout
    assert left_behind(sample.folder) == []
    assert list(tmp_path.glob(".*.new")) == []
    assert "60 not measured" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_that_is_starting_when_the_gate_is_stopped_is_ended_too(monkeypatch, number):
    running = []

    class Worker:
        def __init__(self, *_):
            running.append(self)
            signal.raise_signal(number)

        def close(self):
            running.remove(self)

    monkeypatch.setattr(workers, "Worker", Worker)
    built = dict.fromkeys(workers.SIDES)
    stopped = pytest.raises((KeyboardInterrupt, interrupts.Interrupted))
    with stopped, interrupts.termination(), workers.Workers(built, (0,), random.Random(0)) as both:
        both.start()
    assert running == []


@pytest.mark.proof  # eight gates
def test_the_self_test(sample, command, tmp_path):
    file, cells = tmp_path / "rates.json", r"time_filled\(20|time_plain"
    asked = ("--self-test", "2", "--bench", cells, "--budget", "0.2", "--json", file)
    environment = os.environ | settings(sample.folder)
    done = subprocess.run(
        command(*asked), cwd=sample.folder, env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines = done.stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("slow-down"))
    assert [line.split()[0] for line in lines[start + 1 : start + 5]] == ["none", "5%", "10%", "25%"]
    assert "found, slower by 25%: " in done.stdout
    assert done.stdout.count("false alarms in") == 8
    content = json.loads(file.read_text())
    assert content["exit_status"] == done.returncode
    assert len(content["gates"]) == 8
    assert content["found"][-1]["share"] > 0.5
    assert left_behind(sample.folder) == []
