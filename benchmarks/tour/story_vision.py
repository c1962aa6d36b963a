"""S3, notes on speeding up a program for computer vision: less work, batches, fusion, and the speed of light."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import asdict, replace
from typing import Any

from benchmarks.commands import bound
from benchmarks.commands.bound import Parts
from benchmarks.errors import Skip
from benchmarks.harness import cell
from benchmarks.pictures import stages
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
    last_of,
    median,
    said,
    timed,
)
from benchmarks.workloads.jpegs import Frames

ONE, BATCH = "n1h480w640y120x160s128", 16
FRAMES = Frames.parse(ONE)
TRANSFERS = ("upload", "download")


@sentence
def decoding(share: float) -> str:
    """How much of an image's time the decoder takes, and what that means for batches."""
    said = f"Decoding takes {percent(share)} of the time of an image by the fused functions"
    if share > 0.5:
        return f"{said}, image by image in every batch: most of the time cannot gain from batches, nor from fusion."
    return f"{said}: most of the time is in what batches and fusion can change."


@sentence
def speed_of_light(name: str, parts: Parts) -> str:
    """What bounds an implementation, and what a faster machine would gain."""
    if parts.largest == "rest":
        return (
            f"{name} is bound by none of disk, decoding, arithmetic and memory: {percent(parts.rest / parts.total)} of its "
            "time is passes and calls that the work does not need, so that the program can become faster here."
        )
    gain = times_as(parts.gain(parts.largest))
    return f"{name} is bound by {parts.largest}: twice as fast in that alone, it would be {gain} times as fast."


@sentence
def with_device(name: str, parts: Parts) -> str:
    """What a device could gain at most."""
    most = parts.most_by_device
    said = f"A device that did all but disk and decoding of {name} in no time would make it {times_as(most)} times as fast"
    return f"{said}: not worth the transfers." if most < 1.5 else f"{said}, less what transfers cost."


@sentence
def transfers(name: str, moved: float, computed: float) -> str:
    """Whether moving data to a device and back costs more than the work there."""
    said = f"{name} moves data for {duration(moved)} and computes for {duration(computed)} an image"
    if moved > computed:
        return f"{said}: little arithmetic for much moving. Keep data on the device, or do more there."
    return f"{said}: the work is worth the way."


class Region(Timings):
    name = "region"
    title = "Less work: only the region that is wanted"
    guess = "Of 480x640 pixels 120x160 are wanted, a sixteenth. Is the program sixteen times as fast without the others?"
    operation, problem = "preprocess", ONE
    names = ("cpu.numpy_whole", "cpu.numpy")
    also = ("cpu.libjpeg_region",)
    comparisons = (
        Comparison("cpu.numpy", "cpu.numpy_whole", "Processing only the region"),
        Comparison("cpu.libjpeg_region", "cpu.numpy", "Decoding only the region, and fusing,"),
    )
    unit = "an image"
    command = f"convbench try --operation preprocess PICTURE --region 0x0x120x160 {' '.join((*names, *also))}"
    would = "an image by pre- and post-processing all of it, and only the region that is wanted."
    why = "What is left out is saved, and no more: the JPEG is still decoded as a whole unless the decoder can do a region."


class Batches(Step):
    name = "batches"
    title = "Batches"
    guess = f"Functions that take {BATCH} images at once make fewer calls. What does that gain an image?"
    names = ("cpu.numpy", "cpu.numpy_batched")
    also = ("cpu.torch", "cpu.torch_batched")
    comparisons = (
        Comparison("cpu.numpy_batched", "cpu.numpy", f"Functions for batches, at {BATCH} images,"),
        Comparison("cpu.torch_batched", "cpu.torch", "The same in torch"),
    )
    command = f"python -m benchmarks stages --names '{json.dumps(names)}'"
    would = f"one image and {BATCH} images by functions for one and for several, in time an image."
    why = (
        "A batch saves the constant cost of calls. That counts where calls are short; on 128x128 pixels each call works for "
        "longer than it takes to be made, and a larger batch may leave the caches."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        found = {}
        for n in (1, BATCH):
            wanted = replace(FRAMES, n=n), (*self.names, *self.also), self.comparisons, setting.choose(0.4, 2.0)
            found[str(n)] = yield from timed(*wanted, "preprocess")
        return Found({"counts": found})

    def lacking(self, numbers: Numbers) -> str | None:
        return absent(numbers["counts"][str(BATCH)], self.names)

    def look(self, numbers: Numbers) -> list[str]:
        return said(self.comparisons, numbers["counts"][str(BATCH)])

    def tables(self, numbers: Numbers) -> list[Table]:
        counts = numbers["counts"]
        rows = [
            [name, *(duration(median(each, name) / int(n)) for n, each in counts.items())]
            for name in (*self.names, *self.also)
            if all(name in each["seconds"] for each in counts.values())
        ]
        return [Table(["implementation", *(f"an image, {n} at a time" for n in counts)], rows)]

    def draw(self, numbers: Numbers) -> Picture:
        seconds = {
            f"{name}, {n} at a time": [each / int(n) for each in quartiles]
            for n, found in numbers["counts"].items()
            for name, quartiles in found["seconds"].items()
        }
        return charts.dots(seconds, "time of an image", "Time of an image by images at a time")


class Fused(Timings):
    name = "fused"
    title = "Fusion"
    guess = "Numba and Cython do in one pass what NumPy does in several. OpenCV has passes of vector code. Which wins?"
    operation, problem = "preprocess", ONE
    names = ("cpu.numpy", "cpu.opencv", "cpu.cython_fused")
    also = ("cpu.numba_fused", "cpu.numpy_ufunc", "cpu.opencv_baseline", "cpu.opencv_umat", "cpu.torch")
    comparisons = (
        Comparison("cpu.cython_fused", "cpu.numpy", "One pass in Cython"),
        Comparison("cpu.cython_fused", "cpu.opencv", "Cython's pass", "OpenCV"),
        Comparison("cpu.numba_fused", "cpu.cython_fused", "Numba in place of Cython"),
        Comparison("cpu.numpy_ufunc", "cpu.numpy", "A ufunc written by hand in C"),
        Comparison("cpu.opencv", "cpu.opencv_baseline", "OpenCV's vector code"),
        Comparison("cpu.opencv_umat", "cpu.opencv", "OpenCV's UMat, with a copy for each NumPy step,"),
    )
    unit = "an image"
    command = f"convbench try --operation preprocess PICTURE --region 0x0x120x160 {' '.join((*names, *also))}"
    would = "an image by NumPy, OpenCV with and without its vector code, Numba, Cython, and a ufunc in C."
    why = (
        "Each NumPy operation reads and writes a whole array. One fused pass keeps a pixel in registers from the first "
        "operation to the last, and the data stays in the cache."
    )


class Stages(Step):
    name = "stages"
    title = "Where an image's time goes"
    guess = "After fusion, which stage is the longest?"
    names: tuple[str, ...] = ("cpu.numpy_whole", "cpu.numpy", "cpu.numpy_batched", "cpu.opencv", "cpu.cython_fused")
    command = "python -m benchmarks stages"
    would = "the time of an image by stage, one at a time and in batches."
    why = "A stage that others shrink around becomes the bound. Only its own time says what to change next."

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        calls: dict[Any, Any] = {}
        lacking: dict[str, str] = {}
        for name in self.names:
            yield {"preparing": name}
            try:
                calls |= stages.prepare(name, FRAMES, (1, BATCH))
            except Skip as skip:
                lacking[name] = str(skip)
        if not calls:
            raise Lacking(next(iter(lacking.values())))
        bars = yield from last_of(stages.measure(calls), setting.choose(5, stages.ROUNDS))
        return Found({"bars": [asdict(bar) for bar in bars], "lacking": lacking})

    def lacking(self, numbers: Numbers) -> str | None:
        return absent(numbers, self.names[-1:])

    def look(self, numbers: Numbers) -> list[str]:
        (fused,) = (bar for bar in numbers["bars"] if (bar["name"], bar["count"]) == ("cpu.cython_fused", 1))
        return [decoding(fused["stages"]["decode"] / sum(fused["stages"].values()))]

    def draw(self, numbers: Numbers) -> Picture:
        present = {stage for bar in numbers["bars"] for stage in bar["stages"]}
        ordered = [stage for stage in (*stages.STAGES, stages.REST) if stage in present]
        bars = {
            f"{bar['name']}, {bar['count']}": {stage: 1e3 * bar["stages"].get(stage, 0.0) for stage in ordered}
            for bar in numbers["bars"]
        }
        return charts.stacks(bars, "ms an image", "Stages by implementation and images at a time")


class Light(Step):
    name = "light"
    title = "What is the speed of light here?"
    guess = "Is the program bound by disk, decoding, arithmetic or memory? Would a better processor solve the problem?"
    names = ("cpu.numpy", "cpu.cython_fused")
    command = """python -m benchmarks bound '{"operation": "preprocess"}'"""
    would = "the parts of an image's time at this machine's limits, and what a machine twice as fast in one would gain."
    why = (
        "The roofline: no program is faster than its arithmetic at the highest rate, nor than its bytes at the copy rate. "
        "What is above that is decoding, disk, or work that the result does not need."
    )

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        problem = cell.kind("preprocess").find(ONE)
        yield {"preparing": "the limits of this machine"}
        seconds = bound.at_limits(cell.task("preprocess", problem).describe())
        found = {}
        for name in self.names:
            yield {"preparing": name}
            found[name] = asdict(bound.measure(cell.prepare(name, problem, 1, "preprocess"), "preprocess", seconds))
        return Found({"parts": found})

    def look(self, numbers: Numbers) -> list[str]:
        parts = {name: Parts(**each) for name, each in numbers["parts"].items()}
        return [
            *(speed_of_light(name, each) for name, each in parts.items()),
            with_device(self.names[1], parts[self.names[1]]),
        ]

    def tables(self, numbers: Numbers) -> list[Table]:
        rows = [
            [name, *(duration(each) for each in parts.values()), duration(sum(parts.values()))]
            for name, parts in numbers["parts"].items()
        ]
        return [Table(["implementation", *Parts.__dataclass_fields__, "an image"], rows)]

    def draw(self, numbers: Numbers) -> Picture:
        bars = {name: {part: 1e3 * each for part, each in parts.items()} for name, parts in numbers["parts"].items()}
        return charts.stacks(bars, "ms an image", "An image's time by what bounds it")


class Decoders(Timings):
    name = "decoders"
    title = "Decoders"
    guess = "Four ways to decode the same JPEG. Is it worth choosing?"
    operation, problem = "decode_jpeg", "n1h480w640y120x160r1"
    names = ("cpu.opencv", "cpu.pillow")
    also = ("cpu.libjpeg", "cpu.libjpeg_region")
    comparisons = (
        Comparison("cpu.pillow", "cpu.opencv", "Pillow", "OpenCV"),
        Comparison("cpu.libjpeg", "cpu.opencv", "Calling libjpeg-turbo directly"),
        Comparison("cpu.libjpeg_region", "cpu.libjpeg", "Decoding only the blocks of the region"),
    )
    unit = "an image"
    command = f"convbench profile cpu.opencv {problem} --operation decode_jpeg"
    would = "the region of a JPEG by OpenCV, Pillow and libjpeg-turbo."
    why = "All call one library or its relatives; they differ in its version, the conversion of colours, and what is skipped."


class Device(Stages):
    name = "device"
    title = "On a device: transfers against work"
    guess = "A device computes faster. How much of its time is moving data there and back?"
    names = ("gpu.torch", "gpu.cupy", "gpu.cupy_batched")
    command = f"python -m benchmarks stages --names '[\"{names[0]}\"]'"
    would = "the time of an image on a CUDA device, with uploading, computing and downloading apart."
    why = "Data on its way to a device passes a bus that is slower than the memory of either side."

    def lacking(self, numbers: Numbers) -> str | None:
        return None  # any of them shows it

    def look(self, numbers: Numbers) -> list[str]:
        sentences = []
        for bar in numbers["bars"]:
            moved = sum(bar["stages"].get(stage, 0.0) for stage in TRANSFERS)
            left = ("decode", *TRANSFERS)
            computed = sum(seconds for stage, seconds in bar["stages"].items() if stage not in left)
            sentences.append(transfers(f"{bar['name']} with {bar['count']} at a time", moved, computed))
        return sentences


STEPS = (Region(), Batches(), Fused(), Stages(), Decoders(), Light(), Device())
