"""Problems, the measured ones in cpu/auto.json, and the times that these predict for others.

`python -m benchmarks tables` writes that file from results/. Its times are of float32 and the mean of one thread and two.
"""

from __future__ import annotations

import functools
import json
import math
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from impls import checks, contract
from impls.checks import Pair
from impls.conv2d import arguments

FILE = Path(__file__).parent / "cpu" / "auto.json"
LETTERS = "abcdefghijklmnopqrstuvwxyz"  # of the file: "a" is as fast as the fastest, "z" takes LATE times as long or more
LATE = 3.0
NEAREST, POWER, MIN_DISTANCE = 16, 3, 0.2  # problems that predict another, weighted by their distance to the power of -POWER
ALIKE = 5  # of them that an explanation names
CPU = Path("/proc/cpuinfo")
# What Linux calls maker, family and model of a processor, of Intel's kind and of Arm's.
IDENTITY = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU architecture", "CPU part")


class Problem(NamedTuple):
    """A problem by what decides its time: normalised shapes and settings (impls/conv2d/arguments.py) and the dtype's name."""

    input: tuple[int, ...]
    weight: tuple[int, ...]
    stride: Pair
    padding: tuple[Pair, Pair]
    dilation: Pair
    groups: int
    dtype: str

    @property
    def output(self) -> tuple[int, int, int, int]:
        return arguments.output_shape(self.input, self.weight, self.stride, self.padding, self.dilation)

    @property
    def transformed(self) -> bool:
        """Whether cpu.cython_winograd computes it with far fewer products: not 3x3 with wider strides than dilation."""
        kernel = self.weight[2:]
        if min(kernel) < 3 or (kernel == (3, 3) and min(arguments.dilation_by_stride(self.stride, self.dilation)) < 1):
            return False
        return arguments.outside(_transforms(), self.weight, self.stride, self.dilation, self.groups, self.dtype) is None

    def __str__(self) -> str:
        """The shapes, and the settings that are not torch's defaults."""
        said = [f"input {_by(self.input)}", f"weight {_by(self.weight)}"]
        said += [f"stride {_by(self.stride)}"] * (self.stride != (1, 1))
        said += [f"padding {_by(map(sum, self.padding))} in all"] * any(map(any, self.padding))
        said += [f"dilation {_by(self.dilation)}"] * (self.dilation != (1, 1))
        said += [f"groups {self.groups}"] * (self.groups != 1)
        return ", ".join([*said, self.dtype])


@functools.cache
def _transforms() -> Any:
    """The limits of cpu.cython_winograd, whether or not it can run here."""
    return contract.declaration("cpu.cython_winograd")["limits"]


def _by(numbers: Iterable[int]) -> str:
    return "x".join(map(str, numbers))


def problem(
    input: Any, weight: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1, dtype: str = "float32"
) -> Problem:
    """The problem of a call: shapes of input and weight, settings as in the call. Raises what the call would."""
    settings = checks.plain(stride=stride, padding=padding, dilation=dilation, groups=groups)
    shapes = tuple(input), tuple(weight)
    found = arguments.geometry(*shapes, *settings)
    return Problem(*shapes, found.stride, found.padding, found.dilation, settings[3], checks.dtype_name(dtype))


def place(problem: Problem) -> list[float]:
    """What decides which is fastest: most of it in powers of two, all with the same weight."""
    n, _, rows, columns = problem.output
    outputs, channels, *kernel = problem.weight
    sizes = channels, outputs / problem.groups, max(1, n) * rows * columns, columns, math.prod(kernel)
    logs = map(math.log2, (*sizes, math.prod(problem.stride), math.prod(problem.dilation)))
    return [*logs, 3.0 * problem.transformed]


@dataclass(frozen=True)
class Table:
    """What was measured on some machines: by problem and implementation, the logarithm of its time over cpu.torch's.

    logs: their mean, not a number where no machine could compute it. about: the machines in words.
    """

    names: tuple[str, ...]
    problems: tuple[Problem, ...]
    logs: np.ndarray
    about: str

    @functools.cached_property
    def _places(self) -> np.ndarray:
        return np.array(list(map(place, self.problems)))

    def expect(self, problem: Problem) -> tuple[dict[str, float], list[int]]:
        """How many times as long as the fastest each implementation should take, the fastest first, and the problems,
        the nearest first, by which this is said: itself alone if it was measured, else the nearest, weighted by their
        distance (Shepard, A two-dimensional interpolation function for irregularly-spaced data, 1968).
        """
        distances = np.abs(self._places - place(problem)).sum(axis=1)
        order = distances.argsort(kind="stable")[:NEAREST]
        itself = [i for i in order if self.problems[i] == problem._replace(dtype="float32")]
        order = np.array(itself or order)
        known = ~np.isnan(self.logs[order])
        weights = known / (distances[order, None] + MIN_DISTANCE) ** POWER
        mean = (weights * np.where(known, self.logs[order], 0)).sum(axis=0) / np.maximum(weights.sum(axis=0), 1e-300)
        found = {
            name: float(log) for name, log, any_known in zip(self.names, mean, known.any(axis=0), strict=True) if any_known
        }
        fastest = min(found.values())
        return {name: math.exp(found[name] - fastest) for name in sorted(found, key=found.__getitem__)}, order.tolist()

    def ratios(self, index: int) -> dict[str, float]:
        """What was measured of a problem: how many times as long as the fastest each took, the fastest first."""
        logs = self.logs[index] - np.nanmin(self.logs[index])
        return {self.names[i]: math.exp(logs[i]) for i in logs.argsort(kind="stable") if not np.isnan(logs[i])}


@functools.lru_cache(maxsize=8)
def table(instructions: str | None) -> Table | None:
    """What was measured on this processor or, if nothing was, on others with the same instruction set; None if on none.

    What this processor's kernels could not compute when they were measured is known from the others.
    """
    content = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {"machines": []}
    alike = [i for i, one in enumerate(content["machines"]) if one["instruction_set"] == instructions]
    own = [i for i in alike if content["machines"][i]["processor"] == processor()]
    if not alike:
        return None
    steps = {letter: i * math.log(LATE) / (len(LETTERS) - 1) for i, letter in enumerate(LETTERS)} | {"-": math.nan}
    problems, logs = [], []
    for (n, c, h, w, k, r, s, stride, *padding, dilation, groups), *words in content["problems"]:
        problems.append(problem((n, c, h, w), (k, c // groups, r, s), stride, tuple(padding), dilation, groups))
        every = np.array([[steps[letter] for letter in word] for word in words])
        every -= every[:, :1]
        logs.append([_mean(each[own]) if not np.isnan(each[own]).all() else _mean(each[alike]) for each in every.T])
    machines = [content["machines"][i] for i in own or alike]
    about = "; ".join(f"{one['machine']}, commit {one['commit']}, {one['date']}" for one in machines)
    return Table(
        tuple(content["names"]), tuple(problems), np.array(logs), about + "" if own else f"other processors: {about}"
    )


def _mean(logs: np.ndarray) -> float:
    known = logs[~np.isnan(logs)]
    return float(known.mean()) if len(known) else math.nan


@functools.cache
def processor() -> str:
    """Maker, family and model of this machine's processor as Linux tells them, elsewhere what Python calls it."""
    told = CPU.read_text(encoding="utf-8").split("\n\n", 1)[0] if CPU.is_file() else ""
    known = dict(re.findall(r"^(\w[\w ]*?)\s*: (.+)$", told, re.MULTILINE))
    return " ".join(known[name] for name in IDENTITY if name in known) or platform.processor() or platform.machine()
