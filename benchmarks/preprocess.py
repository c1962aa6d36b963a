"""preprocess: the work around a network that reads regions of images, from the JPEG's bytes to the mask."""

from __future__ import annotations

from benchmarks.harness import cell
from benchmarks.harness.base import _Cells
from benchmarks.timing.threads import COUNTS, resolve
from benchmarks.workloads.jpegs import Frames


class Batch(_Cells):
    """Images of 480x640 pixels, a sixteenth of each: one to 16 at a time."""

    operation = "preprocess"
    axis = "batch"
    problems = {n: Frames(n, 480, 640, 120, 160, 128) for n in (1, 4, 16)}


class Region(_Cells):
    """One image of 1080x1920 pixels, of which a 64th, a sixteenth, a quarter or the whole is wanted."""

    operation = "preprocess"
    axis = "share"
    problems = {f"1/{k * k}" if k > 1 else "1": Frames(1, 1080, 1920, 1080 // k, 1920 // k, 256) for k in (8, 4, 2, 1)}
    quick = ("1/16",)


class Threads(_Cells):
    """A quarter of one image of 1080x1920 pixels, on one thread to all the machine's cores."""

    operation = "preprocess"
    axis = "share"
    problems = {"1/4": Frames(1, 1080, 1920, 540, 960, 256)}
    further = {"threads": COUNTS}

    def setup(self, implementation, value, count):
        self.cell = cell.prepare(implementation, self.problems[value], resolve(count), self.operation)
