"""Draws the time of preprocess by stage, for one image at a time and for batches.

An implementation's stages are functions with the names below that it calls itself, or by way of the loop over images that
several share. cProfile, the standard library's profiler, sees when each begins and ends; what lies between them is "rest".
"""

from __future__ import annotations

import cProfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.harness import cell
from benchmarks.pictures import watched
from benchmarks.pictures.watched import Watched
from benchmarks.workloads.jpegs import Frames

STAGES = ("decode", "upload", "to_patch", "normalise", "convolve", "compute", "download", "finish", "paste")
CALLERS = ("preprocess", "image_by_image")
REST = "rest"
COUNTS = (1, 2, 4, 8, 16)  # images at a time
SHOWN = (
    *("cpu.numpy_whole", "cpu.numpy", "cpu.numpy_batched", "cpu.opencv", "cpu.torch", "cpu.torch_batched"),
    *("cpu.numba_fused", "cpu.cython_fused", "cpu.libjpeg_region", "gpu.cupy", "gpu.cupy_batched", "gpu.torch"),
)
ROUNDS = 15  # calls of each, in turn


@dataclass(frozen=True)
class Bar:
    """One implementation on so many images: seconds an image by stage, and how long an image takes that is not profiled."""

    name: str
    count: int
    stages: dict[str, float]
    seconds: float


def prepare(name: str, frames: Frames, counts: Sequence[int] = COUNTS) -> dict[tuple[str, int], Callable[[], Any]]:
    """The call of an implementation on each number of images. Raises LookupError, Missing and Skip."""
    made = {(name, count): cell.prepare(name, replace(frames, n=count), operation="preprocess") for count in counts}
    return {place: each.call for place, each in made.items()}


def measure(calls: Mapping[tuple[str, int], Callable[[], Any]]) -> Iterator[list[Bar]]:
    """Call them in turn, each time in another order, watched and unwatched; yield the bars so far after each round.

    On one thread. What computes on a device waits for it at the end of that stage, so that transfers stand apart.
    """
    for found in watched.measure(calls, _stages, ROUNDS):
        yield [_bar(*place, each) for place, each in found.items()]


def _bar(name: str, count: int, found: Watched) -> Bar:
    return Bar(name, count, {stage: seconds / count for stage, seconds in found.parts.items()}, found.seconds / count)


def _stages(profile: cProfile.Profile) -> dict[str, float]:
    """Seconds of one call by stage."""
    found: dict[str, float] = {}
    whole = 0.0
    for entry in profile.getstats():
        code: Any = entry.code
        if isinstance(code, str) or code.co_name not in CALLERS:
            continue
        if Path(code.co_filename).parent.name in ("cpu", "gpu"):  # and not the check of its arguments
            whole = max(whole, entry.totaltime)
            # Only functions that it calls directly are stages; deeper calls count for these.
            for called in entry.calls or ():
                if not isinstance(called.code, str) and called.code.co_name in STAGES:
                    found[called.code.co_name] = found.get(called.code.co_name, 0.0) + called.totaltime
    return {**{stage: found[stage] for stage in STAGES if stage in found}, REST: max(0.0, whole - sum(found.values()))}


def draw(bars: Sequence[Bar], title: str, path: Path) -> None:
    """A panel for each implementation, a bar for each number of images. Raises OSError, and LookupError without bars."""
    from matplotlib.figure import Figure

    if not bars:
        raise LookupError("none of the implementations can run here")
    names = list(dict.fromkeys(bar.name for bar in bars))
    figure = Figure(figsize=(1.7 * len(names) + 1.5, 4), layout="constrained")
    axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    present = [stage for stage in (*STAGES, REST) if any(stage in bar.stages for bar in bars)]
    colours = dict(zip((*STAGES, REST), (f"C{i}" for i in range(len(STAGES) + 1)), strict=True))
    for axis, name in zip(axes, names, strict=True):
        own = [bar for bar in bars if bar.name == name]
        bottom = [0.0] * len(own)
        for stage in present:
            heights = [1e3 * bar.stages.get(stage, 0.0) for bar in own]
            axis.bar([str(bar.count) for bar in own], heights, bottom=bottom, color=colours[stage], label=stage)
            bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
        axis.set_title(name.replace("_", "_\n", 1), fontsize=8)
        axis.set_xlabel("images")
    axes[0].set_ylabel("ms an image")
    axes[-1].legend(fontsize=7)
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
