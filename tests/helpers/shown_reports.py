"""Reports of made-up measurements as commands print them."""

import math

from noises import noisy
from shown_cells import cell, failed, frame, skipped

from convbench.doctor import facts
from convbench.doctor.verdict import Diagnosis
from convbench.gate.report import Report, Row
from convbench.run import reporter
from convbench.run.classes import ClassOutcome, Progress
from convbench.stored import change_points, compare, history, table

NAN = math.nan


# convbench history


def event(kind, change, params, between=1, unbuilt=0, environment="env", noise=0.01, versions=None):
    commits = [history.Commit(f"{n:08d}".ljust(40, "a"), f"Subject of commit {n}") for n in range(20)]
    where = commits[change[1]], commits[change[2]], commits[change[0]], between, unbuilt
    before, after = change[3:]
    ratio = after / before
    found = change_points.Change(kind, change[0] - 1, *change[:3], before, after, ratio, ratio * 0.98, ratio * 1.02, 1e-9)
    return history.Event("conv2d.Layers.time_conv2d", params, environment, "seconds", noise, found, *where, versions or {})


def history_report():
    events = (
        event(change_points.STEP, (7, 6, 7, 1e-3, 1.2e-3), ("'cpu.shift'", "'a'")),
        event(change_points.STEP, (7, 5, 7, 1e-6, 1.1e-6), ("'cpu.shift'", "'[red]b[/red]'"), 2, 1, "other"),
        event(change_points.STEP, (9, 8, 9, 1.0, 0.5), ("'cpu.torch'", "'a'"), noise=0.2),
        event(change_points.STEP, (9, 8, 9, 1.0, 1.5), ("'cpu.new'", "'a'"), versions={"asv_runner": ("0.2.1", "0.3.2")}),
        event(change_points.DRIFT, (10, 0, 11, 1e-3, 1.05e-3), ("'cpu.torch'", "'b'"), 11),
        event(change_points.ALONE, (11, 10, 11, 1e-3, 1.5e-3), ("'im2col.strided'", "'b'")),
    )
    commits = tuple(history.Commit(f"{n:08d}".ljust(40, "a"), "") for n in range(12))
    unbuilt = ((history.Commit("00000006" + "a" * 32, "Subject of commit 6"), "the compiler says no"),)
    return history.History("box", ("env", "other"), commits, 2, unbuilt, 12, 3, 0.013, 4, events)


# convbench compare


def side(value, spread=0.02, samples=20):
    """A time whose quartiles lie half the spread to either side."""
    return compare.Side(value, value * (1 - spread / 2), value * (1 + spread / 2), samples)


def compared(before, after, params=("1",)):
    return compare.ComparedCell("lists.time_sort", params, before, after, *compare.judge(before, after))


def comparison():
    gpu = "skipped, unavailable: gpu.a needs a CUDA device"
    shown = [
        compared(side(1e-3), side(0.1), ("'100 times'",)),
        compared(side(1e-3, 0.004), side(12e-3, 0.004), ("'12 times'",)),
        compared(side(1e-3, 0.08), side(5e-3, 0.08), ("'5 times'",)),
        compared(side(1e-3), side(2e-3), ("'twice'",)),
        compared(side(1e-3, 0.3), side(1.5e-3), ("'[red]noisy[/red]'",)),
        compared(side(1e-3), side(0.99e-3), ("'same'", "2")),
        compared(side(1e-3), side(1e-4), ("'faster'",)),
        compared(side(1e-3), compare.Side(3e-3, samples=0, low=NAN, high=NAN), ("'no samples'",)),
        compared(side(1e-3), compare.Side(reason="failed, WrongAnswer: 3.2 is off by 1.4"), ("'wrong'",)),
        compared(compare.Side(reason="failed"), compare.Side(reason="failed"), ("'wrong both times'",)),
        *(compared(compare.Side(reason=gpu), compare.Side(reason=gpu), (f"'gpu.{n}'",)) for n in range(3)),
        compared(compare.Side(reason="not measured"), compare.Side(reason="skipped, too slow here: 3e9"), ("'slow'",)),
    ]
    return compare.Comparison(
        "00000001" + 32 * "a", "00000002" + 32 * "a", "box", "env", ("older",), compare.worst_first(shown)
    )


# convbench doctor


def machine(**other):
    """A quiet machine of two cores."""
    quiet = {"processor": "A processor (family 25, model 1)", "cores": 2, "usable": (0, 1), "compiler": "cc 12.2.0"}
    quiet |= {"memory": 24 * 2**30, "available": 20 * 2**30, "load": 0.1, "used": 0.02, "stolen": 0.001}
    return facts.MachineFacts(**{**quiet, "governors": None, "boost": None, "mhz": None, **other})


def diagnosis(noises=None, suite=None, **other):
    return Diagnosis(machine(**other), noises or [noisy(0.01), noisy(0.02, "memory")], suite or facts.SuiteFacts())


def fit():
    suite = facts.SuiteFacts(
        ready={"conv2d": ["cpu.a", "cpu.b"]},
        lacking={"conv2d": {"needs a CUDA device": ["gpu.a", "gpu.b"]}, "other": {"needs [red]a compiler": ["gpu.c"]}},
        versions={"python": "3.11.7", "numpy": "2.4.6"},
        pools={"openblas libopenblas": 2, "numba": 1},
    )
    return diagnosis(suite=suite)


def not_fit():
    return diagnosis(
        [noisy(0.2), noisy(1.0, "memory")],
        facts.SuiteFacts(silence="other has no `python -m benchmarks doctor`, which this command needs"),
        used=1.5,
        usable=(1,),
        governors=("powersave",),
        boost=True,
        mhz=2100,
        compiler=None,
    )


# convbench gate


def ended(*found, **more):
    facts = {"machine": "box", "os": "Linux"}
    return Report("0123456789ab" + 28 * "0", "ba9876543210" + 28 * "0", facts, {"level": 0.95}, list(found), **more)


NASTY = Row(
    "a.time_a",
    ["'x|y'", "'<script>alert(1)</script>'", "'@someone'"],
    "broken",
    reason="works on the base and fails on the head: ValueError: a|b <script>alert(1)</script> @someone `#1` [x](y) *z*",
)
SLOWER = {"before": 1.0e-3, "after": 1.25e-3, "ratio": 1.25, "interval": [1.2, 1.3], "rounds": 13}
EVERYTHING = ended(
    NASTY,
    Row("a.time_slow", ["10", "'a'"], "regressed", **SLOWER),
    Row("a.time_slow", ["20", "'a'"], "regressed", **SLOWER, accepted="accepted by --accept: it is right now"),
    Row("a.time_lost", [], "not measured", reason="fails on both sides: OSError"),
    Row("a.time_unclear", [], "ambiguous", 2e-6, 2.1e-6, 1.05, [0.9, 1.21], 40),
    Row("a.time_fast", [], "improved", 2.0, 1.0, 0.5, [0.49, 0.51], 12),
    *(Row("a.time_new", [str(n)], "new", reason="works on the head alone; on the base: AttributeError") for n in range(4)),
    Row("a.peakmem_it", [], "regressed", 5e7, 6e7, 1.2, [1.2, 1.2], 8, unit="bytes"),
    Row("a.track_faults", [], "improved", 12.0, 0.0, rounds=8, unit="files"),
    Row("a.time_same", ["1"], "same", 1e-3, 1e-3, 1.0, [0.999, 1.001], 6, answer="same"),
    Row("a.time_same", ["2"], "same", 1e-3, 1e-3, 1.0, [0.999, 1.001], 6, answer="changed: by at most 1.0e-03"),
    Row("a.time_same", ["3"], "same", 1e-3, 1e-3, 1.0, [0.999, 1.001], 6, notes=["openblas has 2 threads on 1 cores"]),
    Row("a.time_skipped", [], "skipped", reason="the suite skips it (on both sides)"),
    listed=[("a.Ceiling.time_copy", "measures the machine, not the code"), ("b.time_b", "is new: it cannot be imported")],
    rounds=40,
    seconds=123.4,
    environment="virtualenv-py3.11",
)


# convbench run


def told_run(console):
    """A run of three commits, of which one does not build; returns what it came to."""
    tell = reporter.Reporter(console)
    tell.uncommitted_changes()
    tell.not_built_again("00000003" + 32 * "a", "the compiler says no")
    tell.building("00000005" + 32 * "a", 2, is_first=True)
    tell.does_not_build("00000005" + 32 * "a", "pip install failed: no matching distribution for numpy==9")
    tell.building("00000004" + 32 * "a", 1, is_first=False)
    tell.without_device(["conv2d_gpu.Size", "conv2d_gpu.Batch"])
    tell.planned(120, 96, 2, 400.0)
    tell.more_commits(1, 900.0)
    with tell.measuring("[1/2] conv2d.Size", 96) as update:
        update(Progress(48, ("'cpu.torch'", "'64x64'")))
    tell.measured("[1/2] conv2d.Size", ClassOutcome(80, 14, 2), 200.0)
    tell.cut_short("[2/2] conv2d.Layers", 7)
    tell.nothing_missing("00000006" + 32 * "a", 120)
    tell.was_busy("other processes use 1.5 of 2 cores")
    return reporter.Summary(3, 2, {"00000005" + 32 * "a": "", "00000003" + 32 * "a": ""})


# convbench try


def tried():
    """Implementations of one problem: five with times, of which two are about as fast, one that failed, and skipped ones."""
    label = ("n1c64h56w56k64r3s3p1",)
    times = {"cpu.loops": 0.9, "cpu.torch": 1.6e-3, "cpu.auto": 0.7e-3, "cpu.numba_winograd": 0.71e-3, "im2col.strided": 4e-3}
    wrong = "WrongAnswer: 3.2 at (0, 0, 1, 1) is off by 1.4, 1e+05 times what rounding allows"
    cells = [
        *(cell(name, label, value) for name, value in times.items()),
        failed("cpu.wrong", label, wrong),
        skipped("gpu.torch", label, "unavailable: gpu.torch needs a CUDA device; torch sees none here"),
        skipped("gpu.cupy", label, "unavailable: gpu.cupy needs CuPy: pip install cupy-cuda12x"),
        skipped("cpu.one_channel", label, "unsupported: 64 channels"),
    ]
    cells = [{**one, "benchmark": "conv2d"} for one in cells]
    return frame(cells), table.Notes("working tree, 1 thread, nothing stored", "cpu.torch")
