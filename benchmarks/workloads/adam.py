"""One step of Adam as a task: element-wise work in place on four arrays, or on four for each layer, limited by the memory."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.errors import WrongAnswer
from benchmarks.timing.prepared_cell import PreparedCell
from benchmarks.workloads import inputs, oracle
from benchmarks.workloads.tasks import Task, once_more

STEP = 10  # of the run that is judged: early enough for the bias corrections to matter
LR, BETA1, BETA2, EPS = 1e-3, 0.9, 0.999, 1e-8  # the operation's defaults
ARRAYS = ("parameter", "gradient", "exp_avg", "exp_avg_sq")
SAMPLE = 100_000  # elements that are compared if there are more, beside both ends
ENDS = 4096  # elements of either end: what is left over by vectors and threads
ROUNDINGS = 16.0  # of an element's bound: each new value takes up to seven operations, and 1 - beta is one more


@dataclass(frozen=True)
class Update:
    """A step on n parameters. A label spells their number: n1000000."""

    n: int
    dtype: str = "float32"

    @classmethod
    def parse(cls, label: str, **more: Any) -> Update:
        """Read a label. Raises ValueError that shows what one looks like."""
        if (match := re.fullmatch(r"n([1-9]\d*)", label)) is None:
            raise ValueError(f"{label!r} is not a step's label; one looks like n1000000, for a million parameters")
        return cls(int(match[1]), **more)

    @property
    def label(self) -> str:
        return f"n{self.n}"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The parameters of each array."""
        return (self.n,)


@dataclass(frozen=True)
class ArrayUpdates:
    """A step on several arrays, a call for each, as a trainer makes it. A label spells their sizes: n784000+1000."""

    sizes: tuple[int, ...]
    dtype: str = "float32"

    @classmethod
    def parse(cls, label: str) -> ArrayUpdates:
        """Read a label. Raises ValueError that shows what one looks like."""
        if re.fullmatch(r"n[1-9]\d*(\+[1-9]\d*)+", label) is None:
            raise ValueError(f"{label!r} is not a step's label; one looks like n784000+1000, for a weight and its bias")
        return cls(tuple(map(int, label[1:].split("+"))))

    @property
    def n(self) -> int:
        return sum(self.sizes)

    @property
    def label(self) -> str:
        return f"n{'+'.join(map(str, self.sizes))}"


# All parameters of networks as one array: the perceptron 784-1000-1000-10; Howard et al., MobileNets, arXiv 1704.04861;
# He et al., Deep residual learning for image recognition, arXiv 1512.03385. The perceptron's as its trainer has them, too:
# weight and bias of each layer.
NAMED: dict[str, Update | ArrayUpdates] = {
    "mnist-perceptron": Update(1_796_010),
    "mobilenet": Update(4_231_976),
    "resnet50": Update(25_557_032),
    "mnist-perceptron-arrays": ArrayUpdates((784_000, 1000, 1_000_000, 1000, 10_000, 10)),
}


class AdamStep(Task):
    """adam_step(parameter, gradient, exp_avg, exp_avg_sq, step), which changes all but the gradient in place."""

    baseline = "cpu.torch_fused"

    def __init__(self, operation: str, problem: Update | ArrayUpdates) -> None:
        self.operation, self.problem = operation, problem

    @staticmethod
    def parse(label: str) -> Update | ArrayUpdates:
        return ArrayUpdates.parse(label) if "+" in label else Update.parse(label)

    @classmethod
    def find(cls, text: str) -> Update | ArrayUpdates:
        """A step by its label, or by its network's name. Raises LookupError."""
        return NAMED.get(text) or super().find(text)

    @functools.cached_property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Parameter, gradient and both moments, of many sizes: a wrong epsilon shows where gradients are as small as it is,
        and a wrong step where parameters are.
        """
        n, dtype = self.problem.n, self.problem.dtype
        parameter, gradient, exp_avg, exp_avg_sq = (inputs.random((n,), seed).astype(dtype, copy=False) for seed in range(4))
        sizes = np.resize(np.array([1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8], dtype), n)  # seven: no power of two repeats them
        gradient *= sizes
        exp_avg *= sizes
        np.square(exp_avg_sq * sizes, out=exp_avg_sq)
        parameter *= np.resize(np.array([1, 1e-2, 1e-4, 0, 1e-3], dtype), n)
        return parameter, gradient, exp_avg, exp_avg_sq

    def describe(self) -> dict[str, Any]:
        """Bytes: four arrays read and three written. FLOPs: products, sums, quotients and the root of the formulas below."""
        n, itemsize = self.problem.n, np.dtype(self.problem.dtype).itemsize
        return {
            "label": self.problem.label,
            "output": [n],
            "flops": 13 * n,
            "bytes": 7 * n * itemsize,
            "dtype": self.problem.dtype,
        }

    def work(self) -> dict[str, tuple[float, str]]:
        return {"outputs": (self.problem.n, "parameters")}

    def unsupported(self, function: Any) -> str | None:
        return function.unsupported((self.problem.n,), dtype=self.problem.dtype)

    def check(self, function: Any, pools: dict[str, int]) -> PreparedCell:
        """See Task. Each cell has copies of its own, since a call changes them; they are judged, not what is returned.
        Of several arrays, the cell's call makes one step on each.

        After timing, the cell's verify looks whether they are finite still, and at one more step from the beginning with
        the gradient negated.
        """
        arrays, call = self._start(function, self.arrays[1])
        start = perf_counter()
        call()
        function.synchronize()
        called = perf_counter() - start
        self._judge(function, arrays, self.arrays[1])

        def verify(last: Any) -> dict[str, Any]:
            for name, array in _whole(function, arrays).items():
                if not np.isfinite(array).all():
                    raise WrongAnswer(f"{name} is not finite after all steps")
            negated = -self.arrays[1]
            fresh, again = self._start(function, negated)
            return once_more(function, again, lambda _: self._judge(function, fresh, negated), "with the gradient negated")

        return PreparedCell.of(function, call, verify, pools, called)

    def recall(self) -> None:
        """Do nothing: the references take no longer to compute than to read."""

    def restore(self) -> None:
        """Do nothing: implementations are given copies of these arrays."""

    def _start(self, function: Any, gradient: np.ndarray) -> tuple[list[list[Any]], Callable[[], Any]]:
        """Copies of the arrays where the implementation works, four for each size, and a call that makes one step on them."""
        parameter, _, exp_avg, exp_avg_sq = self.arrays
        ends = np.cumsum(self.problem.sizes)[:-1]
        split = zip(*(np.split(array, ends) for array in (parameter, gradient, exp_avg, exp_avg_sq)), strict=True)
        copies = [[function.to_device(array.copy()) for array in four] for four in split]
        if len(copies) == 1:
            return copies, functools.partial(function, *copies[0], STEP)

        def call() -> None:
            for four in copies:
                function(*four, STEP)

        return copies, call

    def _judge(self, function: Any, arrays: list[list[Any]], gradient: np.ndarray) -> dict[str, float]:
        """Compare the arrays after one step with its definition in float64; raise WrongAnswer or return the errors."""
        found = _whole(function, arrays)
        if not np.array_equal(found.pop("gradient"), gradient):
            raise WrongAnswer("it changed the gradient")
        parameter, _, exp_avg, exp_avg_sq = self.arrays
        starts = np.cumsum((0, *self.problem.sizes))
        places = np.concatenate([start + _places(size) for start, size in zip(starts, self.problem.sizes, strict=False)])
        before = (array[places].astype(np.float64) for array in (parameter, gradient, exp_avg, exp_avg_sq))
        relative, worst = 0.0, 0.0
        for (name, (expected, magnitude)), array in zip(_step(*before).items(), found.values(), strict=True):
            if not (finite := np.isfinite(array)).all():
                raise WrongAnswer(f"{name} is {array[np.argmin(finite)]} at {int(np.argmin(finite))}")
            difference = np.abs(array[places] - expected)
            allowed = ROUNDINGS * oracle.UNIT[self.problem.dtype] * magnitude
            ratios = np.divide(difference, allowed, out=np.zeros_like(allowed), where=difference > 0)
            at = int(np.argmax(ratios))
            if ratios[at] > 1:
                raise WrongAnswer(
                    f"{name} is {array[places[at]]:.7g} at {int(places[at])}, not {expected[at]:.7g}: "
                    f"{ratios[at]:.2g} times its error bound"
                )
            norm = float(np.linalg.norm(expected))
            relative = max(relative, float(np.linalg.norm(difference)) / norm if norm else 0.0)
            worst = max(worst, float(ratios[at]))
        return {"relative_l2": relative, "worst": worst}


def _whole(function: Any, arrays: list[list[Any]]) -> dict[str, np.ndarray]:
    """The arrays of all sizes by name, each as one NumPy array."""
    parts = zip(*arrays, strict=True)
    return {name: np.concatenate(list(map(function.to_numpy, part))) for name, part in zip(ARRAYS, parts, strict=True)}


def _places(n: int) -> np.ndarray:
    """The compared elements, as sorted indices."""
    if n <= SAMPLE:
        return np.arange(n)
    anywhere = np.random.default_rng(0).integers(0, n, SAMPLE)
    return np.unique(np.concatenate([np.arange(ENDS), anywhere, np.arange(n - ENDS, n)]))


def _step(parameter: Any, gradient: Any, exp_avg: Any, exp_avg_sq: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Kingma and Ba, arXiv 1412.6980, algorithm 1: each new array, and by how much its rounding is measured."""
    first, second = BETA1 * exp_avg, BETA2 * exp_avg_sq
    to_first, to_second = (1 - BETA1) * gradient, (1 - BETA2) * gradient**2
    below = np.sqrt((second + to_second) / (1 - BETA2**STEP)) + EPS
    rate = LR / (1 - BETA1**STEP) / below
    change = rate * (first + to_first)
    sizes = np.abs(first) + np.abs(to_first)
    return {
        "parameter": (parameter - change, np.abs(parameter) + rate * sizes),
        "exp_avg": (first + to_first, sizes),
        "exp_avg_sq": (second + to_second, second + to_second),
    }
