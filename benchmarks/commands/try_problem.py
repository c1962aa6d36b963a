"""Any problem on the working tree: every implementation is checked, then timed in turn. Stores nothing."""

from __future__ import annotations

import functools
import math
import mmap
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import numpy as np

from benchmarks.commands import own_problems
from benchmarks.commands.interleaved import Candidates
from benchmarks.errors import Skip
from benchmarks.harness import cell
from benchmarks.timing import limits, memory
from benchmarks.timing.prepared_cell import PreparedCell

GROUP = "convbench.implementations"  # entry points by which installed packages offer implementations
FRESH = "cpu.auto, fresh output"
MIN_SAMPLES = 5  # of each implementation, however slow it is


def run(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield events: {"preparing": name}, {"sampled": share}, then {"ceiling": ...} and {"cell": ...} for each result.

    request: operation; what own_problems.make() takes of it; names; files: paths of implementations from elsewhere, by the
    names that they get here; threads; seconds for each implementation. Raises ValueError, TypeError, LookupError or
    NotImplementedError for what cannot be computed, ImportError for what is missing, and MemoryError for what does not fit.
    """
    import impls  # imported here, because asv imports every file of the suite, also with a commit that has no impls

    memory.keep_freed_memory()
    operation = request["operation"]
    problem = own_problems.make(request)
    # The operation of a package's implementation is known only after loading: other than conv2d's must be named.
    packages: dict[str, Callable[[], Any]] = {
        entry.name: functools.partial(_from_package, entry) for entry in entry_points(group=GROUP)
    }
    files = {
        name: functools.partial(impls.load_file, path, operation, name) for name, path in request.get("files", {}).items()
    }
    if taken := [name for name in files if name in packages or name in impls.names(operation)]:
        raise ValueError(f"{taken[0]} is already the name of an implementation: rename the file")
    offered: dict[str, Callable[[], Any]] = {**packages, **files}
    every = [*impls.names(operation), *(sorted(packages) if operation == "conv2d" else ())]
    names = [*(request["names"] or every), *(name for name in files if name not in request["names"])]
    for name in names:
        if name not in offered and name not in impls.names(operation):
            impls.load(name, operation)  # raises, with near matches
    candidates = Candidates(problem, request["threads"], operation)
    for name in names:
        yield {"preparing": name}
        candidates.add(name, functools.partial(_prepare, candidates, name, offered.get(name), bool(request["names"])))
    if operation == "conv2d" and "cpu.auto" in candidates.ready:
        yield {"preparing": FRESH}
        candidates.add(FRESH, functools.partial(_into_fresh_memory, candidates))
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
        yield {"cell": result, "problem": candidates.task.describe(), "baseline": candidates.task.baseline}


def _from_package(entry: EntryPoint) -> Any:
    import impls

    return impls.wrap(entry.name, entry.load())


def _into_fresh_memory(candidates: Candidates) -> PreparedCell:
    """cpu.auto with an output in pages that the system clears, as each call has them where freed memory goes back to it; the
    other candidates find the memory of their last output again.
    """
    function, shape, dtype = cell.load("cpu.auto", "conv2d"), candidates.problem.output_shape, candidates.arrays[0].dtype
    count = math.prod(shape)

    def call() -> np.ndarray:
        pages = mmap.mmap(-1, max(1, count * dtype.itemsize), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        out = np.frombuffer(pages, dtype, count).reshape(shape)
        return function(*candidates.arrays, **candidates.problem.arguments, out=out)

    return candidates.check(FRESH, function, call=call)


def _prepare(candidates: Candidates, name: str, elsewhere: Callable[[], Any] | None, asked: bool) -> PreparedCell:
    operation = candidates.task.operation
    if elsewhere:
        function = elsewhere()
        if function.operation != operation:
            raise TypeError(f"{name} is an implementation of {function.operation}, not of {operation}")
        return candidates.check(name, function)
    # Cutoffs skip slow implementations that users did not select; a named one is always measured.
    if not asked and cell.on_request(name, operation):
        raise Skip("on request: select it by name")
    if not asked and (reason := cell.too_slow(name, candidates.task)):
        raise Skip(f"too slow here: {reason}")
    return candidates.check(name, cell.load(name, operation))
