"""S1, a Spanish post on benchmarking with PyTorch: reading satellite tiles, and training on them."""

from __future__ import annotations

import random
import tempfile
import timeit
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.commands import tile_traces
from benchmarks.harness import cell
from benchmarks.pictures import curves, tile_curves, tile_sheet
from benchmarks.timing import threads
from benchmarks.tour import charts
from benchmarks.tour.charts import Picture
from benchmarks.tour.sentences import Ratio, duration, gain, percent, sentence, times_as
from benchmarks.tour.steps import Comparison, Event, Found, Lacking, Numbers, Setting, Step, Table, Timings, absent, timed
from benchmarks.workloads import eurosat
from benchmarks.workloads.tiles import Batch

POSTS = ("cpu.rasterio", "cpu.skimage", "cpu.skimage_torch")
SWEPT = (*POSTS, "cpu.raw_numba", "cpu.mmap_numba")
WORKERS = (1, 4)
QUIET = 0.1  # clocks that time one call on a quiet machine differ by less
WAITS = 0.1  # of a step's time: a share of waiting that a faster reader would save
CHANCE = 0.02  # of accuracy, that two trainings from one start may differ by rounding


@sentence
def agree(times: dict[str, float]) -> str:
    """Whether several clocks say the same of one call."""
    spread = max(times.values()) / min(times.values()) - 1
    if spread < QUIET:
        return f"The {len(times)} clocks agree within {percent(spread)}."
    slow, fast = (choose(times, key=times.__getitem__) for choose in (max, min))
    said = f"The clocks differ by {percent(spread)}, from {fast} to {slow}"
    return f"{said}, though all time one call in turn: look for what else runs, and at what each of them counts."


@sentence
def waited(name: str, share: float) -> str:
    """Whether a reader holds up the training."""
    said = f"With {name} the network waits for tiles in {percent(share)} of its time"
    if share > WAITS:
        return f"{said}: a faster reader makes the training faster, by up to {times_as(1 / (1 - share))} times."
    return f"{said}: no reader, however fast, would gain more than {times_as(1 / (1 - share))} times."


@sentence
def trained(first: str, other: str, seconds: Sequence[float], right: Sequence[float]) -> str:
    """What another reader changes in a training: time, and accuracy on tiles that it has not seen."""
    time = f"Training with {other} takes {times_as(seconds[1] / seconds[0])} times as long as with {first}"
    if abs(right[1] - right[0]) <= CHANCE:
        return f"{time} and names as many test tiles rightly ({percent(right[1])} and {percent(right[0])})."
    better = other if right[1] > right[0] else first
    return (
        f"{time}; {better} names more test tiles rightly ({percent(right[1])} and {percent(right[0])}), from other roundings."
    )


class Readers(Timings):
    name = "times"
    title = "Three readers, and faster ones"
    guess = "Three libraries read the same 32 tiles of 13 bands, of which three are wanted. How far apart are they?"
    operation, problem = "read_batch", "n32b13h64w64"
    names = POSTS
    also = ("cpu.torch_dataloader", "cpu.tifffile", "cpu.tifffile_numba", "cpu.raw_numba", "cpu.memmap", "cpu.mmap_numba")
    comparisons = (
        Comparison("cpu.skimage", "cpu.rasterio", "scikit-image", "rasterio"),
        Comparison("cpu.skimage_torch", "cpu.skimage", "Normalising in torch instead of NumPy"),
        Comparison("cpu.raw_numba", "cpu.skimage", "A system call and one compiled pass", "scikit-image"),
        Comparison("cpu.mmap_numba", "cpu.raw_numba", "Packing all tiles into one mapped file beforehand"),
    )
    times, unit = 10, "10 batches of 32"
    command = "convbench table --layout compare --bench read_batch"
    would = "the time of ten batches by nine readers, all from the system's file cache."
    why = (
        "A library that knows many formats, projections and drivers asks more of each file than where its pixels are. What "
        "is left without it is a system call for a file and one pass over the pixels; what is packed once needs not even the "
        "call."
    )


class Clocks(Step):
    name = "clocks"
    title = "Which clock?"
    guess = "timeit, torch's Timer and this suite time the same call. Do they agree?"
    command = "python -m timeit; torch.utils.benchmark.Timer; benchmarks/timing/clock.py"
    would = "one call by three clocks."
    why = (
        "All three repeat the call until the clock's own resolution does not count, and collect no garbage meanwhile. timeit "
        "tells you to take the minimum, torch the median of blocks; what they share is that a single call proves nothing."
    )
    reader = "cpu.skimage"

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        try:
            from torch.utils.benchmark import Timer
        except ImportError as error:
            raise Lacking(f"torch's Timer cannot be imported: {error}") from error
        yield {"preparing": self.reader}
        ready = cell.prepare(self.reader, Batch(32), 1, "read_batch")
        timer, number = Timer("call()", globals={"call": ready.call}), 5
        clocks: dict[str, Callable[[], float]] = {
            "timeit": lambda: timeit.timeit(ready.call, number=number) / number,
            "torch's Timer": lambda: timer.timeit(number).median,
            "this suite": lambda: ready.block(number) / number,
        }
        times: dict[str, list[float]] = {name: [] for name in clocks}
        turns = random.Random(0)
        for _ in range(setting.choose(7, 25)):
            for name in turns.sample(list(clocks), len(clocks)):
                ready.call()
                times[name].append(clocks[name]())
        return Found({"times": {name: float(np.median(each)) for name, each in times.items()}})

    def look(self, numbers: Numbers) -> list[str]:
        return [agree(numbers["times"])]

    def tables(self, numbers: Numbers) -> list[Table]:
        return [Table(["clock", "a batch of 32"], [[name, duration(each)] for name, each in numbers["times"].items()])]


class Sweep(Step):
    name = "sweep"
    title = "Batch sizes, threads and readers in one table"
    guess = "Four threads on each reader: four times as fast? At every batch size?"
    command = "convbench table --layout compare --bench read_batch"
    would = "torch's Compare: a row a batch size, a column a reader, a block a thread count."
    why = (
        "Threads help where the interpreter's lock is not held: in system calls and in compiled code that lets go of it. One "
        "tile cannot be shared, and starting threads costs as much as some readers take for a tile. More threads than cores "
        "help only while some of them wait."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        found: dict[str, Any] = {}
        have = len(threads.cores())
        for workers in reversed(WORKERS):  # a process that was confined to one core stays there
            for n in setting.choose((1, 32, 64), (1, 32, 64, 1024)):
                wanted = Batch(n, workers=workers), SWEPT, (), setting.choose(0.05, 0.2), "read_batch"
                found[f"{n} {workers}"] = yield from timed(*wanted, min(workers, have))
        return Found({"cells": found, "cores": have})

    def lacking(self, numbers: Numbers) -> str | None:
        one = numbers["cells"][f"1 {WORKERS[0]}"]
        return absent(one, POSTS) if not one["seconds"].keys() & set(POSTS) else None

    def look(self, numbers: Numbers) -> list[str]:
        cells = numbers["cells"]
        n = max(int(place.split()[0]) for place in cells)
        one, several = (cells[f"{n} {workers}"]["seconds"] for workers in WORKERS)
        sentences = []
        for name in (name for name in POSTS if name in one and name in several):
            (low, middle, high), (least, half, most) = one[name], several[name]
            found = Ratio(middle / half, low / most, high / least)
            sentences.append(gain(f"{WORKERS[1]} threads on batches of {n} by {name}, on {numbers['cores']} cores,", found))
        return sentences

    def texts(self, numbers: Numbers) -> list[str]:
        try:
            from torch.utils.benchmark import Compare, Measurement, TaskSpec
        except ImportError:
            return []
        measured = []
        for place, found in sorted(numbers["cells"].items(), key=lambda item: [int(each) for each in item[0].split()]):
            n, workers = place.split()
            for name, quartiles in found["seconds"].items():
                task = TaskSpec("", "", label="read_batch", sub_label=n, description=name, num_threads=int(workers))
                measured.append(Measurement(number_per_run=1, raw_times=quartiles, task_spec=task))
        shown = Compare(measured)
        shown.trim_significant_figures()
        return [str(shown).strip()]


class Sheet(Step):
    name = "sheet"
    title = "What is read"
    guess = "Would you see it if tiles or their classes were mixed up?"
    command = "python -m benchmarks tile_sheet"
    would = "25 tiles with the names of their classes."
    why = "A time says nothing about what was read. Tiles of one class look alike, so that a wrong label stands out."

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        yield {"preparing": "cpu.skimage"}
        images, names = tile_sheet.chosen("cpu.skimage", 0)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "sheet.png")
            tile_sheet.draw(images, names, f"{len(names)} tiles of {eurosat.source()}", path)
            picture = Picture(charts.data_url(path.read_bytes(), "image/png"), "Tiles and their classes")
        return Found({"classes": len(set(names)), "tiles": len(names), "source": eurosat.source()}, [], [picture])

    def look(self, numbers: Numbers) -> list[str]:
        return [f"{numbers['tiles']} tiles of {numbers['classes']} classes, from {numbers['source']}."]


class Traces(Step):
    name = "traces"
    title = "Does the reader hold up the training?"
    guess = "ResNet-18 trains on the tiles. Which share of a step is waiting for the next batch?"
    command = "python -m benchmarks tile_traces"
    would = (
        "torch's profile of three training steps for each reader, as trace files, and how long the network waited for tiles."
    )
    why = (
        "The profiler lets one batch pass, warms up in the next and records three: the first calls of everything are slower. "
        "A reader counts only by its share: the rest of the step stays as it is."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        names = setting.choose(("cpu.rasterio", "cpu.raw_numba"), tile_traces.READERS)
        request = {"names": list(names), "batch": setting.choose(4, 16), "folder": str(setting.folder / "traces")}
        found, lacking = {}, {}
        for event in tile_traces.run(request):
            if "skipped" in event:
                lacking[event["name"]] = event["skipped"]
            elif "trace" in event:
                trace = str(Path(event["trace"]).relative_to(cell.CHECKOUT))
                found[event["name"]] = {"trace": trace, **{key: event[key] for key in ("batches", "seconds", "waiting")}}
            else:
                yield event
        if not found:
            raise Lacking("; ".join(f"{name}: {reason}" for name, reason in lacking.items()))
        return Found({"readers": found, "batch": request["batch"], "lacking": lacking})

    def look(self, numbers: Numbers) -> list[str]:
        return [
            *(waited(name, each["waiting"] / each["seconds"]) for name, each in numbers["readers"].items()),
            "The traces open in https://ui.perfetto.dev; TensorBoard shows their folder as runs.",
        ]

    def tables(self, numbers: Numbers) -> list[Table]:
        rows = [
            [name, duration(each["seconds"] / each["batches"]), percent(each["waiting"] / each["seconds"])]
            for name, each in numbers["readers"].items()
        ]
        return [Table(["reader", f"a batch of {numbers['batch']}", "waiting"], rows)]

    def notes(self, numbers: Numbers) -> list[str]:
        traces = [f"The trace of {name}: {each['trace']}" for name, each in numbers["readers"].items()]
        return [*traces, *super().notes(numbers)]

    def draw(self, numbers: Numbers) -> Picture:
        bars = {
            name: {
                "waiting for tiles": 1e3 * each["waiting"] / each["batches"],
                "training": 1e3 * (each["seconds"] - each["waiting"]) / each["batches"],
            }
            for name, each in numbers["readers"].items()
        }
        return charts.stacks(bars, "ms a batch under the profiler", "Waiting and training by reader")


class Curves(Step):
    name = "curves"
    title = "The training itself"
    guess = "Two readers give the network the same numbers. Do loss and accuracy agree, and which is done first?"
    command = "python -m benchmarks tile_curves"
    names = ("cpu.rasterio", "cpu.raw_numba")
    would = "loss and accuracy of ResNet-18 on both halves of the tiles, over time, by two readers."
    why = (
        "Readers that give equal values in equal order train equal networks, but for rounding; only the time between two "
        "steps differs. Normalising layers keep means of what they have seen: until these have settled, after some sixty "
        "batches, test tiles are named by chance."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        functions, lacking = curves.loaded(self.names, len(threads.cores()), "train_tiles")
        for name, reason in lacking.items():
            raise Lacking(f"{name}: {reason}")
        count, passes = setting.choose((50, 2), (500, 3))
        for done, batches, found in tile_curves.train(functions, count, passes, 0):
            last = found
            yield {"sampled": done / batches}
        return Found({"tiles": count, "curves": [asdict(curve) for curve in last]})

    def look(self, numbers: Numbers) -> list[str]:
        first, other = numbers["curves"]
        last = ([each["seconds"][-1], each["accuracies"]["test"][-1]] for each in (first, other))
        seconds, right = zip(*last, strict=True)
        return [trained(first["name"], other["name"], seconds, right)]

    def tables(self, numbers: Numbers) -> list[Table]:
        rows = [
            [
                each["name"],
                duration(each["seconds"][-1]),
                *(f"{each['losses'][half][-1]:.3g}, {percent(each['accuracies'][half][-1])}" for half in tile_curves.HALVES),
            ]
            for each in numbers["curves"]
        ]
        title = f"{numbers['curves'][0]['batches'][-1]} batches of {tile_curves.BATCH}"
        return [Table(["reader", title, "training: loss, named rightly", "test: loss, named rightly"], rows)]

    def draw(self, numbers: Numbers) -> Picture:
        with charts.look():
            drawn, axes = charts.figure(charts.WIDTH, 2.8, nrows=1, ncols=2)
            for colour, each in zip(charts.COLOURS, numbers["curves"], strict=False):
                for half, style in zip(tile_curves.HALVES, ("-", "--"), strict=True):
                    more = {"color": colour, "linestyle": style, "label": f"{each['name']}, {half}", "marker": "."}
                    axes[0].plot(each["seconds"], each["losses"][half], **more)
                    axes[1].plot(each["seconds"], [100 * right for right in each["accuracies"][half]], **more)
            axes[0].set(xlabel="seconds of training", ylabel="loss", xlim=(0, None))
            axes[1].set(xlabel="seconds of training", ylabel="named rightly, %", xlim=(0, None), ylim=(0, 100))
            drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=8)
            return charts.svg(drawn, "Loss and accuracy over time")


STEPS = (Readers(), Clocks(), Sweep(), Sheet(), Traces(), Curves())
