"""What cpu.auto is tuned on, the table that the times become, and `convbench tune` in a project of its own."""

import contextlib
import gzip
import json
import os
import re
import signal
import subprocess
import sys

import pytest
from auto_tables import HERE
from choices import asked, needs_compiled
from click.testing import CliRunner
from command_line import settings
from hypothesis import given
from hypothesis import strategies as st
from speed_suites import with_suite

from benchmarks.commands import tune as tuning
from benchmarks.workloads import random_problems
from benchmarks.workloads.problems import Problem
from convbench.cli.main import main
from convbench.speed import goals, measure
from convbench.speed import tuning as tune_command
from impls.conv2d import choice, measurements


@given(st.integers(0, 1000))
def test_drawn_problems_are_those_of_their_seed(seed):
    found = random_problems.generate(20, seed)
    assert [p.label for p in found] == [p.label for p in random_problems.generate(20, seed)]
    assert len({p.label for p in found}) == 20
    assert all(random_problems.MIN_FLOPS <= p.flops <= random_problems.MAX_FLOPS for p in found)
    assert all(Problem.parse(p.label) == p for p in found)


def times_of(folder, *lines):
    """A file of lines as `convbench tune` writes them, by what the cells of each have."""
    texts = []
    for label, threads, cells in lines:
        made = [{"name": name, "status": "ok", "samples": found} for name, found in cells.items() if isinstance(found, list)]
        made += [{"name": name, "status": "skipped", "reason": why} for name, why in cells.items() if isinstance(why, str)]
        texts.append(json.dumps({"problem": label, "threads": threads, "cells": made}))
    path = folder / "01234567.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(texts).encode()))
    return path


def test_times_become_the_table_that_comes_with_the_package(tmp_path, monkeypatch):
    """The mean over threads and processes; late ones at most LATE; nothing where a machine could not compute it."""
    label, other = "n1c64h28w30k64r3s3t2p1x2d2g2", "n1c1h64w64k1r3s3"
    root3 = measurements.LATE**0.5
    folder = tmp_path / "results" / "box" / "tune"
    folder.mkdir(parents=True)
    times_of(
        folder,
        (label, 1, {"cpu.torch": [1.0, 9.0, 1.0], "cpu.shift": [root3], "cpu.fft": [99.0], "cpu.loops": "unsupported: it"}),
        (label, 2, {"cpu.torch": [1.0], "cpu.shift": [1.0], "cpu.fft": "left out: a call takes 9 times as long"}),
        (other, 1, {"cpu.torch": "too slow here: x", "cpu.shift": [1e-6]}),
    )
    (tmp_path / "tune.toml").write_text(
        'shipped = ["cpu.torch", "cpu.shift", "cpu.fft", "cpu.loops"]\n[[machine]]\ntimes = "box/tune/01234567.jsonl.gz"\n'
        f'processor = "{HERE}"\ninstruction_set = "avx9"\ndate = "2026-11-21"\n'
    )
    monkeypatch.setattr(tuning, "SETTINGS", tmp_path / "tune.toml")
    monkeypatch.setattr(tuning, "ROOT", tmp_path)
    monkeypatch.setattr(measurements, "FILE", tmp_path / "auto.json")
    monkeypatch.setattr(measurements, "processor", lambda: HERE)
    (said,) = tuning.tables({})
    assert said == {"table": "auto.json", "bytes": (tmp_path / "auto.json").stat().st_size}
    content = json.loads((tmp_path / "auto.json").read_text())
    assert content["problems"] == [
        [[1, 64, 28, 30, 64, 3, 3, 2, 1, 2, 2, 2], "agz-"],  # a quarter of the letters
        [[1, 1, 64, 64, 1, 3, 3, 1, 0, 0, 1, 1], "za--"],
    ]
    measurements.table.cache_clear()
    known = measurements.table("avx9")
    measurements.table.cache_clear()
    assert known.problems == tuple(asked(Problem.parse(one)) for one in (label, other))
    assert known.ratios(0) == pytest.approx(
        {"cpu.torch": 1, "cpu.shift": measurements.LATE**0.24, "cpu.fft": measurements.LATE}
    )
    assert known.about == "box, commit 01234567, 2026-11-21"


def test_the_committed_table_is_what_the_command_makes(tmp_path, monkeypatch):
    committed = measurements.FILE.read_bytes()
    monkeypatch.setattr(measurements, "FILE", tmp_path / "auto.json")
    monkeypatch.setattr(tuning, "ROOT", tuning.ROOT)
    with contextlib.suppress(ValueError):  # the file lies outside of the root
        list(tuning.tables({}))
    assert (tmp_path / "auto.json").read_bytes() == committed


def test_a_table_is_of_compiled_kernels(monkeypatch):
    monkeypatch.setattr(choice, "instruction_set", lambda: None)
    with pytest.raises(ImportError, match="the compiled kernels are not built"):
        next(tuning.problems({"sets": [], "random": 1, "seed": 1}))


def test_what_is_measured_is_of_sets_and_drawn_once_each(monkeypatch):
    monkeypatch.setattr(choice, "instruction_set", lambda: "avx9")
    found = [event["problem"] for event in tuning.problems({"sets": ["mnist", "mnist"], "random": 2, "seed": 1})]
    assert found == list(dict.fromkeys(found))
    assert found[-2:] == [problem.label for problem in random_problems.generate(2, 1)]


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


# convbench tune, in a project of its own

LABELS = ["n1c1h12w12k1r3s3p1", "n1c16h12w12k16r3s3p1", "n1c16h12w12k16r1s1"]
SETTINGS = """
sets = ["mnist"]
random = 0
seed = 1
seconds = 0.001
within = 3.0
threads = [1]
candidates = ["cpu.cython_direct", "cpu.cython_packed"]
"""


@pytest.fixture
def project(tmp_path):
    """A project with this suite, something small to tune, everything committed."""
    problems = "".join(f'[[problem]]\nlabel = "{one}"\n' for one in LABELS)
    return with_suite(
        tmp_path / "project", {"benchmarks/commands/tune.toml": SETTINGS, "benchmarks/workloads/sets/mnist.toml": problems}
    )


def tune(folder):
    return subprocess.Popen(
        [sys.executable, "-m", "convbench", "tune"],
        cwd=folder,
        env={**os.environ, **settings(folder), "XDG_CACHE_HOME": str(folder.parent / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.proof
@needs_compiled
def test_tuning_goes_on_where_it_was_stopped_and_is_remembered(project, tmp_path):
    process = tune(project)
    for text in process.stdout:
        if text.startswith("[1/"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in err) == (1, False)
    assert "the same command resumes there" in err
    assert not list(tmp_path.glob("cache/impls/wisdom/*.json"))
    out, err = (process := tune(project)).communicate(timeout=120)
    assert process.returncode == 0, err
    assert re.search(rf"[12] of {len(LABELS)} measurements are to be made", out)
    here = f"{measurements.processor()}, {choice.instruction_set()}"
    assert f"impls.conv2d now knows {len(LABELS)} problems on 1 thread of {here}\n" in out
    assert re.search(r"\nthe times are in results/[^/]+/tune/[0-9a-f]{8}\.jsonl\.gz\n$", out)
    (file,) = tmp_path.glob("cache/impls/wisdom/*.json")
    found = json.loads(file.read_text())
    assert len(found) == len(LABELS)
    assert {name for one in found.values() for name in one} <= {"cpu.cython_direct", "cpu.cython_packed"}


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
