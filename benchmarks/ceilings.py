"""What this machine can do at best: the limits every other figure is held against, measured in the same run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import threads
from benchmarks.cell import Cell
from benchmarks.clock import Block, Wall
from benchmarks.oracle import WrongAnswer
from benchmarks.types import Skip

KIB, MIB = 1 << 10, 1 << 20
PAGE = 1024  # float32 elements in a page of memory: a copy is checked at one of each
SHARED = 8 * MIB  # bytes moved from which a copy is split over threads; smaller ones end before the threads have met

# Bytes moved are bytes read plus bytes written.
CEILINGS: dict[str, dict[str, Any]] = {
    **{f"copy into warm memory, {size >> 10} KiB": {"bytes": size} for size in (32 * KIB, 256 * KIB)},
    **{f"copy into warm memory, {size >> 20} MiB": {"bytes": size} for size in (MIB, 8 * MIB, 64 * MIB, 128 * MIB)},
    **{f"copy into fresh memory, {size >> 20} MiB": {"bytes": size, "fresh": True} for size in (MIB, 8 * MIB, 64 * MIB)},
    **{f"multiply-add, {dtype}": {"flops": 1 << 24, "dtype": dtype} for dtype in ("float32", "float64")},
}


class Ceilings:
    """Copies of growing size and the multiply-add rate, by threads."""

    params = (list(CEILINGS), list(threads.COUNTS))
    param_names = ("ceiling", "threads")
    version = "1"

    def setup(self, ceiling, count):
        self.cell = prepare(ceiling, threads.resolve(count))

    def time_ceiling(self, ceiling, count):
        self.cell.call()

    time_ceiling.ceilings = {repr(name): what for name, what in CEILINGS.items()}  # type: ignore[attr-defined]
    time_ceiling.quick = [repr(name) for name in CEILINGS]  # type: ignore[attr-defined]


def prepare(ceiling: str, count: int) -> Cell:
    """The cell of one ceiling. Raises Skip where it cannot be measured."""
    what = CEILINGS[ceiling]
    threads.confine(count)
    pools = threads.set_pools(count)
    make = _copy if "bytes" in what else _multiply_add
    return make(what, count, pools)


def _copy(what: dict, count: int, pools: dict[str, int]) -> Cell:
    size = what["bytes"] // 2
    source = np.ones(size // 4, np.float32)
    source[::PAGE] = np.arange(len(source[::PAGE]))
    if what.get("fresh"):
        if count > 1:
            raise Skip("not on several threads: one call allocates on one")
        return Cell(source.copy, Wall(source.copy), _equals(source), pools)
    target = np.zeros_like(source)
    if count > 1 and what["bytes"] < SHARED:
        raise Skip("not on several threads: so small a copy ends before they have met")
    parts = list(zip(np.array_split(target, count), np.array_split(source, count), strict=True))
    return _on_threads([lambda part=part: np.copyto(*part) for part in parts], target, _equals(source), pools)


def _multiply_add(what: dict, count: int, pools: dict[str, int]) -> Cell:
    try:
        from numba import njit
    except ImportError as error:
        raise Skip("unavailable: the multiply-add rate needs Numba: pip install numba") from error

    @njit(nogil=True, cache=True, fastmath={"contract"})
    def chain(values, factor, steps):
        # Eight dependent multiply-adds an element, thousands of independent elements in the L1 cache: the out-of-order
        # window holds enough of them to keep every unit busy, and a load and a store are shared by eight. Longer chains
        # were slower (16: 0.86 of the rate, 32: 0.59).
        for _ in range(steps):
            for i in range(len(values)):
                x = values[i]
                x = x * factor + factor
                x = x * factor + factor
                x = x * factor + factor
                x = x * factor + factor
                x = x * factor + factor
                x = x * factor + factor
                x = x * factor + factor
                x = x * factor + factor
                values[i] = x

    elements = 4096 // np.dtype(what["dtype"]).itemsize
    steps = what["flops"] // (16 * elements * count)
    # One half is the factor's fixed point, x/2 + 1/2 = x at 1: values stay exact and can be checked.
    lanes = [np.ones(elements, what["dtype"]) for _ in range(count)]
    half = lanes[0].dtype.type(0.5)
    start = perf_counter()
    chain(lanes[0], half, 1)  # compiles
    compiled = perf_counter() - start
    calls = [lambda lane=lane: chain(lane, half, steps) for lane in lanes]
    cell = _on_threads(calls, lanes[0], _equals(np.ones_like(lanes[0])), pools)
    cell.called = compiled
    return cell


class _Together(Block):
    """All of several calls at the same time, each on a thread of its own for a whole block."""

    def __init__(self, calls: list[Callable], result: np.ndarray) -> None:
        self.calls, self.output, self.pool = calls, result, ThreadPoolExecutor(len(calls))

    def __call__(self, number: int) -> float:
        gate = threading.Barrier(len(self.calls))

        def work(call) -> tuple[float, float]:
            gate.wait()
            start = perf_counter()
            for _ in range(number):
                call()
            return start, perf_counter()

        times = list(self.pool.map(work, self.calls))
        return max(end for _, end in times) - min(start for start, _ in times)


def _on_threads(calls: list[Callable], result: np.ndarray, verify: Callable, pools: dict[str, int]) -> Cell:
    """A cell whose one call is all of `calls`; they leave their result where it is."""
    if len(calls) > 1:
        block: Block = _Together(calls, result)
        return Cell(lambda: block(1), block, verify, pools)
    (only,) = calls

    def call() -> np.ndarray:
        only()
        return result

    return Cell(call, Wall(call), verify, pools)


def _equals(expected: np.ndarray) -> Callable:
    def verify(output: np.ndarray) -> dict:
        if not np.array_equal(output[::PAGE], expected[::PAGE]):
            raise WrongAnswer("the result is not what was copied or computed")
        return {}

    return verify
