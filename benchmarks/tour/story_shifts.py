"""S4, an English post on one's own convolution in PyTorch: nine shifted images, and a layer of one's own."""

from __future__ import annotations

import io
from collections.abc import Generator
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.harness import cell
from benchmarks.pictures import curves, shifts
from benchmarks.pictures.curves import Curve
from benchmarks.tour import charts
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
    absent,
    median,
    said,
    timed,
    times_table,
)
from benchmarks.workloads import digits

HEIGHT, WIDTH = 427, 640
PHOTO = f"n1c3h{HEIGHT}w{WIDTH}k3r3s3p1"
TASTES = "emboss"
SEEN = 0.01  # of the range from black to white: a mean difference that one sees


@sentence
def unshifted(difference: float) -> str:
    """Whether adding without shifts gives the wrong picture."""
    said = (
        f"Added without shifting, the nine images differ from the filtered photograph by {percent(difference)} of its range"
    )
    if difference > SEEN:
        return f"{said}: the wrong picture, and no time would be worth measuring."
    return f"{said}: with this filter one would not see the mistake."


@sentence
def whole(seconds: float, share: float, fast: float) -> str:
    """The time of Python loops on the whole photograph, from a part of it; fast: that of the built-in."""
    said = f"Loops in Python would take about {duration(seconds / share)} for the whole photograph, by {percent(share)} of it"
    ratio = seconds / share / fast
    if ratio > 1000:
        return f"{said}: {ratio:,.0f} times the built-in's time. That is why the post's author waited 1230 s."
    return f"{said}, {times_as(ratio)} times the built-in's time: less of a difference than in the post."


@sentence
def strided(name: str, ratio: float) -> str:
    """What a stride of two saves; ratio: its time over that without."""
    said = f"With a stride of 2 {name} takes {times_as(ratio)} times the time for a quarter of the outputs"
    if ratio < 0.4:
        return f"{said}: it computes little that is thrown away."
    return f"{said}: much of its time does not depend on how many outputs there are."


@sentence
def slower(ours: str, than: str, ratio: float) -> str:
    """How long a training takes with one layer and another."""
    said = f"Training with {ours} takes {times_as(ratio)} times as long as with {than}"
    if ratio > 1.05:
        return f"{said} (the post's own layer: about 2 times)."
    return f"{said}: it is no slower here (the post's own layer: about 2 times as slow)."


@sentence
def accuracy(ours: str, than: str, interval: tuple[float, float] | None) -> str:
    """Whether two layers differ in accuracy beyond chance."""
    if interval is None:
        return "One start cannot say whether a difference in accuracy is more than chance."
    if not any(interval):
        return f"The accuracy with {ours} is that with {than} from every start: rounding changed no answer that counts."
    low, high = (100 * each for each in interval)
    said = f"The accuracy with {ours} is {low:+.1f} to {high:+.1f} points from that with {than}"
    if low <= 0 <= high:
        return f'{said}: "a little bit more accurate" may be chance, as the post\'s author suspected.'
    return f"{said}: more than chance."


class Steps(Step):
    name = "steps"
    title = "Nine images, shifted and added"
    guess = "A 3x3 filter is nine scaled copies of the image, added. What happens if one forgets to shift them?"
    command = "python -m benchmarks shifts"
    would = "the photograph after every step, and without shifts."
    why = (
        "Every output pixel is a sum over its nine neighbours. Rolling an image brings each neighbour to the place of the "
        "pixel, all pixels at once; what rolls over the edge is cut off."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        yield {"preparing": "the photograph"}
        found = shifts.pictures(TASTES)
        *_, right = found.values()
        wrong = found["nine scaled images added"][1:-1, 1:-1]
        file = io.BytesIO()
        shifts.draw(found, f"{TASTES} by scaled images that are shifted", file)  # type: ignore[arg-type]
        picture = Picture(charts.data_url(file.getvalue(), "image/png"), "The photograph after each step")
        return Found({"difference": float(np.abs(wrong - right).mean())}, [], [picture])

    def look(self, numbers: Numbers) -> list[str]:
        return [unshifted(numbers["difference"]), "Rolled, added and cut, they are the filtered photograph within rounding."]


class Ways(Timings):
    name = "ways"
    title = "Nine shifts, nine products, slices, and the built-in"
    guess = "Nine multiplications over whole images, or nine products over the channels; rolled or sliced. Which is fastest?"
    problem = PHOTO
    names = ("cpu.roll", "cpu.shift", "cpu.roll_matmul", "cpu.torch_shift_matmul", "cpu.torch")
    also = ("cpu.shift_matmul", "cpu.auto")
    comparisons = (
        Comparison("cpu.shift", "cpu.roll", "Slicing", "rolling"),
        Comparison("cpu.roll_matmul", "cpu.roll", "Multiplying over channels", "scaling images"),
        Comparison("cpu.torch_shift_matmul", "cpu.roll_matmul", "Slicing products, in torch,", "rolling them"),
        Comparison("cpu.torch_shift_matmul", "cpu.torch", "One's own", "F.conv2d"),
        Comparison("cpu.auto", "cpu.torch", "This suite's fastest", "F.conv2d"),
    )
    unit = "a photograph"
    command = f"convbench try 1x3x{HEIGHT}x{WIDTH} 3x3x3x3 --padding 1 {' '.join((*names, *also))}"
    would = "one photograph through 3x3 filters by seven implementations."
    why = (
        "The post's ways read and write the whole image nine times. Rolling copies it once more each time, a slice is only a "
        "view; a product over channels does the work of nine images of one channel in one pass."
    )


class Loops(Step):
    name = "pixels"
    title = "The same by loops over pixels"
    guess = "The post waited 1230 s for one photograph by loops in Python. How long would you wait?"
    names = ("cpu.loops", "cpu.torch")
    command = f"convbench try 1x3x54x80 3x3x3x3 --padding 1 {' '.join(names)}"
    would = "a part of the photograph by loops in Python, and what the whole would take."
    why = "Seven nested loops: 22 million multiply-adds for one photograph, each of them dozens of steps of the interpreter."

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        height, width = setting.choose((27, 40), (54, 80))
        problem = cell.kind("conv2d").find(f"n1c3h{height}w{width}k3r3s3p1")
        part = yield from timed(problem, self.names, (), setting.choose(0.1, 0.5))
        photo = yield from timed(cell.kind("conv2d").find(PHOTO), ["cpu.torch"], (), setting.choose(0.1, 0.5))
        return Found({"part": part, "photo": photo, "share": height * width / (HEIGHT * WIDTH)})

    def lacking(self, numbers: Numbers) -> str | None:
        return absent(numbers["part"], self.names)

    def tables(self, numbers: Numbers) -> list[Table]:
        return [times_table(numbers["part"], 1, f"{100 * numbers['share']:.1f} % of a photograph")]

    def draw(self, numbers: Numbers) -> Picture:
        return charts.dots(numbers["part"]["seconds"], "time of a part of a photograph", "Time of a part of a photograph")

    def look(self, numbers: Numbers) -> list[str]:
        return [whole(median(numbers["part"], "cpu.loops"), numbers["share"], median(numbers["photo"], "cpu.torch"))]


class Strides(Step):
    name = "strides"
    title = "Left open by the post: strides and transposed convolution"
    guess = 'The author "can\'t think of a fast way" to stride. Slices can step: what does a stride of 2 save?'
    names = ("cpu.shift", "cpu.torch_shift_matmul", "cpu.torch")
    transposed = ("cpu.shift", "cpu.torch", "cpu.cython_direct")
    comparisons = (Comparison("cpu.shift", "cpu.torch", "A transposed convolution by shifts", "torch's"),)
    command = f"convbench try 1x3x{HEIGHT}x{WIDTH} 3x3x3x3 --stride 2 {' '.join(names)}"
    would = "one's own convolution with a stride of 2, and a transposed convolution by shifted images."
    why = (
        "A slice with a step that is taken before the product saves the outputs that are not wanted; taken after it, they "
        "have been computed. A transposed convolution is the same the other way round: products are added where the slices "
        "came from."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        found: dict[str, Any] = {}
        seconds = setting.choose(0.2, 1.0)
        for stride in (1, 2):
            problem = cell.kind("conv2d").find(f"n1c3h{HEIGHT}w{WIDTH}k3r3s3{'t2' * (stride == 2)}")
            found[f"stride {stride}"] = yield from timed(problem, self.names, (), seconds)
        problem = cell.kind("conv_transpose2d").find("n1c16h64w64k16r4s4t2p1")
        wanted = problem, self.transposed, self.comparisons, seconds, "conv_transpose2d"
        found["transposed"] = yield from timed(*wanted)
        return Found({"problems": found})

    def lacking(self, numbers: Numbers) -> str | None:
        problems = numbers["problems"]
        lacking = [absent(problems[key], self.names) for key in ("stride 1", "stride 2")]
        return next(filter(None, [*lacking, absent(problems["transposed"], self.transposed[:2])]), None)

    def look(self, numbers: Numbers) -> list[str]:
        one, two, transposed = (numbers["problems"][key] for key in ("stride 1", "stride 2", "transposed"))
        return [
            *(strided(name, median(two, name) / median(one, name)) for name in self.names),
            *said(self.comparisons, transposed),
        ]

    def tables(self, numbers: Numbers) -> list[Table]:
        rows = [
            [f"{problem}, {name}", duration(median(found, name))]
            for problem, found in numbers["problems"].items()
            for name in found["seconds"]
        ]
        return [Table(["problem and implementation", "a call"], rows)]

    def draw(self, numbers: Numbers) -> Picture:
        quartiles = {
            f"{problem}, {name}": found["seconds"][name]
            for problem, found in numbers["problems"].items()
            for name in found["seconds"]
        }
        return charts.dots(quartiles, "time of a call", "Time of a call by problem and implementation")


class Training(Step):
    name = "training"
    title = "One's own layer against the built-in, trained"
    guess = 'The post\'s own layer was about half as fast and "a little bit more accurate, maybe random". Was it?'
    names = ("cpu.torch", "cpu.torch_shift_matmul", "cpu.auto")
    command = "python -m benchmarks curves --seeds 3"
    would = "loss and accuracy of the post's network with both layers, over time and over steps."
    why = (
        "Both layers compute the same sums in another order, so that each step differs by rounding alone. From several "
        "starts one sees how much accuracy differs without any cause; only beyond that would a difference mean something."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        functions, lacking = curves.loaded(self.names, 1)
        if missing := next((name for name in self.names[:2] if name in lacking), None):
            raise Lacking(f"{missing}: {lacking[missing]}")
        batch, epochs = digits.schedule().values()
        seeds, passes = setting.choose((2, min(epochs, 4)), (3, epochs))
        for done, steps, found in curves.train(functions, "text", batch, passes, seeds):
            last = found
            yield {"sampled": done / steps}
        data = digits.load()
        tested = min(len(data.test_labels), curves.MAX_TESTED)
        return Found({"curves": [asdict(each) for each in last], "batch": batch, "tested": tested, "data": data.name})

    def look(self, numbers: Numbers) -> list[str]:
        found = _by_name(numbers)
        seconds = {name: float(np.mean([each.seconds[-1] for each in own])) for name, own in found.items()}
        built_in, own, ours = self.names
        sentences = [
            slower("one's own layer", "the built-in", seconds[own] / seconds[built_in]),
            accuracy("one's own layer", "the built-in", curves.difference(found[own], found[built_in])),
        ]
        if ours in found:
            sentences.append(slower("this suite's layer", "the built-in", seconds[ours] / seconds[built_in]))
        return sentences

    def tables(self, numbers: Numbers) -> list[Table]:
        rows = []
        for name, own in _by_name(numbers).items():
            loss, right = (np.mean([getattr(each, what)[-1] for each in own]) for what in ("losses", "accuracies"))
            step = np.mean([each.seconds[-1] / each.steps[-1] for each in own])
            rows.append([name, duration(float(step)), f"{loss:.3g}", f"{100 * right:.1f} %"])
        title = f"of {numbers['tested']} test images"
        return [Table(["layer", f"a step of {numbers['batch']} images", "loss", title], rows)]

    def draw(self, numbers: Numbers) -> Picture:
        with charts.look():
            drawn, axes = charts.figure(charts.WIDTH, 4.2, nrows=2, ncols=2, sharex="col", sharey="row")
            looks = zip(charts.COLOURS, (5, 3, 1.2, 1.2), strict=False)  # lines that lie on one another are all seen
            for (colour, thick), (name, own) in zip(looks, _by_name(numbers).items(), strict=False):
                over = np.mean([each.seconds for each in own], axis=0), own[0].steps
                losses = np.array([each.losses for each in own])
                rights = 100 * np.array([each.accuracies for each in own])
                for row, values in zip(axes, (losses, rights), strict=True):
                    for axis, x in zip(row, over, strict=True):
                        axis.plot(x, np.median(values, axis=0), color=colour, label=name, linewidth=thick)
                        axis.fill_between(x, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.15, lw=0)
            axes[0, 0].set(ylabel="loss")
            axes[1, 0].set(ylabel="named rightly, %", xlabel="seconds of training")
            axes[1, 1].set(xlabel="steps")
            drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=8)
            return charts.svg(drawn, "Loss and accuracy over time and over steps, median and range of the starts")


def _by_name(numbers: Numbers) -> dict[str, list[Curve]]:
    return curves.by_name([Curve(**each) for each in numbers["curves"]])


STEPS = (Steps(), Ways(), Loops(), Strides(), Training())
