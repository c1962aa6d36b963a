"""S2, a Japanese post on Cython and Chainer's MNIST example: what to compile, and what not."""

from __future__ import annotations

import shlex
from collections.abc import Generator
from dataclasses import asdict
from typing import Any

from benchmarks.errors import Skip
from benchmarks.harness import cell
from benchmarks.pictures import ladder
from benchmarks.timing import limits
from benchmarks.tour import charts, profiles
from benchmarks.tour.charts import Picture
from benchmarks.tour.sentences import duration, percent, sentence, times_as
from benchmarks.tour.steps import (
    Comparison,
    Event,
    Found,
    Lacking,
    Numbers,
    Setting,
    Step,
    Table,
    Timings,
    last_of,
    median,
    timed,
)

LABEL = ladder.PROBLEM.label
THEIRS = {"update": 448 / 755, "products": 187 / 755, "fill": 32 / 755}
DONE = 1.5  # times the copy of its bytes: what is as near as this cannot be made much faster


@sentence
def named(shares: dict[str, float]) -> str:
    """What the profile names: the part that takes most."""
    largest = max(shares, key=shares.__getitem__)
    said = f"Most of a step is {largest}: {percent(shares[largest])}"
    if largest == "update":
        return f"{said}, as in the post ({percent(THEIRS['update'])}). So the update is what to compile."
    return f"{said}, and not the update ({percent(shares['update'])}; in the post {percent(THEIRS['update'])}). Start there."


@sentence
def reach(share: float, whole: float) -> str:
    """How much of the update's share was gained; whole: how many times as fast a step became."""
    best = 1 / (1 - share)
    said = f"Without any update a step would be {times_as(best)} times as fast"
    if whole > 1.05 * best:
        return f"{said}. The last rung is {times_as(whole)} times as fast: it also shortens what is not the update."
    if whole > 1 + 0.8 * (best - 1):
        return f"{said}. The last rung is {times_as(whole)} times as fast: little of the update is left."
    return f"{said}. The last rung is {times_as(whole)} times as fast: a good part of the update is left."


@sentence
def memory_bound(name: str, seconds: float, limit: float) -> str:
    """How far an update is from moving its bytes."""
    times = seconds / limit
    said = f"{name} takes {times_as(times)} times as long as copying as many bytes as one pass has to move"
    if times < 0.9:
        return f"{said}: caches keep a part of it, so that memory is not what bounds it."
    if times < DONE:
        return f"{said}: it is bound by memory, and no arithmetic however fast would help."
    return f"{said}: more passes than one, or more arithmetic than a copy hides."


class Profiled(Step):
    name = "profile"
    title = "Profile first"
    guess = "A perceptron of 1.8 million parameters makes a step on 100 images: products, then Adam. Which takes longer?"
    words = ("cpu.numpy", LABEL, "--operation", "train_step", "--flat")
    command = shlex.join(["convbench", "profile", *words, "--graph", "FILE.svg"])
    would = "a flat profile by own time, the call graph, and the shares of update, products and fill."
    why = (
        "A product of matrices does hundreds of multiplications for every number that it loads; Adam's update does about "
        "ten, and NumPy makes a pass over memory for each of them."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        yield {"profiling": "cpu.numpy"}
        found = profiles.profile([*self.words, "--calls", str(setting.choose(10, 60))])
        texts, pictures = [found.text], []
        try:
            drawing = profiles.profile([*self.words, "--calls", "10"], ["--graph"]).files["--graph"]
            pictures.append(Picture(charts.data_url(drawing, "image/svg+xml"), "The call graph, a box for each function"))
        except Lacking as error:
            texts.append(f"No call graph: {error}")
        calls = ladder.prepare("cpu.numpy")
        last = yield from last_of(ladder.measure(calls), setting.choose(8, 40))
        parts = last["cpu.numpy"].parts
        return Found({"shares": {part: each / sum(parts.values()) for part, each in parts.items()}}, texts, pictures)

    def look(self, numbers: Numbers) -> list[str]:
        return [named(numbers["shares"])]

    def draw(self, numbers: Numbers) -> Picture:
        bars = {"here": numbers["shares"], "the post": {**THEIRS, "rest": 1 - sum(THEIRS.values())}}
        shown = {name: {part: 100 * share for part, share in parts.items()} for name, parts in bars.items()}
        return charts.stacks(shown, "% of a step", "Shares of a step of training")


class Rungs(Timings):
    operation, problem = "train_step", LABEL
    unit = "a step"
    seconds = 0.6, 4.0

    @property
    def command(self) -> str:  # type: ignore[override]
        return f"convbench try --operation train_step {LABEL} {' '.join(self.names)}"


class Script(Rungs):
    name = "script"
    title = "Compile the script unchanged, then with types"
    guess = "Cython compiles the training script as it is. How much faster is the training?"
    names = ("cpu.numpy", "cpu.cython_untyped", "cpu.cython_typed")
    comparisons = (
        Comparison("cpu.cython_untyped", "cpu.numpy", "Compiling the script unchanged"),
        Comparison("cpu.cython_typed", "cpu.numpy", "Static types in the script"),
    )
    would = "a step of training by the script in Python, compiled as it is, and compiled with static types."
    why = "The script only calls NumPy. Compiling it saves the interpreter's time between the calls, and nothing within them."


class Moved(Rungs):
    name = "move"
    title = "Move the hot spot, then fuse it"
    guess = "Now the update alone is compiled; then everything that the profile names. What is each worth?"
    names = ("cpu.numpy", "cpu.cython_update", "cpu.cython_fused")
    comparisons = (
        Comparison("cpu.cython_update", "cpu.numpy", "Compiling the update"),
        Comparison("cpu.cython_fused", "cpu.numpy", "Fusing it into one pass, with all else that the profile names,"),
    )
    would = "a step with the update compiled, and with the update fused into one pass."
    why = "Compiled as one loop, the update reads and writes each array once; NumPy reads and writes one in every operation."


class Ladder(Step):
    name = "ladder"
    title = "All rungs side by side"
    guess = "What is left of the update on the last rung?"
    command = "python -m benchmarks ladder"
    would = "every rung's step in parts: update, products, fill and the rest."
    why = (
        "Amdahl's law: what takes a share s of the time gains at most 1 / (1 - s), however fast it becomes. After each rung "
        "the profile has another first line, and that is where the next one starts."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        calls: dict[str, Any] = {}
        for name in ladder.RUNGS:
            yield {"preparing": name}
            calls |= ladder.prepare(name)
        found = yield from last_of(ladder.measure(calls), setting.choose(8, 60))
        return Found({"rungs": {name: asdict(each) for name, each in found.items()}})

    def look(self, numbers: Numbers) -> list[str]:
        rungs = numbers["rungs"]
        first, *_, last = rungs.values()
        parts = first["parts"]
        return [reach(parts["update"] / sum(parts.values()), first["seconds"] / last["seconds"])]

    def tables(self, numbers: Numbers) -> list[Table]:
        rows = []
        for name, each in numbers["rungs"].items():
            rung = ladder.RUNGS[name]
            steps = duration(ladder.STEPS * each["seconds"])
            rows.append([name, rung.what.replace("\n", " "), steps, f"{rung.seconds} s" if rung.seconds else ""])
        return [Table(["rung", "compiled", f"{ladder.STEPS:,} steps here", "the post"], rows)]

    def draw(self, numbers: Numbers) -> Picture:
        bars = {
            name: {part: 1e3 * seconds for part, seconds in each["parts"].items()} for name, each in numbers["rungs"].items()
        }
        return charts.stacks(bars, "ms a step, under the profiler", "A step of training in parts, by rung")


class Alone(Timings):
    name = "update"
    title = "The update alone, and the limit of memory"
    guess = "One pass over the arrays: how near is it to what memory allows?"
    operation, problem = "adam_step", "mnist-perceptron"
    names = ("cpu.numpy", "cpu.cython_untyped", "cpu.cython_typed", "cpu.cython_fused")
    also = ("cpu.numpy_inplace", "cpu.numba", "cpu.torch_foreach", "cpu.torch_fused")
    comparisons = (
        Comparison("cpu.cython_untyped", "cpu.numpy", "Compiling the update unchanged"),
        Comparison("cpu.cython_typed", "cpu.numpy", "Static types"),
        Comparison("cpu.cython_fused", "cpu.numpy", "One pass"),
    )
    unit = "an update"
    command = f"convbench try --operation adam_step {problem}"
    would = "the update of 1.8 million parameters by eight implementations, beside a copy of as many bytes."
    why = (
        "An update reads four arrays and writes three. That much has to move through memory, and a copy shows how long it "
        "takes: the roofline of this problem. The distance to it is all that is left to gain."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        problem = cell.kind(self.operation).find(self.problem)
        moved = cell.task(self.operation, problem).describe()["bytes"]
        wanted = problem, [*self.names, *self.also], self.comparisons, setting.choose(*self.seconds), self.operation
        lacking = {}
        try:
            beside = {"copy": limits.copying(moved, 1)}
        except Skip as skip:
            beside, lacking["copy"] = {}, str(skip)
        numbers = yield from timed(*wanted, beside=beside)
        return Found({**numbers, "lacking": {**numbers["lacking"], **lacking}, "bytes": moved})

    def look(self, numbers: Numbers) -> list[str]:
        updates = {"NumPy's update": "cpu.numpy", "The fused update": "cpu.cython_fused"}
        return [
            *super().look(numbers),
            *(
                memory_bound(update, median(numbers, name), limit)
                for limit in numbers["beside"].values()
                for update, name in updates.items()
            ),
        ]

    def tables(self, numbers: Numbers) -> list[Table]:
        (table,) = super().tables(numbers)
        copies = [
            [f"{name} of {numbers['bytes'] / 1e6:.0f} MB", duration(seconds), "", ""]
            for name, seconds in numbers["beside"].items()
        ]
        return [Table(table.titles, [*copies, *table.rows])]


STEPS = (Profiled(), Script(), Moved(), Ladder(), Alone())
