"""Picks the fastest implementation of a problem: by measured problems, weighted by similarity, or by rule.

The measurements (measurements.py) hold for the compiled kernels alone; where these are missing, rules (rules.py) say what is
best of the available ones.
"""

from __future__ import annotations

import functools
import math
import reprlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import index
from typing import Any

from impls import checks, contract
from impls.conv2d import arguments, measurements, rules
from impls.conv2d.measurements import Measured, Measurements, Problem

# Families that round more than a sum of products, and what else does: OpenCV transforms for large kernels.
TRANSFORMS = {"winograd", "fft", "cpu.opencv"}


@dataclass(frozen=True)
class Choice:
    """The implementation that a problem gets, and why.

    expected: all that can compute it, the best first, and how many times as long as the fastest each should take by all
    measured problems in `measurements`, of which those that are most `alike` count most, the nearest first; infinite for what
    was not among the fast of any. Where a rule decides, alike is empty, measurements None and all expected are infinite.
    rule: the kind of problem for the rules. why: why no measurement decides. passed_over: what is better and cannot run here,
    and why.
    """

    problem: Problem
    implementation: contract.Implementation
    expected: dict[str, float]
    alike: tuple[Measured, ...]
    measurements: Measurements | None
    rule: str
    why: str
    passed_over: tuple[tuple[str, str], ...]

    @property
    def others(self) -> Iterator[contract.Implementation]:
        """Those that can compute it and run here as well, the best first."""
        order = list(self.expected)
        for name in order[order.index(self.implementation.name) + 1 :]:
            if not isinstance(found := _load(name), str):
                yield found

    @property
    def runner_up(self) -> str | None:
        """The next best that can run here."""
        return next((other.name for other in self.others), None)

    def __str__(self) -> str:
        """The pick, its measurements or rule, and the runner-up."""
        picked, second = self.implementation.name, self.runner_up
        lines = [f"{picked} for {self.problem}"]
        lines += [] if self.measurements else [f"by rule: {self.rule}; {self.why}"]
        if second:
            slower = self.expected[second] / self.expected[picked]  # not a number by rule
            told = f", expected to take {slower:.3g} times as long" if math.isfinite(slower) else ""
            told += ", too little less to leave torch for it" if slower < 1 else ""
            lines.append(f"the runner-up is {second}{told}")
        lines += ["the measured problems most like it, the nearest first:"] * bool(self.alike)
        for one in self.alike:
            took = [f"{name} {_time(one.times[name])}" for name in (picked, second) if name in one.times]
            lines.append(f"  {one.problem}: {', '.join(took) or f'{next(iter(one.times))} and not these'}")
        if found := self.measurements:
            other = ", which has another processor" * (found.processor != measurements.processor())
            lines.append(
                f"measured on {found.machine}{other} ({found.instruction_set}, {_threads(found.threads)}), "
                f"commit {found.commit}, {found.date}"
            )
        return "\n".join([*lines, *(f"{name} cannot run here: {reason}" for name, reason in self.passed_over)])


def _time(microseconds: float) -> str:
    return f"{microseconds / 1000:.3g} ms" if microseconds >= 999.5 else f"{microseconds:.3g} us"


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"


def best_first(exact: bool, by_rule: bool, *fields: Any) -> Iterator[Callable[..., Any]]:
    """The unchecked implementations for a problem, best first. fields: those of Problem, then the number of threads."""
    *problem, threads = fields
    found = choose(Problem(*problem), threads, exact, by_rule)
    yield found.implementation.unchecked
    yield from (other.unchecked for other in found.others)


def pick(exact: bool, by_rule: bool, *fields: Any) -> Callable[..., Any]:
    """The first of best_first(): what checker() in arguments.py asks of each problem once."""
    return next(best_first(exact, by_rule, *fields))


def choose(problem: Problem, threads: int, exact: bool = False, by_rule: bool = False) -> Choice:
    """The best implementation of a problem that can run here; by_rule: whatever was measured.

    exact: none that rounds more than a sum of products does. Raises Unavailable if there is none, which cannot be as long
    as NumPy is there.
    """
    instructions = instruction_set()
    rule = rules.kind(problem, instructions)
    measured = None if by_rule else measurements.nearest(instructions, threads)
    by_rules = *rules.RULES[rule], *rules.RULES["large layer"], rules.FRUGAL
    passed_over: dict[str, str] = {}
    for alike, late in _expectations(measured, problem):
        expected = {name: late.get(name, math.inf) for name in (*late, *by_rules) if computes(name, problem, exact)}
        for name in late if alike else expected:
            found = _load(name) if name in expected else None
            if isinstance(found, str):
                passed_over[name] = found
            elif found:
                why = _unmeasured(instructions, by_rule)
                known = measured if alike else None
                return Choice(problem, found, expected, alike, known, rule, why, tuple(passed_over.items()))
    raise contract.Unavailable("; ".join(passed_over.values()))


def _expectations(measured: Measurements | None, problem: Problem) -> Iterator[tuple[tuple[Measured, ...], dict[str, float]]]:
    """The sources of expected times, the surest first: the problem's own, those of all, or none, where rules decide."""
    if measured:
        yield measured.known.expect(problem)
        yield measured.known.expect(problem, itself=False)  # its own may all be of what cannot compute this here
    yield (), {}


def _unmeasured(instructions: str | None, by_rule: bool) -> str:
    if by_rule:
        return "measurements were not asked"
    if instructions is None:
        return "the compiled kernels, for which measurements hold, are not there"
    return f"nothing was measured with {instructions} that can compute it here"


@functools.cache
def _load(name: str) -> contract.Implementation | str:
    """An implementation, or why it cannot run here."""
    try:
        return contract.load(name)
    except contract.Unavailable as error:
        return str(error)


_declaration = functools.cache(contract.declaration)


def computes(name: str, problem: Problem, exact: bool) -> bool:
    """Whether an implementation supports a problem, and is exact if that is asked; its library is not imported."""
    declared = _declaration(name)
    if exact and TRANSFORMS & {name, declared["family"]}:
        return False
    settings = problem.weight, problem.stride, problem.dilation, problem.groups, problem.dtype
    return arguments.outside(declared["limits"], *settings) is None


@functools.lru_cache(maxsize=1)
def _kernels() -> Any:
    """The compiled kernels, None if they are not built."""
    try:
        import impls.conv2d.cpu._cython_direct as kernels  # type: ignore[import-not-found]
    except ImportError:
        return None
    return kernels


def instruction_set() -> str | None:
    """The instruction set that the kernels were compiled for; None if they are not built."""
    return kernels.instruction_set() if (kernels := _kernels()) else None


def explain(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
    *,
    dtype: str = "float32",
    exact: bool = False,
) -> Choice:
    """Say which implementation impls.conv2d would pick, from which measurement, and what the runner-up was.

    input, weight, bias: arrays, or their shapes (N, C, H, W), (K, C/groups, R, S) and (K,). dtype: where shapes are given.
    Printed, the answer is a few lines of text. Raises ValueError or TypeError as a call would.
    """
    given = {"input": input, "weight": weight, "bias": bias}
    arrays = {name: array if hasattr(array, "dtype") else None for name, array in given.items()}
    checks.require_one_dtype(**arrays)
    dtype = next((array.dtype for array in arrays.values() if array is not None), dtype)
    input_shape, weight_shape = _shape("input", input), _shape("weight", weight)
    asked = measurements.problem(input_shape, weight_shape, stride, padding, dilation, groups, dtype)
    if bias is not None:
        checks.require_bias(_shape("bias", bias), asked.weight[0])
    return choose(asked, arguments.thread_count(), exact)


def _shape(name: str, array: Any) -> tuple[int, ...]:
    try:
        return tuple(int(index(length)) for length in getattr(array, "shape", array))
    except TypeError:
        raise TypeError(f"{name} must be an array, or its shape in integers, not {reprlib.repr(array)}") from None
