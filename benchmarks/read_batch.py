"""read_batch: the cost of reading a batch of satellite tiles from files into one array."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.harness import cell
from benchmarks.harness.base import _Cells
from benchmarks.timing.threads import cores
from benchmarks.workloads.tiles import Batch, ColdPages


class _Batches(_Cells):
    operation = "read_batch"
    axis = "batch"
    problems = {n: Batch(n) for n in (1, 32, 64, 1024)}
    further = {"workers": (1, 2, 4)}
    quick: tuple = (32,)

    def setup(self, implementation, value, workers):
        # Workers wait for files more than for cores: there may be more of them.
        problem = replace(self.problems[value], workers=workers)
        self.cell = cell.prepare(implementation, problem, min(workers, len(cores())), self.operation)


class Warm(_Batches):
    """Tiles that the system has in its cache of files."""


class Cold(_Batches):
    """Tiles that the system has to read from the disk, whatever the disk then keeps in caches of its own."""

    number = 1
    warmup_time = 0
    repeat = (3, 10, 0.3)
    quick = ()

    def setup(self, implementation, value, workers):
        super().setup(implementation, value, workers)
        self.cell.block = ColdPages(self.cell.call)
