"""im2col: the cost of laying out an image's windows as a matrix, before any multiplication."""

from __future__ import annotations

from benchmarks.harness import cell
from benchmarks.harness.base import _Cells
from benchmarks.timing.threads import COUNTS, resolve
from benchmarks.workloads.patches import Windows


class _Matrices(_Cells):
    operation = "im2col"


class ImageSize(_Matrices):
    """Windows of 3x3 on an image of one channel that keeps its size, 7x7 to 2048x2048."""

    axis = "size"
    problems = {f"{n}x{n}": Windows.parse(f"i{n}x{n}k3x3p1") for n in (7, 16, 32, 64, 128, 256, 512, 1024, 2048)}


class Rank(_Matrices):
    """Images of one to four axes, 4096 elements each, windows of three along every axis, a border of ones."""

    axis = "image"
    problems = {
        label: Windows.parse(label)
        for label in ("i4096k3p1f1", "i64x64k3x3p1f1", "i16x16x16k3x3x3p1f1", "i8x8x8x8k3x3x3x3p1f1")
    }


class Threads(_Matrices):
    """An image of 2048x2048 on one thread to all the machine's cores."""

    axis = "size"
    problems = {"2048x2048": Windows.parse("i2048x2048k3x3p1")}
    further = {"threads": COUNTS}

    def setup(self, implementation, value, count):
        self.cell = cell.prepare(implementation, self.problems[value], resolve(count), self.operation)
