"""Picks the fastest implementation of a problem: by this machine's wisdom, by measured problems like it, or by rule."""

from __future__ import annotations

import functools
import math
import reprlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import index
from typing import Any

from impls import checks, contract
from impls.conv2d import arguments, measurements, rules, wisdom
from impls.conv2d.measurements import Problem

# What decides: wisdom if there is any, then what the package has; the same after a measurement; that alone; rules alone.
SOURCES = ("wisdom", "measure", "shipped", "rules")
# Families that round more than a sum of products, and what else does: OpenCV transforms for large kernels.
TRANSFORMS = {"winograd", "fft", "cpu.opencv"}


@dataclass(frozen=True)
class Choice:
    """The implementation that a problem gets, and why.

    expected: all that can compute it, the best first, and how many times as long as the fastest each should take; infinite
    where no measurement says. by: which source decided. why: that source in words, a line each. passed_over: what is better
    and cannot run here, and why.
    """

    problem: Problem
    implementation: contract.Implementation
    expected: dict[str, float]
    by: str
    why: tuple[str, ...]
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
        """The pick, the runner-up, and the measurements or rule."""
        picked, second = self.implementation.name, self.runner_up
        lines = [f"{picked} for {self.problem}"]
        if second:
            slower = self.expected[second] / self.expected[picked]  # not a number by rule
            told = f", expected to take {slower:.3g} times as long" if math.isfinite(slower) else ""
            lines.append(f"the runner-up is {second}{told}")
        return "\n".join([*lines, *self.why, *(f"{name} cannot run here: {reason}" for name, reason in self.passed_over)])


def best_first(exact: bool, source: str, *fields: Any) -> Iterator[Callable[..., Any]]:
    """The unchecked implementations for a problem, best first. fields: those of Problem, then the number of threads."""
    *problem, threads = fields
    found = choose(Problem(*problem), threads, exact, source)
    yield found.implementation.unchecked
    yield from (other.unchecked for other in found.others)


def pick(exact: bool, source: str, *fields: Any) -> Callable[..., Any]:
    """The first of best_first(): what checker() in arguments.py asks of each problem once."""
    return next(best_first(exact, source, *fields))


def choose(problem: Problem, threads: int, exact: bool = False, source: str = "wisdom") -> Choice:
    """The best implementation of a problem that can run here.

    exact: none that rounds more than a sum of products does. Raises Unavailable if there is none, which cannot be as long
    as NumPy is there.
    """
    rule = rules.rule(problem)
    passed_over: dict[str, str] = {}
    for by, late, why in _sources(problem, threads, source, rule):
        able = [name for name in late if computes(name, problem, exact)]
        expected = {
            name: late.get(name, math.inf) for name in (*able, *rule.names, *rules.REST) if computes(name, problem, exact)
        }
        for name in able:
            found = _load(name)
            if not isinstance(found, str):
                return Choice(problem, found, expected, by, why, tuple(passed_over.items()))
            passed_over[name] = found
    raise contract.Unavailable("; ".join(passed_over.values()))


def _sources(
    problem: Problem, threads: int, source: str, rule: rules.Rule
) -> Iterator[tuple[str, dict[str, float], tuple[str, ...]]]:
    """The expected times by each source, and that source in words, the surest first."""
    if source in ("wisdom", "measure") and (times := wisdom.times(problem, threads, instruction_set())):
        said = ", ".join(f"{name} {_time(seconds)}" for name, seconds in times.items())
        yield "wisdom", {name: seconds / min(times.values()) for name, seconds in times.items()}, (f"measured here: {said}",)
    why = "measurements were not asked"
    if source != "rules":
        if found := measurements.table(instruction_set()):
            late, nearest = found.expect(problem)
            yield "shipped", late, (*_shown(found, nearest), f"measured on {found.about}")
        why = f"nothing was measured with {instruction_set()}"
        if instruction_set() is None:
            why = "the compiled kernels, for which measurements hold, are not there"
    yield "rules", dict.fromkeys([*rule.names, *rules.REST], math.inf), (f"by rule: {rule.why}", why)


def _shown(table: measurements.Table, nearest: Iterable[int]) -> Iterator[str]:
    """Measured problems in words, the nearest first."""
    yield "the measured problems most like it, the nearest first, and the times over the fastest's:"
    for i in list(nearest)[: measurements.ALIKE]:
        took = ", ".join(f"{name} {ratio:.3g}" for name, ratio in list(table.ratios(i).items())[:3])
        yield f"  {table.problems[i]}: {took}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 999.5e-6 else f"{seconds * 1e6:.3g} us"


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
    return choose(asked(input, weight, bias, stride, padding, dilation, groups, dtype), arguments.thread_count(), exact)


def asked(input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any, dtype: str) -> Problem:
    """The problem of arrays or shapes and settings. Raises ValueError or TypeError as a call would."""
    given = {"input": input, "weight": weight, "bias": bias}
    arrays = {name: array if hasattr(array, "dtype") else None for name, array in given.items()}
    checks.require_one_dtype(**arrays)
    dtype = next((array.dtype for array in arrays.values() if array is not None), dtype)
    input_shape, weight_shape = _shape("input", input), _shape("weight", weight)
    found = measurements.problem(input_shape, weight_shape, stride, padding, dilation, groups, dtype)
    if bias is not None:
        checks.require_bias(_shape("bias", bias), found.weight[0])
    return found


def _shape(name: str, array: Any) -> tuple[int, ...]:
    try:
        return tuple(int(index(length)) for length in getattr(array, "shape", array))
    except TypeError:
        raise TypeError(f"{name} must be an array, or its shape in integers, not {reprlib.repr(array)}") from None
