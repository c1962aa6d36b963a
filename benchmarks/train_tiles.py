"""train_tiles: the cost of a pass of training ResNet-18 over satellite tiles with different readers."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.harness import cell
from benchmarks.harness.base import _Cells
from benchmarks.timing.threads import cores
from benchmarks.workloads.tile_training import Pass


class Readers(_Cells):
    """Ten batches of 32 on all cores, read by the training process or by others beside it."""

    operation = "train_tiles"
    axis = "training"
    problems = {"resnet18-n320b32": Pass(320, 32)}
    further = {"workers": (0, 1, 2, 4)}
    # A pass takes seconds, and a network that has been checked needs no warming up.
    number = 1
    warmup_time = 0
    repeat = (2, 3, 10.0)
    timeout = 600

    def setup(self, implementation, value, workers):
        problem = replace(self.problems[value], workers=workers)
        self.cell = cell.prepare(implementation, problem, len(cores()), self.operation)
