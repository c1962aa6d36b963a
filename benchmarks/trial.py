"""Any shape, on the code as it lies here: every implementation checked, then timed in turn. Stores nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from benchmarks import ceilings, cell, clock, inputs, memory, oracle, threads
from benchmarks.problems import Problem
from benchmarks.types import Skip

GROUP = "convbench.implementations"  # entry points by which installed packages offer implementations
LEAST = 5  # samples of each implementation, however slow it is


def run(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield events: {"preparing": name}, {"sampled": share}, then {"ceiling": ...} and {"cell": ...} for each result.

    request: input and weight as shapes; names; stride, padding ("same" or a pair), dilation, groups, dtype; threads;
    seconds for each implementation. Raises ValueError, TypeError or LookupError for what nobody can compute, and
    MemoryError for what does not fit.
    """
    import impls  # here, because asv imports every file of the suite, also beside a commit that has no impls

    memory.keep_freed_memory()
    problem = _problem(impls, request)
    offered = {entry.name: entry for entry in entry_points(group=GROUP)}
    names = request["names"] or [*impls.names("conv2d"), *sorted(offered)]
    count, have = request["threads"], len(threads.cores())
    if count > have:
        raise ValueError(f"threads={count}, but this machine has {have} cores")
    for name in names:
        if name not in offered and name not in impls.names("conv2d"):
            impls.load(name, "conv2d")  # raises, with near matches
    input, weight = inputs.make(problem)
    known = oracle.reference(problem, input, weight)
    ready: dict[str, cell.Cell] = {}
    declared: dict[str, dict[str, str]] = {}
    finished: list[dict[str, Any]] = []
    threads.confine(count)
    for name in names:
        yield {"preparing": name}
        try:
            # A limit spares a user what he did not ask for; who names an implementation wants to wait for it.
            if not request["names"] and cell.on_request(name):
                raise Skip("on request: name it")
            if not request["names"] and (reason := cell.too_slow(name, problem)):
                raise Skip(f"too slow here: {reason}")
            function = impls.wrap(name, offered[name].load()) if name in offered else cell.load(name, "conv2d")
            declared[name] = {"device": function.device, "family": function.family}
            cell.require_support(function, problem)
            pools = threads.set_pools(count)  # after every load, since a library brings its own
            ready[name] = cell.check(function, problem, (input, weight), [known], pools)
        except Skip as skip:
            finished.append({"name": name, "status": "skipped", "reason": str(skip)})
        except Exception as error:
            for array, fresh in zip((input, weight), inputs.make(problem), strict=True):
                np.copyto(array, fresh)  # the others' too, should it have written to them
            finished.append({"name": name, "status": "failed", "reason": f"{type(error).__name__}: {error}"})
    limits = {}
    for name in (kind for kind in ceilings.CEILINGS if "fresh" not in ceilings.CEILINGS[kind]):
        yield {"preparing": name}
        try:
            limits[name] = ceilings.prepare(name, count)
        except Skip:
            continue
    measured: dict[str, clock.Measurement] = {}
    for share in _in_turn({**limits, **ready}, request["seconds"], measured):
        yield {"sampled": share}
    for name in limits:
        yield {"ceiling": ceilings.CEILINGS[name], "seconds": float(np.median(measured[name].samples))}
    for name, prepared in ready.items():
        try:
            errors = prepared.verify(prepared.block.output)
            errors.pop("called")
            finished.append({"name": name, "status": "ok", "samples": measured[name].samples, **errors})
        except oracle.WrongAnswer as error:
            finished.append({"name": name, "status": "failed", "reason": f"after timing: {error}"})
    for result in sorted(finished, key=lambda result: names.index(result["name"])):
        yield {"cell": {**result, **declared.get(result["name"], {})}, "problem": problem.describe()}


def _in_turn(cells: dict[str, cell.Cell], seconds: float, measured: dict[str, clock.Measurement]) -> Iterator[float]:
    """Sample cells alternately in random order, so that what the machine does meanwhile meets all of them alike."""
    plan = clock.Plan(repeat=(1, 1, 0.0))
    for name, prepared in cells.items():
        measured[name] = clock.measure(prepared.block, plan)
    left = dict.fromkeys(cells, seconds)
    samples: dict[str, list[float]] = {name: [] for name in cells}
    generator = random.Random(0)
    while left:
        for name in generator.sample(sorted(left), len(left)):
            number = measured[name].number
            took = cells[name].block(number)
            samples[name].append(took / number)
            left[name] -= took
            if left[name] <= 0 and len(samples[name]) >= LEAST:
                del left[name]
        spent = sum(seconds - max(0.0, left.get(name, 0.0)) for name in cells)
        yield spent / (seconds * len(cells))
    for name in cells:
        measured[name] = clock.Measurement(samples[name], measured[name].number, 0.0)


def _problem(impls: Any, request: dict[str, Any]) -> Problem:
    (n, c, h, w), (k, channels, r, s) = request["input"], request["weight"]
    dilation, padding = request["dilation"], request["padding"]
    if padding == "same":
        if r % 2 == 0 or s % 2 == 0 or request["stride"] != 1:
            raise ValueError('padding="same" needs stride 1, and here odd kernel sizes; give the padding in numbers')
        padding = (dilation * (r - 1) // 2, dilation * (s - 1) // 2)
    problem = Problem(n, c, h, w, k, r, s, request["stride"], tuple(padding), dilation, request["groups"], request["dtype"])
    # What nobody can compute is said once, by the arguments' own check, before anything is made.
    impls.load("cpu.loops").unsupported((n, c, h, w), (k, channels, r, s), **problem.arguments, dtype=problem.dtype)
    from impls import checks

    checks.require_memory(problem.bytes, f"input, weight and output of {problem.label}")
    return problem
