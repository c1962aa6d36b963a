"""train_step: the cost of a training step with different convolutions."""

from __future__ import annotations

from benchmarks.harness import cell
from benchmarks.harness.base import _Cells
from benchmarks.timing.threads import COUNTS, resolve
from benchmarks.workloads.training import Training


class Networks(_Cells):
    """The perceptron on batches of 100, the convolutional network on batches of 100 and 1000, and the one that a post on
    writing one's own convolution trains, on 1000.
    """

    operation = "train_step"
    axis = "training"
    problems = {
        problem.label: problem
        for problem in (
            Training("perceptron", 100),
            Training("convolutional", 100),
            Training("convolutional", 1000),
            Training("text", 1000),
        )
    }
    quick = ("convolutional-n100",)


class Threads(_Cells):
    """The convolutional network on one thread to all the machine's cores."""

    operation = "train_step"
    axis = "training"
    problems = {"convolutional-n1000": Training("convolutional", 1000)}
    further = {"threads": COUNTS}

    def setup(self, implementation, value, count):
        self.cell = cell.prepare(implementation, self.problems[value], resolve(count), self.operation)
