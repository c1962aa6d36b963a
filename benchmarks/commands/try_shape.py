"""Any shape, on the code as it lies here: every implementation checked, then timed in turn. Stores nothing."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import numpy as np

from benchmarks.commands.interleaved import Candidates
from benchmarks.errors import Skip
from benchmarks.harness import cell
from benchmarks.timing import limits, memory
from benchmarks.timing.prepared_cell import PreparedCell
from benchmarks.workloads.problems import Problem

GROUP = "convbench.implementations"  # entry points by which installed packages offer implementations
MIN_SAMPLES = 5  # of each implementation, however slow it is


def run(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield events: {"preparing": name}, {"sampled": share}, then {"ceiling": ...} and {"cell": ...} for each result.

    request: input and weight as shapes; names; stride, padding ("same" or a pair), dilation, groups, dtype; threads;
    seconds for each implementation. Raises ValueError, TypeError or LookupError for what cannot be computed, and
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
    candidates = Candidates(problem, request["threads"])
    for name in names:
        yield {"preparing": name}
        candidates.add(name, functools.partial(_prepare, candidates, name, offered, bool(request["names"])))
    ready_limits = {}
    for name in (kind for kind in limits.LIMITS if "fresh" not in limits.LIMITS[kind]):
        yield {"preparing": name}
        try:
            ready_limits[name] = limits.prepare(name, candidates.count)
        except Skip:
            continue
    for share in candidates.in_turn(request["seconds"], MIN_SAMPLES, ready_limits):
        yield {"sampled": share}
    for name in ready_limits:
        yield {"ceiling": limits.LIMITS[name], "seconds": float(np.median(candidates.measured[name].samples))}
    for result in candidates.results():
        yield {"cell": result, "problem": problem.describe()}


def _prepare(candidates: Candidates, name: str, offered: dict[str, EntryPoint], asked: bool) -> PreparedCell:
    # A cutoff spares users what they did not ask for; an implementation that they name is worth waiting for.
    if not asked and cell.on_request(name):
        raise Skip("on request: name it")
    if not asked and (reason := cell.too_slow(name, candidates.task)):
        raise Skip(f"too slow here: {reason}")
    import impls

    return candidates.check(name, impls.wrap(name, offered[name].load()) if name in offered else cell.load(name, "conv2d"))


def _problem(impls: Any, request: dict[str, Any]) -> Problem:
    (n, c, h, w), (k, channels, r, s) = request["input"], request["weight"]
    dilation, padding = request["dilation"], request["padding"]
    if padding == "same":
        if r % 2 == 0 or s % 2 == 0 or request["stride"] != 1:
            raise ValueError('padding="same" needs stride 1, and here odd kernel sizes; give the padding in numbers')
        padding = (dilation * (r - 1) // 2, dilation * (s - 1) // 2)
    problem = Problem(n, c, h, w, k, r, s, request["stride"], tuple(padding), dilation, request["groups"], request["dtype"])
    # What cannot be computed is said once, by the arguments' own check, before anything is made.
    impls.load("cpu.loops").unsupported((n, c, h, w), (k, channels, r, s), **problem.arguments, dtype=problem.dtype)
    from impls import checks

    checks.require_memory(problem.bytes, f"input, weight and output of {problem.label}")
    return problem
