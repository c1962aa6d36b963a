"""S0, a French course page on profiling: four loops, im2col, and what a profiler says of them."""

from __future__ import annotations

import cProfile
import shlex
from collections.abc import Generator
from typing import Any

from benchmarks.harness import cell
from benchmarks.pictures import watched
from benchmarks.tour import charts, profiles
from benchmarks.tour.charts import Picture
from benchmarks.tour.sentences import duration, gap, percent, sentence, times_as
from benchmarks.tour.steps import Comparison, Event, Found, Numbers, Setting, Step, Table, Timings, absent, median, timed

PROBLEM = "n1c1h7w7k1r3s3"
PROFILED = "im2col.naive"
INDEX, BOUNDS = "_unravel", "<built-in method builtins.all>"
AGREE = 2  # standard errors of a share of stacks, within which two shares agree


@sentence
def laying_out(share: float) -> str:
    """What im2col spends its time on."""
    if share > 0.5:
        return f"Laying the windows out takes {percent(share)} of the time: the preparation is dear, and not the product."
    return f"Laying the windows out takes only {percent(share)} of the time: the rest is the product and what surrounds it."


@sentence
def helpers(index: float, bounds: float) -> str:
    """What the two helpers take."""
    both = f"The index helper takes {percent(index)} and the test for the border {percent(bounds)}"
    if index + bounds > 0.3:
        return f"{both}: two small functions that a reader would pass over. They are what to change first."
    return f"{both}: little, so that changing them would gain little."


@sentence
def slowed(ratio: float) -> str:
    """The cost of the profiler."""
    if ratio > 1.1:
        return (
            f"Under the profiler a call takes {times_as(ratio)} times as long: it stops at every call of a function, so that "
            "functions called often look dearer than they are."
        )
    return f"Under the profiler a call takes no longer ({times_as(ratio)} times): its shares can be taken as they are."


@sentence
def sampled(counted: float, stacks: int, there: int) -> str:
    """Whether both kinds of profiler give the index helper the same share."""
    share = there / stacks
    said = f"The index helper has {percent(counted)} of the time by counting and {percent(share)} by sampling"
    if abs(counted - share) <= AGREE * (share * (1 - share) / stacks) ** 0.5:
        return f"{said}: both profilers agree within what {stacks} stacks can tell."
    larger, smaller = ("counting", "sampling") if counted > share else ("sampling", "counting")
    return f"{said}: {larger} gives it more than {smaller}, beyond what {stacks} stacks leave to chance."


class Times(Timings):
    name = "times"
    title = "Four loops, two loops, one product"
    guess = "Fewer loops in Python, less time? im2col has no loop around its product: is it the fastest of those in Python?"
    problem = PROBLEM
    names = ("cpu.loops", "cpu.sliced_loops", "im2col.naive", "im2col.recursive", "cpu.scipy_convolve2d")
    also = ("cpu.windows", "cpu.auto")
    comparisons = (
        Comparison("cpu.sliced_loops", "cpu.loops", "A slice and one sum in place of the two inner loops"),
        Comparison("im2col.naive", "cpu.loops", "im2col with one product", "the four loops"),
        Comparison("im2col.recursive", "im2col.naive", "im2col by recursion", "im2col that takes pixel by pixel"),
        Comparison("cpu.scipy_convolve2d", "cpu.loops", "SciPy's compiled loop", "the four loops"),
    )
    times, unit = 100, "100 calls"
    command = f"convbench try 1x1x7x7 1x1x3x3 {' '.join((*names, *also))}"
    would = "an image of 7x7 pixels through a 3x3 filter by six implementations, and which loops cost what."
    why = (
        "The interpreter takes some time for every step of a loop, whatever the step computes. A product saves steps only if "
        "what prepares it does not take as many: here every tap of every pixel is copied by Python first."
    )


class Counted(Step):
    name = "profile"
    title = "Which function takes the time?"
    guess = "im2col lays out windows, then multiplies once. Which of the two takes the time?"
    words = (PROFILED, PROBLEM, "--flat", "--sort", "cumulative")
    command = shlex.join(["convbench", "profile", *words])
    would = "the profile of 100 calls, a line for each function, and the share of the two helpers of im2col."
    why = (
        "cProfile counts every call of a function and adds up its time: own time without, cumulative time with the functions "
        "that it calls. Read cumulative time from the top down until it falls: there is the function to change."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        yield {"profiling": PROFILED}
        calls = ["--calls", str(setting.choose(20, 100))]
        found = profiles.profile([*self.words, *calls], ["--output"])
        known = profiles.functions(found.files["--output"])
        whole = sum(own for _, own, _ in known.values())
        shares = {name: known[function][2] / whole for name, function in _PARTS.items()}
        count = sum(calls for calls, *_ in known.values())
        return Found({"seconds": whole, "calls": count, "shares": shares}, [found.text])

    def look(self, numbers: Numbers) -> list[str]:
        shares = numbers["shares"]
        return [
            f"{numbers['calls']:,} calls of functions took {duration(numbers['seconds'])}.",
            laying_out(shares["im2col"]),
            helpers(shares["index"], shares["border"]),
        ]

    def draw(self, numbers: Numbers) -> Picture:
        shares = numbers["shares"]
        rest = shares["im2col"] - shares["index"] - shares["border"]
        inside = {"index helper": shares["index"], "test for the border": shares["border"], "rest of im2col": rest}
        bars = {PROFILED: {**inside, "product and checks": 1 - shares["im2col"]}}
        return charts.stacks({name: _percent(parts) for name, parts in bars.items()}, "% of the time", "Shares of the time")


_PARTS = {"im2col": "im2col", "index": INDEX, "border": BOUNDS}


def _percent(parts: dict[str, float]) -> dict[str, float]:
    return {name: 100 * share for name, share in parts.items()}


class Tree(Step):
    name = "tree"
    title = "Who is called from where?"
    guess = "The table has no callers. How much of the time is the profiler's own?"
    words = (PROFILED, PROBLEM)
    command = shlex.join(["convbench", "profile", *words])
    would = "the same profile as a tree of callers, and what the profiler costs."
    why = (
        "A tree shows a function below each of its callers, so that a helper used in two places shows which of them is dear."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        yield {"profiling": PROFILED}
        call = cell.prepare(PROFILED, cell.kind("conv2d").find(PROBLEM)).call
        *_, last = watched.measure({PROFILED: call}, _whole, setting.choose(20, 100))
        found = profiles.profile([*self.words, "--calls", str(setting.choose(20, 100))])
        return Found({"times": 1 + last[PROFILED].cost}, [found.text])

    def look(self, numbers: Numbers) -> list[str]:
        return [slowed(numbers["times"])]


def _whole(profile: cProfile.Profile) -> dict[str, float]:
    return {"call": sum(entry.inlinetime for entry in profile.getstats())}


class Flames(Step):
    name = "flames"
    title = "The same by samples"
    guess = (
        "A sampling profiler stops at no call; it looks at the stack a hundred times a second. Does it give the same shares?"
    )
    words = (PROFILED, PROBLEM)
    command = shlex.join(["convbench", "profile", *words, "--native", "flames.svg"])
    would = "a flame graph with compiled functions, and how far its shares are from those of cProfile."
    why = (
        "Samples cost every function the same, so that their shares are right on average, but uncertain: a share of n stacks "
        "has an error of about 1/sqrt(n). They show compiled functions too, which cProfile adds to their callers."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        yield {"profiling": PROFILED}
        counted = profiles.functions(profiles.profile([*self.words, "--calls", "20"], ["--output"]).files["--output"])
        share = counted[INDEX][2] / sum(own for _, own, _ in counted.values())
        found = profiles.profile([*self.words, "--seconds", str(setting.choose(2, 9))], ["--native"])
        drawing = found.files["--native"]
        whole, there = profiles.stacks(drawing.decode(), INDEX)
        picture = Picture(
            charts.data_url(drawing, "image/svg+xml"), "Flame graph: width is time, a function stands below its caller"
        )
        return Found({"counted": share, "stacks": whole, "there": there}, [], [picture])

    def look(self, numbers: Numbers) -> list[str]:
        return [sampled(numbers["counted"], numbers["stacks"], numbers["there"])]


class Recursion(Timings):
    name = "recursion"
    title = "im2col for any number of axes"
    guess = "The recursive form lays out the same rows again and again. What does keeping them gain?"
    operation, problem = "im2col", "i7x7k3x3p1"
    names = ("cpu.naive", "cpu.recursive", "cpu.recursive_cached")
    also = ("cpu.strided", "cpu.torch_unfold")
    comparisons = (
        Comparison("cpu.recursive", "cpu.naive", "The recursion", "the naive form"),
        Comparison("cpu.recursive_cached", "cpu.recursive", "Keeping sub-results"),
    )
    times, unit = 100, "100 calls"
    command = "convbench try --operation im2col 7x7 3x3 --padding 1"
    would = "the matrix of im2col alone by its naive, recursive and cached forms."
    why = (
        "Windows next to each other share rows. A recursion that takes the first axis off asks for each shared row once for "
        "every window that has it; a cache answers all but the first time, and costs a look-up each."
    )


class Sizes(Step):
    name = "sizes"
    title = "Larger images"
    guess = "Is what is fastest at 7x7 pixels also fastest at larger sizes?"
    names = ("cpu.loops", "cpu.sliced_loops", "im2col.naive", "cpu.scipy_convolve2d")
    command = f"convbench try 1x1x64x64 1x1x3x3 {' '.join(names)}"
    would = "the time over the side of the image, from 7 pixels on."
    why = (
        "Each call costs something once, such as the checks of arguments, and something for every pixel. On a small image "
        "the first counts, on a large one the second alone."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        sizes: dict[str, Any] = {}
        for side in setting.choose((7, 16, 32), (7, 16, 32, 64, 128)):
            problem = cell.kind("conv2d").find(f"n1c1h{side}w{side}k1r3s3")
            sizes[str(side)] = yield from timed(problem, self.names, (), setting.choose(0.1, 0.5))
        return Found({"sizes": sizes})

    def lacking(self, numbers: Numbers) -> str | None:
        return next((why for each in numbers["sizes"].values() if (why := absent(each, self.names))), None)

    def look(self, numbers: Numbers) -> list[str]:
        found = [
            (f"{side}x{side}", median(each, "cpu.loops") / median(each, "cpu.scipy_convolve2d"))
            for side, each in numbers["sizes"].items()
        ]
        return [gap("SciPy's compiled loop", "four loops in Python", found[0], found[-1])]

    def tables(self, numbers: Numbers) -> list[Table]:
        sizes = numbers["sizes"]
        rows = [
            [name, *(duration(median(each, name)) if name in each["seconds"] else "no time" for each in sizes.values())]
            for name in self.names
        ]
        return [Table(["implementation", *(f"{side}x{side}" for side in sizes)], rows)]

    def draw(self, numbers: Numbers) -> Picture:
        series = {
            name: (
                [int(side) for side in numbers["sizes"]],
                [median(each, name) for each in numbers["sizes"].values()],
            )
            for name in self.names
            if all(name in each["seconds"] for each in numbers["sizes"].values())
        }
        return charts.lines(series, "side of the image, pixels", "Time of a call over the size of the image")


STEPS = (Times(), Counted(), Tree(), Flames(), Recursion(), Sizes())
