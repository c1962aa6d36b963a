"""Sentences about results, each made of the numbers alone, so that it is true whatever comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

NOTHING = 0.05  # of a ratio: two processes of the same code differ by as much

Sentence = TypeVar("Sentence", bound=Callable[..., str])
SENTENCES: dict[str, Callable[..., str]] = {}  # all that say something about results; tests feed each its contrary


class Ratio(NamedTuple):
    """How many times as fast, and the interval of it."""

    value: float
    low: float
    high: float

    @property
    def direction(self) -> int:
        """1 for faster, -1 for slower, 0 for neither: the interval contains 1, or it differs from 1 by next to nothing."""
        if self.low <= 1 <= self.high or abs(self.value - 1) < NOTHING:
            return 0
        return 1 if self.value > 1 else -1

    @property
    def interval(self) -> str:
        return f"{times_as(self.low)} to {times_as(self.high)}"


def sentence(function: Sentence) -> Sentence:
    """Mark a function whose words depend on results."""
    SENTENCES[function.__name__] = function
    return function


def times_as(ratio: float) -> str:
    """A ratio in digits: 0.98, 1.4, 12."""
    if ratio < 0.095:
        return f"{ratio:.2g}"
    return f"{ratio:.2f}" if ratio < 1.195 else f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:,.0f}"


def duration(seconds: float) -> str:
    """A time with its unit: 3.24 ms."""
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
    scale, unit = next((each for each in units if seconds >= 0.9995 * each[0]), units[-1])
    value = seconds / scale
    if not value:
        return "0"
    return f"{value:,.0f} {unit}" if value >= 99.95 else f"{value:#.3g} {unit}"


def percent(share: float) -> str:
    """A share in percent, with a digit after the point below ten."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


@sentence
def gain(what: str, ratio: Ratio) -> str:
    """What a change did to the time. what: the change, as the subject of the sentence."""
    if ratio.direction > 0:
        return f"{what} made it {times_as(ratio.value)} times as fast ({ratio.interval})."
    if ratio.direction < 0:
        return f"{what} made it slower: {times_as(1 / ratio.value)} times the time (speed {ratio.interval})."
    return f"{what} gained nothing that shows: {times_as(ratio.value)} times the speed ({ratio.interval})."


@sentence
def compared(ours: str, than: str, ratio: Ratio) -> str:
    """How fast one thing is beside another, both named as nouns."""
    if ratio.direction > 0:
        return f"{ours} is {times_as(ratio.value)} times as fast as {than} ({ratio.interval})."
    if ratio.direction < 0:
        return f"{ours} is slower than {than}: it takes {times_as(1 / ratio.value)} times as long (speed {ratio.interval})."
    return f"{ours} and {than} do not differ beyond the spread: {times_as(ratio.value)} times the speed ({ratio.interval})."


@sentence
def gap(ours: str, than: str, first: tuple[str, float], last: tuple[str, float]) -> str:
    """How the ratio of two things changes with a size; first and last: the size in words, and the ratio there."""
    there = f"{ours} is {times_as(first[1])} times as fast as {than} at {first[0]} and {times_as(last[1])} times at {last[0]}"
    if last[1] > 1.2 * first[1]:
        return f"{there}: the gap grows with the size."
    if last[1] < first[1] / 1.2:
        return f"{there}: the gap shrinks with the size."
    return f"{there}: the gap hardly depends on the size."
