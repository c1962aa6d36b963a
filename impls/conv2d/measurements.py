"""The measurements in cpu/auto.toml, written by `make tune`, and the times they predict for other problems.

It has a table for each instruction set, processor and number of threads. The measurements are of float32.
"""

from __future__ import annotations

import functools
import math
import platform
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from impls import checks, contract
from impls.checks import Pair
from impls.conv2d import arguments

FILE = Path(__file__).parent / "cpu" / "auto.toml"
MEASURED = "float32"  # the dtype of all measurements
ALIKE = 5  # measured problems that an explanation names
NOISE_VARIANCE = 0.10  # the variance of one measurement, beside 1 of all that differs from problem to problem
LATE = 3.0  # times the fastest: what counts for one that took longer, or was not sampled for that
TREND_VARIANCE = 0.1  # the variance of what a unit of unfilled() changes on all problems, however different they are
MAX_SMALL_FLOPS = 40_000_000  # up to which torch's way to its kernel is a good part of its time
# Of the time that torch is expected to take for more FLOPs, the share that counts: an implementation that should be faster by
# less may well be slower, and a pick should never be slower than torch.
TORCH_SHARE = 0.94
# Taps of all channels up to which the caches hold tiles and weights of a kernel that Winograd's transforms take in pieces.
MAX_CACHED_TAPS = 4000
LANES = 16  # of the widest vectors, and of two with AVX2
TILE = 4  # output pixels of a side of a tile of Winograd's
CPU = Path("/proc/cpuinfo")
# What a unit of each feature of a problem counts in its distance from others (place()): fitted to the measurements of the
# first tables, each problem being picked for by all the others (docs/auto.md, "Tuning"). Most features are powers of two.
FEATURE_WEIGHTS = {
    "channels": 0.10,
    "outputs": 0.29,
    "groups": 0.04,
    "pixels": 0.085,
    "columns": 0.03,
    "taps": 0.09,
    "stride": 0.20,
    "dilation": 0.28,
    "transformed": 0.19,  # Winograd's kernels can compute the one and not the other
    "uncached": 0.25,
    "1x1": 0.15,  # sums of their own in all implementations
    "unblocked": 0.015,  # torch's blocks of channels fit the one and not the other
    "depthwise": 0.045,
}
CHANNEL_BLOCK = 8  # channels that torch's library (oneDNN) computes together
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
    def flops(self) -> int:
        return 2 * math.prod(self.output) * math.prod(self.weight[1:])

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
def _transforms() -> Mapping[str, Any]:
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


@dataclass(frozen=True)
class Measured:
    """One measured problem: the fastest implementations and their times in microseconds, the fastest first."""

    problem: Problem
    times: dict[str, float]

    def behind(self, name: str) -> float:
        """How many times as long as the fastest an implementation took, at most LATE."""
        return min(LATE, self.times.get(name, math.inf) / min(self.times.values()))


def measured(entry: Mapping[str, Any]) -> Measured:
    """An entry of the table: the arguments of problem() that are not its defaults, and us."""
    return Measured(problem(**{name: entry[name] for name in ARGUMENTS if name in entry}), entry["us"])


def place(problem: Problem) -> list[float]:
    """What decides which is fastest, on scales on which problems that are 1 apart have e times less to do with each other."""
    n, _, p, q = problem.output
    outputs, channels, r, s = problem.weight
    pieced = problem.transformed and (r, s) != (3, 3)
    features = {
        "channels": math.log2(channels),
        "outputs": math.log2(outputs / problem.groups),
        "groups": math.log2(problem.groups),
        "pixels": math.log2(max(1, n) * p * q),
        "columns": math.log2(q),
        "taps": math.log2(r * s),
        "stride": math.log2(math.prod(problem.stride)),
        "dilation": math.log2(math.prod(problem.dilation)),
        "transformed": problem.transformed,
        "uncached": pieced and max(0, math.log2(channels * r * s / MAX_CACHED_TAPS)),
        "1x1": r == s == 1,
        "unblocked": channels % CHANNEL_BLOCK != 0,
        "depthwise": channels == outputs // problem.groups == 1,
    }
    return [FEATURE_WEIGHTS[name] * value for name, value in features.items()]


def unfilled(problem: Problem) -> list[float]:
    """The padding of whole blocks, as log2 of their size over that needed: lanes along a row of the output and along output
    channels, pixels of Winograd's tiles. Implementations with such blocks take so much longer, whatever the problem.
    """
    lanes = problem.output[3], problem.weight[0] // problem.groups
    return [*(_spare(count, LANES) for count in lanes), untiled(problem)]


def untiled(problem: Problem) -> float:
    """The padding of Winograd's 4x4 tiles: log2 of their pixels over the output's.

    With a dilation, outputs that see pixels next to each other's are as many apart, and have tiles of their own.
    """
    ratios = arguments.dilation_by_stride(problem.stride, problem.dilation)
    return sum(_spare(count, TILE * max(1, round(ratio))) for count, ratio in zip(problem.output[2:], ratios, strict=True))


def _spare(count: int, block: int) -> float:
    return math.log2(-(-count // block) * block / count)


@dataclass(frozen=True)
class Known:
    """Measured problems, and predictions for others: Gaussian process regression, also called kriging, of the
    logarithms of how many times as long as the fastest each took (Rasmussen and Williams, Gaussian Processes for Machine
    Learning, MIT Press 2006, algorithm 2.1), with measurements of NOISE_VARIANCE and covariance exp(-distance) between the
    problems' places plus, for the line that goes through all of them, TREND_VARIANCE times the product of what they leave
    unfilled (section 2.7 there).
    """

    problems: tuple[Measured, ...]

    @functools.cached_property
    def _itself(self) -> dict[Problem, Measured]:
        return {one.problem: one for one in self.problems}

    @functools.cached_property
    def _places(self) -> np.ndarray:
        return np.array([place(one.problem) for one in self.problems])

    @functools.cached_property
    def _unfilled(self) -> np.ndarray:
        return np.array([unfilled(one.problem) for one in self.problems])

    @functools.cached_property
    def _fit(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Names, the mean of each, and by how much each measured problem draws it to its own side."""
        names = list(dict.fromkeys(name for one in self.problems for name in one.times))
        taken = np.log([[one.behind(name) for name in names] for one in self.problems])
        covariance = np.array([self._covariance(*one) for one in zip(self._places, self._unfilled, strict=True)])
        covariance += NOISE_VARIANCE * np.eye(len(taken))
        mean = taken.mean(axis=0)
        return names, mean, np.linalg.solve(covariance, taken - mean)

    def _distances(self, there: Any) -> np.ndarray:
        """How far a place is from each measured problem's: the sum of the differences."""
        return np.abs(self._places - there).sum(axis=1)

    def _covariance(self, there: Any, left: Any) -> np.ndarray:
        """The covariance of a problem at a place, with so much unfilled, with each measured one."""
        return np.exp(-self._distances(there)) + TREND_VARIANCE * self._unfilled @ left

    def expect(self, problem: Problem, itself: bool = True) -> tuple[tuple[Measured, ...], dict[str, float]]:
        """The measured problems most like another, and how many times as long as the fastest each should take on it.

        The nearest and the fastest come first, torch though another is expected to be a little faster if the problem is not
        small. itself: a problem that was itself measured decides alone.
        """
        if itself and (one := self._itself.get(problem._replace(dtype=MEASURED))):
            return (one,), {name: one.behind(name) for name in one.times}
        there = place(problem)
        alike = tuple(self.problems[i] for i in self._distances(there).argsort(kind="stable")[:ALIKE])
        names, mean, drawn = self._fit
        shares = self._covariance(there, unfilled(problem))
        expected = dict(zip(names, np.exp(mean + shares @ drawn).tolist(), strict=True))
        torch = TORCH_SHARE if problem.flops > MAX_SMALL_FLOPS else 1
        return alike, dict(sorted(expected.items(), key=lambda one: one[1] * (torch if one[0] == "cpu.torch" else 1)))


@dataclass(frozen=True)
class Measurements:
    """The measurements with one instruction set, processor and number of threads."""

    instruction_set: str
    processor: str
    threads: int
    machine: str
    commit: str
    date: str
    known: Known


ABOUT = ("instruction_set", "processor", "threads", "machine", "commit", "date")
ARGUMENTS = ("input", "weight", "stride", "padding", "dilation", "groups")


@functools.lru_cache(maxsize=1)
def _all() -> tuple[Measurements, ...]:
    """All measurements; none if the file does not exist."""
    if not FILE.is_file():
        return ()
    content = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return tuple(
        Measurements(**{name: entry[name] for name in ABOUT}, known=Known(tuple(map(measured, entry["problems"]))))
        for entry in content.get("table", ())
    )


@functools.lru_cache(maxsize=64)
def nearest(instructions: str | None, threads: int) -> Measurements | None:
    """The measurements with an instruction set that hold best here, None if there are none.

    This processor's before one by the same maker, as torch's libraries depend on the maker, and that before any other's; of
    these whose number of threads is nearest, and of several the newest.
    """
    here = processor()

    def fit(one: Measurements) -> tuple[bool, bool, float, str]:
        maker = one.processor.split(" ")[0] == here.split(" ")[0]
        return one.processor == here, maker, -abs(math.log2(one.threads / threads)), one.date

    fitting = [one for one in _all() if one.instruction_set == instructions and one.known.problems]
    return max(fitting, key=fit, default=None)


@functools.cache
def processor() -> str:
    """Maker, family and model of this machine's processor as Linux tells them, elsewhere what Python calls it."""
    told = CPU.read_text(encoding="utf-8").split("\n\n", 1)[0] if CPU.is_file() else ""
    known = dict(re.findall(r"^(\w[\w ]*?)\s*: (.+)$", told, re.MULTILINE))
    return " ".join(known[name] for name in IDENTITY if name in known) or platform.processor() or platform.machine()
