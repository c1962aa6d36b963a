"""How a call is timed: in blocks long enough for the clock, sampled back to back. Knows nothing of asv."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

# One block: how many calls, to seconds for all of them together and the last call's output.
Block = Callable[[int], tuple[float, Any]]


@dataclass(frozen=True)
class Plan:
    """How long to sample.

    sample_time: seconds a block should take at least. warmup_time: seconds of blocks before the first sample.
    repeat: samples at least, at most, and the seconds after which the least is enough. number: calls a block, 0 to find out.
    """

    sample_time: float = 0.01
    warmup_time: float = 0.1
    repeat: tuple[int, int, float] = (3, 10, 0.3)
    number: int = 0


@dataclass(frozen=True)
class Measurement:
    """Seconds a call, one for each block; calls a block; seconds spent in calls, warm-up included; the last output."""

    samples: list[float]
    number: int
    called: float
    output: Any


def wall(call: Callable[[], Any]) -> Block:
    """Blocks of a call by the wall clock, with timeit's loop and garbage collection off, as timeit has it.

    The last output is kept for the check after timing; those before it are dropped call by call, as a user's would be.
    """

    def block(number: int) -> tuple[float, Any]:
        calls = itertools.repeat(None, number - 1)
        collecting = gc.isenabled()
        gc.disable()
        try:
            start = perf_counter()
            for _ in calls:
                call()
            output = call()
            return perf_counter() - start, output
        finally:
            if collecting:
                gc.enable()

    return block


def measure(block: Block, plan: Plan) -> Measurement:
    """Warm up, find how many calls make a block, and sample back to back.

    Nothing sleeps in between: an idle gap of 5 ms doubles the time of calls on two threads.
    """
    number, called, long_enough = plan.number or 1, 0.0, bool(plan.number)
    while not long_enough or called < plan.warmup_time:
        seconds, _ = block(number)
        called += seconds
        long_enough = bool(plan.number) or seconds >= plan.sample_time
        if not long_enough:
            # Aim a tenth beyond, and at most ten times further: the first calls are slower than the rest.
            wanted = int(1.1 * plan.sample_time * number / max(seconds, 1e-9))
            number = max(number + 1, min(wanted, number * 10))
    least, most, enough = plan.repeat
    samples: list[float] = []
    output, sampled = None, 0.0
    while len(samples) < most and (len(samples) < least or sampled < enough):
        output = None  # freed before the block: every block starts with the same memory in use
        seconds, output = block(number)
        samples.append(seconds / number)
        sampled += seconds
    return Measurement(samples, number, called + sampled, output)


def cold(call: Callable[[], Any]) -> Block:
    """Blocks whose calls each find the caches full of other data; the time to fill them is not counted."""
    other = np.zeros(max(2 * _last_cache(), 32 << 20), np.uint8)

    def block(number: int) -> tuple[float, Any]:
        total, output = 0.0, None
        for _ in range(number):
            output = None
            np.add(other, 1, out=other)
            start = perf_counter()
            output = call()
            total += perf_counter() - start
        return total, output

    return block


def _last_cache() -> int:
    """Bytes of the largest cache of a core, as Linux tells; 0 where it does not."""
    sizes = [0]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        sizes.append(int(text.rstrip("KM")) << {"K": 10, "M": 20}.get(text[-1:], 0))
    return max(sizes)
