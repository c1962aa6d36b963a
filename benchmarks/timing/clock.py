"""Times calls in blocks long enough for the clock, sampled back to back. Does not depend on asv."""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np


class Block:
    """Times calls: block(number) makes so many and returns the seconds for all of them together.

    output is what the last call returned, kept for the check after timing. remark: a reservation about the last block's
    time, in words. held_back: what slowed a device's clock during any of the blocks, in words.
    """

    output: Any = None
    remark: str | None = None
    held_back: str | None = None

    def __call__(self, number: int) -> float:
        raise NotImplementedError

    def timeit(self, number: int) -> float:
        """The same under timeit.Timer's name, for programs that sample an asv benchmark themselves."""
        return self(number)

    def reservation(self) -> str | None:
        """A reservation about the times, in words; None if there is none."""
        if self.held_back:
            return f"{self.held_back} held the device's clock back while this was measured"
        return self.remark


@dataclass(frozen=True)
class Plan:
    """How long to sample.

    sample_time: seconds a block should take at least. warmup_time: seconds of blocks before the first sample.
    repeat: the minimum and maximum of samples, and the seconds after which the minimum is enough. number: calls a block, 0 to
    find out.
    """

    sample_time: float = 0.01
    warmup_time: float = 0.1
    repeat: tuple[int, int, float] = (3, 10, 0.3)
    number: int = 0


@dataclass(frozen=True)
class Measurement:
    """Seconds a call, one for each block; calls a block; seconds spent in calls, warm-up included."""

    samples: list[float]
    number: int
    called: float


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """As timeit: a collection in the middle of a block would be part of its time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class Wall(Block):
    """Blocks of a call by the wall clock, with timeit's loop and garbage collection off, as timeit has it.

    As in timeit, a block frees as many outputs as it makes: every output but the last is dropped as soon as it is there,
    and the last one when the next block starts, inside its time. Freeing 64 MB takes milliseconds that belong to a call.
    """

    def __init__(self, call: Callable[[], Any], finish: Callable[[], Any] | None = None) -> None:
        """finish waits for the device; it is called before and after a block."""
        self.call, self.finish = call, finish

    def __call__(self, number: int) -> float:
        call, finish, calls = self.call, self.finish, itertools.repeat(None, number - 1)
        with no_garbage_collection():
            if finish:
                finish()
            start = perf_counter()
            self.output = None
            for _ in calls:
                call()
            self.output = call()
            if finish:
                finish()
            return perf_counter() - start


class Cold(Block):
    """Blocks whose calls each find the caches full of other data; the time to fill them is not counted."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.other = np.zeros(max(2 * _last_cache(), 32 << 20), np.uint8)

    def __call__(self, number: int) -> float:
        total = 0.0
        with no_garbage_collection():
            for _ in range(number):
                np.add(self.other, 1, out=self.other)
                start = perf_counter()
                self.output = None
                self.output = self.call()
                total += perf_counter() - start
        return total


def measure(block: Block, plan: Plan) -> Measurement:
    """Warm up, find how many calls make a block, and sample back to back.

    Nothing sleeps in between: an idle gap of 5 ms doubles the time of calls on two threads.
    """
    number, called = plan.number or 1, 0.0
    settled = bool(plan.number and not plan.warmup_time)
    first = True
    while not settled:
        seconds = block(number)
        called += seconds
        long_enough = bool(plan.number) or seconds >= plan.sample_time
        # The first block may have been interrupted or have compiled something: it never decides alone.
        settled = long_enough and called >= plan.warmup_time and not first
        if not long_enough:
            # Aim a tenth beyond, and at most ten times further: the first calls are slower than the rest.
            wanted = int(1.1 * plan.sample_time * number / max(seconds, 1e-9))
            number = max(number + 1, min(wanted, number * 10))
        first = False
    min_samples, max_samples, enough = plan.repeat
    samples: list[float] = []
    sampled = 0.0
    while len(samples) < max_samples and (len(samples) < min_samples or sampled < enough):
        seconds = block(number)
        samples.append(seconds / number)
        sampled += seconds
    return Measurement(samples, number, called + sampled)


def in_turn(
    blocks: Mapping[str, Block],
    seconds: float,
    min_samples: int,
    measured: dict[str, Measurement],
    undecided: Callable[[], bool] = lambda: False,
    max_rounds: int = 1,
) -> Iterator[float]:
    """Sample blocks alternately in random order, so that disturbances affect all of them alike.

    Each is sampled for so many seconds, and `min_samples` times; those with fewer samples have them spread over all turns.
    A call that is not counted stands before each sample: in it the caches fill, and the threads of the block before go to
    sleep. Yields the share that is done; the measurements are put into `measured`. As long as they leave something undecided
    all are sampled as much again, up to `max_rounds` times in all, and the share falls back accordingly.
    """
    wanted, called = {}, {}
    for name, block in blocks.items():
        measured[name] = first = measure(block, Plan(repeat=(1, 1, 0.0)))
        wanted[name] = max(min_samples, math.ceil(seconds / (first.samples[0] * first.number)))
        called[name] = first.called
    samples: dict[str, list[float]] = {name: [] for name in blocks}
    generator = random.Random(0)
    turns = max(wanted.values(), default=0)
    for rounds in range(max_rounds):
        if rounds and not undecided():
            break
        for turn in range(turns):
            due = [name for name, count in wanted.items() if (turn + 1) * count // turns > turn * count // turns]
            for name in generator.sample(due, len(due)):
                number = measured[name].number
                called[name] += blocks[name](1)
                took = blocks[name](number)
                called[name] += took
                samples[name].append(took / number)
            yield (rounds * turns + turn + 1) / ((rounds + 1) * turns)
        for name in blocks:
            measured[name] = Measurement(samples[name], measured[name].number, called[name])


def _last_cache() -> int:
    """Bytes of the largest cache of a core, as Linux tells; 0 if it does not."""
    sizes = [0]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        sizes.append(int(text.rstrip("KM")) << {"K": 10, "M": 20}.get(text[-1:], 0))
    return max(sizes)
