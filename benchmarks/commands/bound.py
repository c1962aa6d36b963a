"""Finds the bound of a call that decodes: disk, decoding, arithmetic or memory, and the gain if one were twice as fast.

On one thread. Disk is the extra time of a call with cold files; decoding is the time that cProfile finds in the one
function that calls a decoder. Arithmetic and memory are the time of the operation's FLOPs and bytes at this machine's
measured limits; the rest is calls, passes over arrays that the operation does not need, and the interpreter.
"""

from __future__ import annotations

import cProfile
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.errors import Skip
from benchmarks.harness import cell
from benchmarks.timing import limits
from benchmarks.timing.prepared_cell import PreparedCell
from benchmarks.workloads.tiles import ColdPages

PROBLEMS = {
    "decode_jpeg": "n1h1080w1920y1080x1920r1",
    "preprocess": "n4h480w640y120x160s128",
    "read_batch": "n32b13h64w64",
}
DECODERS = {("decode_jpeg", "jpeg.py", "decoded"), ("read_batch", "arguments.py", "named")}  # package, file, function
RATES = {"arithmetic": ("multiply-add, float32", "flops"), "memory": ("copy into warm memory, 64 MiB", "bytes")}
ROUNDS = 15  # calls of each kind, of which the median counts
COLD_ROUNDS = 5


@dataclass(frozen=True)
class Parts:
    """Seconds of a call by the resource that bounds them."""

    disk: float
    decoding: float
    arithmetic: float
    memory: float
    rest: float

    @property
    def total(self) -> float:
        return sum(self.all().values())

    def all(self) -> dict[str, float]:
        """The parts by their names."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def largest(self) -> str:
        return max(self.all(), key=self.all().__getitem__)

    def gain(self, *twice: str) -> float:
        """How many times faster a call would be on a machine that is twice as fast in these parts."""
        return self.total / (self.total - sum(self.all()[name] for name in twice) / 2)

    @property
    def most_by_device(self) -> float:
        """How many times faster it would be where a device did all but disk and decoding, in no time."""
        return self.total / (self.disk + self.decoding) if self.disk + self.decoding else float("inf")


def split(seconds: float, cold: float, decoding: float, arithmetic: float, memory: float) -> Parts:
    """The parts of a call that takes so many seconds, and `cold` with its files in no cache.

    decoding: the share of the call. arithmetic, memory: seconds at the machine's limits, cut where a decoder did some of
    that work within its own time. They overlap in a processor, so that the larger hides the smaller.
    """
    left = seconds * (1 - decoding)
    arithmetic, memory = (arithmetic, 0.0) if arithmetic > memory else (0.0, memory)
    bounded = min(left, arithmetic + memory)
    arithmetic, memory = min(arithmetic, bounded), min(memory, bounded)
    return Parts(max(0.0, cold - seconds), seconds * decoding, arithmetic, memory, left - bounded)


def run(request: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each implementation.

    request: operation; problem, a label; names, of implementations. Raises ValueError or LookupError for others.
    """
    operation = request.get("operation", "preprocess")
    if operation not in PROBLEMS:
        raise LookupError(f"no bound of {operation!r} is measured; there are {', '.join(PROBLEMS)}")
    problem = cell.kind(operation).find(request.get("problem") or PROBLEMS[operation])
    seconds = at_limits(cell.task(operation, problem).describe())
    yield f"{operation} {problem.label}, one thread"
    for name in request.get("names") or cell.implementations(operation):
        try:
            ready = cell.prepare(name, problem, 1, operation)
        except Skip as skip:
            yield f"{name}: {skip}"
            continue
        yield f"{name}: {words(measure(ready, operation, seconds))}"


def at_limits(described: Mapping[str, Any]) -> dict[str, float]:
    """Seconds of a problem's arithmetic and of its memory at this machine's limits; described: as a task describes it."""
    return {part: _rate(limit, kind) * described[kind] for part, (limit, kind) in RATES.items()}


def measure(ready: PreparedCell, operation: str, seconds: Mapping[str, float]) -> Parts:
    """The parts of a call. seconds: those at the limits."""
    usual = _median(ready.block, ROUNDS)
    cold = _median(ColdPages(ready.call), COLD_ROUNDS) if operation == "read_batch" else usual
    return split(usual, cold, _decoding(ready), **seconds)


def words(parts: Parts) -> str:
    """The bound of a call, in a sentence or two."""
    milliseconds = ", ".join(f"{name} {1e3 * each:.3g}" for name, each in parts.all().items())
    bound = "none of the four" if parts.largest == "rest" else parts.largest
    gains = ", ".join(f"{name} {parts.gain(name):.2f}x" for name in parts.all() if name != "rest")
    core = parts.gain("decoding", "arithmetic", "rest")
    device = f"at most {parts.most_by_device:.2f}x" if parts.disk + parts.decoding else "without a bound"
    return (
        f"{1e3 * parts.total:.3g} ms a call ({milliseconds}), bound by {bound}. Twice as fast: {gains}; "
        f"a core twice as fast in all it does {core:.2f}x, a device for all but disk and decoding {device}"
    )


def _median(block: Callable[[int], float], rounds: int) -> float:
    block(1)
    return statistics.median(block(1) for _ in range(rounds))


def _rate(limit: str, kind: str) -> float:
    """Seconds for one FLOP or byte at the machine's limit."""
    return _median(limits.prepare(limit, 1).block, ROUNDS) / limits.LIMITS[limit][kind]


def _decoding(ready: PreparedCell) -> float:
    """The share of a call that its decoder takes."""
    shares = []
    for _ in range(ROUNDS):
        profile = cProfile.Profile()
        profile.runcall(ready.call)
        whole = inside = 0.0
        for entry in profile.getstats():
            code: Any = entry.code
            if isinstance(code, str):
                continue
            whole = max(whole, entry.totaltime)
            path = Path(code.co_filename)
            if (path.parent.name, path.name, code.co_name) in DECODERS:
                inside += entry.totaltime
        shares.append(inside / whole)
    return statistics.median(shares)
