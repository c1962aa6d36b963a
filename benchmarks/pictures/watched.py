"""Times calls alone and under cProfile in turn: their seconds, and the share of each part."""

from __future__ import annotations

import cProfile
import random
import statistics
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeVar

Place = TypeVar("Place", bound=Hashable)


@dataclass(frozen=True)
class Watched:
    """Medians of one call: seconds by part under the profiler, seconds in all without it, and the share that it adds."""

    parts: dict[str, float]
    seconds: float
    cost: float


def measure(
    calls: Mapping[Place, Callable[[], Any]], read: Callable[[cProfile.Profile], dict[str, float]], rounds: int
) -> Iterator[dict[Place, Watched]]:
    """Call each in every round, in another order each time, watched and unwatched; yield what is known after each round.

    read: makes seconds by part of the profile of one call.
    """
    seconds: dict[Place, list[float]] = {place: [] for place in calls}
    found: dict[Place, list[dict[str, float]]] = {place: [] for place in calls}
    order, turns = list(calls), random.Random(0)
    for _ in range(rounds):
        for place in turns.sample(order, len(order)):
            start = perf_counter()
            calls[place]()
            seconds[place].append(perf_counter() - start)
            profile = cProfile.Profile()
            profile.runcall(calls[place])
            found[place].append(read(profile))
        yield {place: _medians(found[place], seconds[place]) for place in calls}


def _medians(found: list[dict[str, float]], seconds: list[float]) -> Watched:
    parts = {part: statistics.median(each[part] for each in found) for part in found[0]}
    # Of each round on its own, since what else the machine does changes between rounds.
    cost = statistics.median(sum(each.values()) / alone - 1 for each, alone in zip(found, seconds, strict=True))
    return Watched(parts, statistics.median(seconds), cost)
