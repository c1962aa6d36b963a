"""adam_step: the cost of an optimiser's step."""

from __future__ import annotations

from benchmarks.harness import cell
from benchmarks.harness.base import _Cells
from benchmarks.timing.threads import COUNTS, resolve
from benchmarks.workloads.adam import NAMED, Update


class _AdamSteps(_Cells):
    operation = "adam_step"
    axis = "parameters"


class Parameters(_AdamSteps):
    """A thousand parameters to 16 million, the last of which no cache holds."""

    problems = {n: Update(n) for n in (1_000, 10_000, 100_000, 1_000_000, 4_000_000, 16_000_000)}


class Networks(_AdamSteps):
    """All parameters of networks as one array, and the perceptron's as its trainer has them, in six."""

    axis = "network"
    problems = NAMED
    quick = ("mnist-perceptron",)


class Threads(_AdamSteps):
    """Four million parameters on one thread to all the machine's cores."""

    problems = {4_000_000: Update(4_000_000)}
    further = {"threads": COUNTS}

    def setup(self, implementation, value, count):
        self.cell = cell.prepare(implementation, self.problems[value], resolve(count), self.operation)
