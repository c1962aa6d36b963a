"""Any shape, on the code as it lies here: every implementation checked, then timed in turn. Stores nothing."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import numpy as np

from benchmarks import ceilings
from benchmarks.commands.interleaved import Contest
from benchmarks.harness import cell
from benchmarks.harness.asv_types import Skip
from benchmarks.timing import memory
from benchmarks.workloads.problems import Problem
from benchmarks.workloads.tasks import Cell

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
    for name in names:
        if name not in offered and name not in impls.names("conv2d"):
            impls.load(name, "conv2d")  # raises, with near matches
    contest = Contest(problem, request["threads"])
    for name in names:
        yield {"preparing": name}
        contest.enter(name, functools.partial(_prepare, contest, name, offered, bool(request["names"])))
    limits = {}
    for name in (kind for kind in ceilings.CEILINGS if "fresh" not in ceilings.CEILINGS[kind]):
        yield {"preparing": name}
        try:
            limits[name] = ceilings.prepare(name, contest.count)
        except Skip:
            continue
    for share in contest.in_turn(request["seconds"], LEAST, limits):
        yield {"sampled": share}
    for name in limits:
        yield {"ceiling": ceilings.CEILINGS[name], "seconds": float(np.median(contest.measured[name].samples))}
    for result in contest.results():
        yield {"cell": result, "problem": problem.describe()}


def _prepare(contest: Contest, name: str, offered: dict[str, EntryPoint], asked: bool) -> Cell:
    # A limit spares a user what he did not ask for; who names an implementation wants to wait for it.
    if not asked and cell.on_request(name):
        raise Skip("on request: name it")
    if not asked and (reason := cell.too_slow(name, contest.task)):
        raise Skip(f"too slow here: {reason}")
    import impls

    return contest.check(name, impls.wrap(name, offered[name].load()) if name in offered else cell.load(name, "conv2d"))


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
