"""Runs one implementation on one problem under a profiler: prepared, checked and warm. Stores nothing."""

from __future__ import annotations

import cProfile
import ctypes
import functools
import marshal
import operator
import os
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

from benchmarks.commands import fork_server, jit_names, nvtx, perf_stat
from benchmarks.commands.try_problem import GROUP
from benchmarks.errors import Skip, WrongAnswer
from benchmarks.harness import cell, side_file
from benchmarks.timing import clock, memory, threads
from benchmarks.timing.prepared_cell import PreparedCell
from benchmarks.workloads.tasks import Task

WARM = 0.2  # seconds of calls before any profile, which excludes compilation and caching on first use
DEEP = 6  # public functions within one another that a trace shows: from a step of training to its convolutions
ALL_CALLS = "convbench"  # the range that Nsight Systems can be told to record, without the warm-up
PR_SET_PTRACER = 0x59616D61  # sys/prctl.h

Function = tuple[str, int, str]  # file, line and name, as pstats has them


def run(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield events: {"process": its number}, {"preparing": name}, {"ready": facts}, then for each of request["tools"]
    {"profiling": name} and one called like the tool.

    "counters": perf's report of what the processor did. "calls": a profile by cProfile in pstats's format. "trace": torch's.
    All write the file that the request names so, and say how many calls they saw. "stacks": for a profiler that looks into
    the process, what code without a file is called; then calls without end, so it is the last, and the asking process ends
    this one.

    request: name, problem (one of a set, or a label), operation, threads; calls and seconds, of which the first to be
    reached ends a profile. Raises ValueError, TypeError, LookupError, ImportError or MemoryError for what cannot be profiled.
    """
    fork_server.end_with_parent()
    yield {"process": os.getpid()}
    if "stacks" in request["tools"]:
        jit_names.announce()
    memory.keep_freed_memory()
    name, operation = request["name"], request["operation"]
    problem = cell.kind(operation).find(request["problem"])
    yield {"preparing": name}
    try:
        ready = _prepare(name, cell.task(operation, problem), request["threads"])
    except Skip as skip:
        raise ValueError(f"{name} on {problem.label}: {skip}") from skip
    except WrongAnswer as error:
        raise ValueError(f"{name} is wrong on {problem.label}, and a wrong answer has no profile: {error}") from error
    facts = {"operation": operation, "name": name, "problem": problem.label, "dtype": problem.dtype}
    facts |= {"threads": request["threads"], "versions": side_file.versions()}
    call = functools.partial(clock.Wall(ready.call, ready.synchronize), 1) if ready.on_device else ready.call
    yield {"ready": {**facts, "seconds": _usual(call)}}
    for tool in request["tools"]:
        yield {"profiling": name}
        if tool == "stacks":
            _allow_tracing()
            yield {"stacks": jit_names.compiled()}
            while True:
                call()
        profile = {"counters": _counters, "calls": _calls, "trace": _trace}[tool]
        yield {tool: profile(call, request, f"{name} on {problem.label}")}


def _prepare(name: str, task: Task, count: int) -> PreparedCell:
    """As cell.prepare() does, but for cutoffs: an implementation that is named is worth waiting for."""
    import impls  # imported here, because asv imports every file of the suite, also with a commit that has no impls
    from impls import checks

    threads.require(count)
    threads.confine(count)  # before a library is loaded, which makes its pool for the cores it finds
    offered = {entry.name: entry for entry in entry_points(group=GROUP)} if task.operation == "conv2d" else {}
    function = impls.wrap(name, offered[name].load()) if name in offered else impls.load(name, task.operation)
    cell.require_support(function, task)
    checks.require_memory(task.describe()["bytes"], f"the arrays of {task.problem.label}")
    return task.check(function, threads.set_pools(count))


def _usual(call: Callable[[], Any]) -> float:
    """Warm up; return the median seconds of a call that is not profiled."""
    times: list[float] = []
    while not times or sum(times) < WARM:
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return statistics.median(times)


def _repeat(call: Callable[[], Any], request: dict[str, Any], title: str) -> int:
    """Call until either limit is reached, once at least; return how often. Each call is an NVTX range, and all are one."""
    mark = nvtx.marker()
    start, count = perf_counter(), 0
    with mark(ALL_CALLS):
        while not count or (count < request["calls"] and perf_counter() - start < request["seconds"]):
            with mark(title):
                call()
            count += 1
    return count


def _counters(call: Callable[[], Any], request: dict[str, Any], title: str) -> int:
    return perf_stat.count(lambda: _repeat(call, request, title), Path(request["files"]["counters"]))


def _calls(call: Callable[[], Any], request: dict[str, Any], title: str) -> int:
    profile = cProfile.Profile()
    count = _repeat(functools.partial(profile.runcall, call), request, title)
    with Path(request["files"]["calls"]).open("wb") as file:
        marshal.dump(_statistics(profile), file)
    return count


def _statistics(profile: cProfile.Profile) -> dict[Function, tuple[Any, ...]]:
    """The statistics in pstats's form, {function: (primitive calls, calls, own, cumulative, {caller: the same from there})}.

    The profiler's own create_stats() names a function by a path of this machine and, of several on one line, keeps one.
    """
    entries = [entry for entry in profile.getstats() if "_lsprof.Profiler" not in str(entry.code)]
    found: dict[Function, list[float]] = {}
    callers: dict[Function, dict[Function, list[float]]] = {}
    for entry in entries:
        function = _name(entry.code)
        # The order that pstats has: primitive calls first here, and second in a caller's tuple.
        numbers = (entry.callcount - entry.reccallcount, entry.callcount, entry.inlinetime, entry.totaltime)
        found[function] = list(map(operator.add, found.get(function, [0, 0, 0.0, 0.0]), numbers))
        for sub in entry.calls or ():
            there = callers.setdefault(_name(sub.code), {})
            numbers = (sub.callcount, sub.callcount - sub.reccallcount, sub.inlinetime, sub.totaltime)
            there[function] = list(map(operator.add, there.get(function, [0, 0, 0.0, 0.0]), numbers))
    return {
        function: (*numbers, {caller: tuple(each) for caller, each in callers.get(function, {}).items()})
        for function, numbers in found.items()
    }


def _name(code: Any) -> Function:
    """A function by where it can be imported from, the same on every machine; cProfile has text for what is built in."""
    if isinstance(code, str):
        return "~", 0, re.sub(r" at 0x[0-9a-f]+", "", code)
    # Cython writes a function's types behind its name.
    return _short(code.co_filename), code.co_firstlineno, code.co_qualname.partition("[")[0]


@functools.cache
def _short(path: str) -> str:
    if not Path(path).is_absolute():  # Cython's files are named from the folder in which a package was built
        return path
    folders = [f"{folder.rstrip('/')}/" for folder in (str(cell.CHECKOUT), *sys.path) if folder]
    inside = [folder for folder in folders if path.startswith(folder)]
    return path.removeprefix(max(inside, key=len)) if inside else Path(path).name


def _trace(call: Callable[[], Any], request: dict[str, Any], title: str) -> int:
    """torch's profile: a range for each call, and in it one for each public function of impls, for what has no torch."""
    from torch.profiler import profile, record_function

    from impls import contract

    package = f"{Path(contract.__file__).parent}{os.sep}"
    ranges: list[Any] = []  # of the functions that run now; None for one that has none

    def watch(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(package):
            return
        if event == "return":
            if (ended := ranges.pop()) is not None:
                ended.__exit__(None, None, None)
            return
        machinery = code.co_filename == contract.__file__ or code.co_qualname.startswith("checker.")
        hidden = machinery or code.co_name.startswith(("_", "<"))
        if hidden or sum(one is not None for one in ranges) >= DEEP:
            ranges.append(None)
        else:
            ranges.append(record_function(f"{Path(code.co_filename).stem}.{code.co_name}"))
            ranges[-1].__enter__()

    def marked() -> None:
        with record_function(title):
            sys.setprofile(watch)
            try:
                call()
            finally:
                sys.setprofile(None)

    with profile() as recorded:
        count = _repeat(marked, request, title)
    recorded.export_chrome_trace(request["files"]["trace"])
    return count


def _allow_tracing() -> None:
    """Let any process of this user trace this one, which Linux otherwise allows only to a parent (prctl(2), Yama)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
