"""decode_jpeg: from a JPEG's bytes to pixels, the whole image or less of it."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.harness import cell
from benchmarks.harness.base import _Cells
from benchmarks.timing.threads import cores
from benchmarks.workloads.decoding.jpeg_task import Pictures


class Scale(_Cells):
    """One image of 1080x1920 pixels, reduced while it is decoded or not."""

    operation = "decode_jpeg"
    axis = "scale"
    problems = {scale: Pictures.whole(1, 1080, 1920, scale) for scale in (1, 2, 4, 8)}


class Region(_Cells):
    """One image of 1080x1920 pixels, of which a 64th, a sixteenth, a quarter or the whole is wanted."""

    operation = "decode_jpeg"
    axis = "share"
    problems = {f"1/{k * k}" if k > 1 else "1": Pictures(1, 1080, 1920, 1080 // k, 1920 // k) for k in (8, 4, 2, 1)}


class Batch(_Cells):
    """Images of 480x640 pixels, one to 16 at a time, an image to a thread."""

    operation = "decode_jpeg"
    axis = "batch"
    problems = {n: Pictures.whole(n, 480, 640) for n in (1, 4, 16)}
    further = {"workers": (1, 2, 4)}

    def setup(self, implementation, value, workers):
        problem = replace(self.problems[value], workers=workers)
        self.cell = cell.prepare(implementation, problem, min(workers, len(cores())), self.operation)
