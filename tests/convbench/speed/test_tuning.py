"""What cpu.auto is tuned on, the table that the times become, and `convbench tune` in a project of its own."""

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from choices import asked, needs_compiled
from click.testing import CliRunner
from command_line import settings
from hypothesis import given
from hypothesis import strategies as st
from repositories import commit, git
from rich.console import Console
from speed_suites import with_suite

import impls
from benchmarks.commands import tune as tuning
from benchmarks.workloads import random_problems
from benchmarks.workloads.problems import Problem
from convbench.cli.main import main
from convbench.speed import goals, measure, times_file
from convbench.speed import tuning as tune_command
from convbench.suite import ask as suite
from impls.conv2d import choice, measurements


@given(st.integers(0, 1000))
def test_drawn_problems_are_those_of_their_seed(seed):
    found = random_problems.generate(20, seed)
    assert [p.label for p in found] == [p.label for p in random_problems.generate(20, seed)]
    assert len({p.label for p in found}) == 20
    assert all(random_problems.MIN_FLOPS <= p.flops <= random_problems.MAX_FLOPS for p in found)
    assert all(Problem.parse(p.label) == p for p in found)


def write(tmp_path, monkeypatch, times, threads=1, instructions="avx9", processor="Maker 1 2"):
    monkeypatch.setattr(tuning, "SETTINGS", tmp_path / "tune.toml")
    (tmp_path / "tune.toml").write_text(f'table = "{tmp_path / "auto.toml"}"\n')
    monkeypatch.setattr(choice, "instruction_set", lambda: instructions)
    monkeypatch.setattr(measurements, "processor", lambda: processor)
    (tmp_path / "times.json").write_text(json.dumps(times))
    about = {"machine": "box", "commit": "01234567", "date": "2026-11-21"}
    (said,) = tuning.write_choice({"times": str(tmp_path / "times.json"), "threads": threads, **about})
    return said, tomllib.loads((tmp_path / "auto.toml").read_text())["table"]


def test_measurements_become_a_table(tmp_path, monkeypatch):
    times = {
        "n1c1h64w64k1r3s3": {"cpu.shift": 1e-4, "cpu.windows": 2.9e-4, "cpu.fft": 4e-4},
        "n1c64h28w28k64r3s3t2p1d2g2": {"cpu.shift": 1.5e-4, "cpu.windows": 1e-4},
        "n1c64h30w30k64r3s3t2p1d2g2": {"cpu.shift": 1.2e-4, "cpu.windows": 1e-4},
    }
    said, (made,) = write(tmp_path, monkeypatch, times)
    assert made.pop("problems")[:2] == [
        {"input": [1, 1, 64, 64], "weight": [1, 1, 3, 3], "us": {"cpu.shift": 100.0, "cpu.windows": 290.0}},
        {
            "input": [1, 64, 28, 28],
            "weight": [64, 32, 3, 3],
            "stride": 2,
            "padding": [1, 1],
            "dilation": 2,
            "groups": 2,
            "us": {"cpu.windows": 100.0, "cpu.shift": 150.0},
        },
    ]
    key = {"instruction_set": "avx9", "processor": "Maker 1 2", "threads": 1}
    assert made == {**key, "machine": "box", "commit": "01234567", "date": "2026-11-21"}
    assert (said["problems"], said["near"]) == (3, 2 / 3)  # the last two pick for one another, and badly for the first
    assert list(tuning.outliers({"times": str(tmp_path / "times.json")})) == [{"problem": "n1c1h64w64k1r3s3"}]
    assert said["rules"] == {}  # no implementation that a rule names has a time
    alike = {label: {"cpu.shift": 1e-4, "cpu.windows": 2e-4} for label in (f"n1c1h{size}w64k1r3s3" for size in range(60, 66))}
    held_up = {**alike, "n1c1h66w66k1r3s3": {"cpu.windows": 2e-4}}  # the pick of the other problems was skipped there
    (tmp_path / "held_up.json").write_text(json.dumps(held_up))
    assert list(tuning.outliers({"times": str(tmp_path / "held_up.json")})) == [{"problem": "n1c1h66w66k1r3s3"}]
    small = {"cpu.shift": 1e-4}
    _, there = write(tmp_path, monkeypatch, {"n1c1h9w9k1r3s3": small}, threads=2)
    assert [(each["threads"], len(each["problems"])) for each in there] == [(1, 3), (2, 1)]
    _, there = write(tmp_path, monkeypatch, {"n1c1h9w9k1r3s3": small}, instructions="neon")
    assert [(each["instruction_set"], each["threads"]) for each in there] == [("avx9", 1), ("avx9", 2), ("neon", 1)]
    _, there = write(tmp_path, monkeypatch, {"n1c1h9w9k1r3s3": small}, processor="Maker 1 1")
    assert [(each["processor"], len(each["problems"])) for each in there[:2]] == [("Maker 1 1", 1), ("Maker 1 2", 3)]
    _, there = write(tmp_path, monkeypatch, {"n1c1h9w9k1r3s3": small})  # measured again
    assert [len(each["problems"]) for each in there] == [1, 1, 1, 1]


def test_a_table_says_how_torch_stands_where_rules_leave_problems_to_others(tmp_path, monkeypatch):
    labels = [f"n1c1h{side}w64k1r3s3" for side in (60, 61, 62, 63, 64)]
    ours = choice.choose(asked(Problem.parse(labels[0])), 1, by_rule=True).implementation.name
    ratios = [1.5, 0.95, 0.85, 1.0]
    times = {label: {ours: 1e-4, "cpu.torch": ratio * 1e-4} for label, ratio in zip(labels, ratios, strict=False)}
    times[labels[4]] = {"cpu.shift": 1e-4, "cpu.torch": 1.1e-4}  # too slow to be timed
    times["n1c64h99w99k64r5s5t3"] = {"cpu.torch": 1e-4}  # left to torch
    said, _ = write(tmp_path, monkeypatch, times)
    assert said["rules"] == {"few channels": [5, 3, 2]}


def test_a_table_is_of_compiled_kernels(monkeypatch):
    monkeypatch.setattr(choice, "instruction_set", lambda: None)
    with pytest.raises(ImportError, match="the compiled kernels are not built"):
        next(tuning.problems({"sets": [], "random": 1, "seed": 1, "problems": []}))


def test_what_is_measured_is_of_sets_drawn_and_named_once_each(monkeypatch):
    monkeypatch.setattr(choice, "instruction_set", lambda: "avx9")
    asked = {"sets": ["mnist"], "random": 1, "seed": 1}
    before = list(tuning.problems({**asked, "problems": []}))
    named = {"problem": "n1c1h9w9k1r3s3"}
    assert list(tuning.problems({**asked, "problems": [before[0]["problem"], named["problem"]]})) == [*before, named]


def test_the_committed_table_can_be_read():
    there = tomllib.loads(measurements.FILE.read_text(encoding="utf-8"))["table"] if measurements.FILE.is_file() else []
    keys = [(each["instruction_set"], each["processor"], each["threads"]) for each in there]
    assert len(set(keys)) == len(keys)
    known = set(impls.names("conv2d", device="cpu")) - {"cpu.auto"}
    for one in itertools.chain.from_iterable(each["problems"] for each in there):
        measured = measurements.measured(one)
        assert set(measured.times) <= known
        assert list(measured.times.values()) == sorted(measured.times.values())


# Several processes


def line(label, process, **seconds):
    """The line of one process: seconds of each implementation, None for skipped ones."""
    cells = [
        {"name": name, "status": "skipped" if time is None else "ok", "samples": [time]} for name, time in seconds.items()
    ]
    about = {"date": "2026-11-21", "versions": {}, "wall": 1.0}
    return {"problem": label, "threads": 1, "process": process, "cells": cells, **about}


@pytest.mark.parametrize(
    ("processes", "seconds"),
    [
        ([{"a": 3.0, "b": 4.0}], {"a": 3.0, "b": 4.0}),
        (
            [{"a": 3.0, "b": 4.0}, {"a": 8.0, "b": 4.0}, {"a": 2.0, "b": 1.0}],
            {"a": 3.0, "b": 1.5},
        ),  # b took half as long in most
        ([{"a": 1.0, "b": 0.5}, {"a": 1.0, "b": None}, {"a": 1.0, "b": None}], {"a": 1.0}),
        ([{"a": 1.0, "b": None}, {"a": 1.0, "b": 0.5}, {"a": 1.0, "b": 0.8}], {"a": 1.0, "b": 0.8}),
        ([{"a": None, "b": 0.5}], {"b": 0.5}),
        ([{"a": None}], {}),
    ],
)
def test_the_time_of_several_processes(processes, seconds):
    lines = {("p", 1): [line("p", process, **found) for process, found in enumerate(processes, 1)]}
    found = tune_command._times(lines, [1, 2], ["p"])
    assert found == {1: {"p": pytest.approx(seconds)} if seconds else {}, 2: {}}


def test_what_all_others_contradict_is_measured_in_three_processes(tmp_path, monkeypatch):
    """The first process has one problem odd by chance; whatever comes of it, the table is written once, at the end."""
    asked_for, measured, written = [], [], []

    def measure_all(project, known, file, keys, again, console, process=1):
        for label, _ in keys:
            seconds = {"a": 1.0, "b": 1.5} if (label, process) == ("odd", 1) else {"a": 4.0, "b": 2.0}
            times_file.append(file.path, line(label, process, **seconds))
        measured.append((process, [label for label, _ in keys]))
        return 0

    def ask(project, verb, request, console):
        asked_for.append(verb)
        if verb == "problems":
            return [{"problem": label} for label in ("even", "odd", "other")]
        if verb == "outliers":
            return [{"problem": "odd"}]
        written.append(json.loads(Path(request["times"]).read_text()))
        return [{"table": "auto.toml", "problems": 3, "near": 1.0, "rules": {}}]

    chosen = {
        "sets": [],
        "random": 3,
        "seed": 1,
        "problems": [],
        "seconds": 0.1,
        "within": 3.0,
        "threads": [1],
        "candidates": ["a", "b"],
    }
    file = times_file.TimesFile(tmp_path / "tune.jsonl.gz", "box", "commit 01234567", "convbench tune")
    monkeypatch.setattr(tune_command, "_settings", lambda project: {**chosen, "table": "auto.toml"})
    monkeypatch.setattr(times_file, "find", lambda *_: file)
    monkeypatch.setattr(measure, "measure_all", measure_all)
    monkeypatch.setattr(suite, "ask", ask)
    said = tune_command.run(SimpleNamespace(work=tmp_path), None, False, Console(quiet=True))
    assert measured == [(1, ["even", "odd", "other"]), (2, ["odd"]), (3, ["odd"])]
    assert asked_for == ["problems", "outliers", "write_choice"]
    assert written == [{label: {"a": 4.0, "b": 2.0} for label in ("even", "odd", "other")}]
    assert said == ["auto.toml, 1 thread: 3 problems; leave-one-out: 100% of the picks are within 10 % of the fastest"]


# convbench tune, in a project of its own

LABELS = ["n1c1h12w12k1r3s3p1", "n1c16h12w12k16r3s3p1", "n1c16h12w12k16r1s1"]
SETTINGS = """
table = "impls/conv2d/cpu/auto.toml"
sets = ["mnist"]
random = 0
seed = 1
problems = []
seconds = 0.001
within = 3.0
threads = [1]
candidates = ["cpu.cython_direct", "cpu.cython_packed"]
"""


@pytest.fixture
def project(tmp_path):
    """A project with this suite, something small to tune and no table, everything committed."""
    problems = "".join(f'[[problem]]\nlabel = "{one}"\n' for one in LABELS)
    folder = with_suite(
        tmp_path / "project", {"benchmarks/commands/tune.toml": SETTINGS, "benchmarks/workloads/sets/mnist.toml": problems}
    )
    (folder / "impls" / "conv2d" / "cpu").mkdir(parents=True)
    return folder


def tune(folder):
    command = [sys.executable, "-m", "convbench", "tune"]
    return subprocess.Popen(
        command, cwd=folder, env={**os.environ, **settings(folder)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.proof
@needs_compiled
def test_tuning_goes_on_where_it_was_stopped_and_writes_the_table(project):
    measured = git(project, "rev-parse", "--short=8", "HEAD").strip()
    process = tune(project)
    for text in process.stdout:
        if text.startswith("[1/"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in err) == (1, False)
    assert "the same command resumes there" in err
    table = project / "impls/conv2d/cpu/auto.toml"
    assert not table.exists()
    table.write_text("table = []\n")
    commit(project, "another table")  # which decides none of the times
    out, err = (process := tune(project)).communicate(timeout=120)
    assert process.returncode == 0, err
    assert re.search(rf"[12] of {len(LABELS)} measurements are to be made", out)
    assert f"impls/conv2d/cpu/auto.toml, 1 thread: {len(LABELS)} problems; leave-one-out: " in " ".join(out.split())
    (made,) = tomllib.loads(table.read_text())["table"]
    assert made["commit"] == measured
    key = made["instruction_set"], made["processor"], made["threads"]
    assert key == (choice.instruction_set(), measurements.processor(), 1)
    assert {name for one in made["problems"] for name in one["us"]} <= {"cpu.cython_direct", "cpu.cython_packed"}


@pytest.mark.parametrize(
    ("seconds", "said"), [([2.0, 1.0, 0.5], "b 2.00x"), ([1.0, 2.0, 2.0], "a 1.00x"), ([None, 2.0, 2.0], "a failed")]
)
def test_a_line_names_the_fastest(seconds, said):
    """Among those that pack their weights in the call, with the ratio to the first."""
    names = ["a", "b", f"b{goals.PACKED}"]
    cells = [
        {"name": name, "status": "ok", "samples": [each]} if each else {"name": name, "status": "failed"}
        for name, each in zip(names, seconds, strict=True)
    ]
    row = goals.Row("tune", "", "a", ("n1c1h9w9k1r3s3",), (), "a", 0.1, also=("b",))
    line = {"problem": "n1c1h9w9k1r3s3", "threads": 1, "cells": cells}
    assert measure._summary(goals.Goals((row,)), line) == said


@pytest.mark.parametrize(("text", "said"), [(None, "is not there"), ("table = ", "cannot be read")])
def test_a_suite_with_nothing_to_tune(project, text, said):
    path = project / "benchmarks" / "commands" / "tune.toml"
    path.unlink() if text is None else path.write_text(text)
    with contextlib.chdir(project):
        done = CliRunner(env=settings(project)).invoke(main, ["tune"], catch_exceptions=False)
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ")
    assert "benchmarks/commands/tune.toml" in done.stderr
    assert said in done.stderr
