"""Measures which implementation is fastest here: impls.tune(...), and impls.conv2d(..., plan="measure").

The clock serves the choice alone: what it finds is wisdom (wisdom.py), not a result.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from impls.conv2d import arguments, choice, rules, wisdom
from impls.conv2d.choice import Choice
from impls.conv2d.measurements import Problem

SECONDS, CANDIDATES = 1.0, 6  # of impls.tune for a problem, beside ROUNDS calls of each implementation
PLAN_SECONDS, PLAN_CANDIDATES = 0.1, 3  # of plan="measure", which leaves out what compiles for seconds
BLOCK = 1e-3  # seconds of calls one after the other: others' data leave the caches
ROUNDS = 3
BEHIND = 1.5  # times as long as the fastest: not measured any further


def tune(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
    *,
    dtype: str = "float32",
) -> Choice:
    """Measure a problem with each implementation that may be fast, for about a second, and keep the times for impls.conv2d.

    The arguments are those of impls.explain, and so is the answer. Takes the number of threads of this moment.
    """
    problem = choice.asked(input, weight, bias, stride, padding, dilation, groups, dtype)
    _measure(problem, arguments.thread_count(), CANDIDATES, SECONDS)
    arguments.dispatcher.clear()  # of what was picked before
    return choice.choose(problem, arguments.thread_count())


def pick(exact: bool, source: str, *fields: Any) -> Callable[..., Any]:
    """choice.pick(), with the source "measure" after a measurement if there was none."""
    *problem, threads = fields
    if source == "measure" and not wisdom.times(Problem(*problem), threads, choice.instruction_set()):
        _measure(Problem(*problem), threads, PLAN_CANDIDATES, PLAN_SECONDS)
    return choice.pick(exact, source, *fields)


def _measure(problem: Problem, threads: int, most: int, seconds: float) -> None:
    """Time the best candidates in turn, and keep their medians."""
    rng = np.random.default_rng(0)
    input, weight = (rng.random(shape, np.dtype(problem.dtype)) for shape in (problem.input, problem.weight))
    form = None, problem.stride, problem.padding, problem.dilation, problem.groups
    found = choice.choose(problem, threads, source="shipped")
    slow = rules.NUMPY if most > PLAN_CANDIDATES else (*rules.NUMPY, "cpu.numba_direct", "cpu.numba_winograd")
    candidates = [found.implementation, *(one for one in found.others if one.name not in slow)][:most]
    calls = {one.name: functools.partial(one.unchecked, input, weight, *form) for one in candidates}
    samples: dict[str, list[float]] = {}
    for name, call in calls.items():
        try:
            call()  # which compiles, and fills the caches
            samples[name] = [_clock(call, 1)]
        except MemoryError:
            continue
    end, rounds = time.perf_counter() + seconds, 0
    while rounds < ROUNDS or time.perf_counter() < end:
        medians = {name: median(each) for name, each in samples.items()}
        fast = [name for name in medians if medians[name] <= BEHIND * min(medians.values())]
        for name in fast:
            samples[name].append(_clock(calls[name], max(1, round(BLOCK / medians[name]))))
        rounds += 1
    if samples:
        wisdom.remember(
            {(problem, threads): {name: median(each) for name, each in samples.items()}}, choice.instruction_set()
        )


def _clock(call: Callable[[], Any], count: int) -> float:
    """Seconds of a call, of so many one after the other."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count
