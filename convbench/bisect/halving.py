"""Bisection of a range: which commit to measure next, and what is left. Pure: places in, places out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class Halving:
    """A range of commits by their places: the one at `good` is fast, the one at `bad` slow, all others are unknown.

    skipped: those that cannot be measured. Every measurement halves what can be measured of the range, and every skip takes
    one away from it, so that a range of n commits after the good one needs at most log2(n), rounded up, beside the skips.
    """

    good: int
    bad: int
    skipped: set[int] = field(default_factory=set)

    @property
    def _unknown(self) -> list[int]:
        return [place for place in range(self.good + 1, self.bad) if place not in self.skipped]

    def next(self) -> int | None:
        """The middle of what can be measured, None where nothing is left."""
        unknown = self._unknown
        return unknown[(len(unknown) - 1) // 2] if unknown else None

    def ahead(self, count: int) -> list[int]:
        """The next place and those that may come after it, whatever the answers are, the soonest first."""
        ranges, found = [self], list[int]()
        while ranges and len(found) < count:
            first, *ranges = ranges
            if (place := first.next()) is not None:
                found.append(place)
                ranges += [Halving(first.good, place, self.skipped), Halving(place, first.bad, self.skipped)]
        return found

    def left(self) -> int:
        """How many measurements are left, if all of them succeed."""
        return math.ceil(math.log2(len(self._unknown) + 1))

    def tell(self, place: int, slow: bool | None) -> None:
        """Record whether the commit at a place is slow; None where that cannot be measured."""
        if slow is None:
            self.skipped.add(place)
        elif slow:
            self.bad = place
        else:
            self.good = place

    @property
    def suspects(self) -> range:
        """The places among which the first slow commit is; several only where all but the last were skipped."""
        return range(self.good + 1, self.bad + 1)
