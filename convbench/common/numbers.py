"""Formats numbers with the digits that the data supports."""

from __future__ import annotations

import math

UNITS = {
    "seconds": ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s")),
    "bytes": ((1, "B"), (2**10, "KiB"), (2**20, "MiB"), (2**30, "GiB")),
}
LARGEST = 1e300  # rounding could make it infinite
MOST_DIGITS = 4  # no clock here is repeatable beyond these digits


def digits(spread: float | None) -> int:
    """How many digits a figure with this relative spread supports: 5 % supports two, 0.5 % three."""
    if spread is None or not math.isfinite(spread):
        return 3
    if spread <= 0:
        return MOST_DIGITS
    return min(MOST_DIGITS, max(1, math.ceil(-math.log10(spread))))


def quantity(value: float, unit: str, spread: float | None = None) -> str:
    """A value with its unit, scaled to a readable size and rounded to the digits its spread supports."""
    if value == 0:
        return f"0 {UNITS.get(unit, ((1, unit),))[0][1]}"
    if unit not in UNITS:
        return f"{significant(value, digits(spread))} {unit}"
    count = digits(spread)
    step = UNITS[unit][1][0] / UNITS[unit][0][0]
    for scale, name in UNITS[unit]:
        text = significant(value / scale, count)
        # Below the next unit before rounding and after: 999.6 us at one digit is 1 ms.
        if max(abs(value / scale), abs(float(text))) < step:
            return f"{text} {name}"
    return f"{text} {name}"


def with_spread(value: float, unit: str, spread: float | None) -> str:
    """A quantity, and its spread where that is known."""
    return quantity(value, unit, spread) + ("" if spread is None or not math.isfinite(spread) else f" ±{percent(spread)}")


def many(count: int, noun: str) -> str:
    """A count with its noun: "1 thread", "2 threads"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def significant(value: float, count: int) -> str:
    """A number rounded to `count` significant digits, written without an exponent."""
    if value == 0 or not math.isfinite(value) or abs(value) > LARGEST:
        return f"{value:g}"
    places = count - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    if abs(rounded) >= 10 ** (count - places):  # 0.997 at two digits is 1.0, not 1.00
        places -= 1
    return f"{rounded:.{max(0, places)}f}"


def percent(share: float) -> str:
    """A share as a percentage, with a digit after the point only below ten."""
    value = 100 * share
    if 0 < value < 0.1:
        return "<0.1 %"
    return f"{value:.1f} %" if value < 9.95 else f"{value:.0f} %"


def ratio(value: float, spread: float | None = None) -> str:
    """A speed-up: two digits, or one where the spread supports no more."""
    return f"{significant(value, min(2, digits(spread)))}x"


def duration(seconds: float) -> str:
    """An estimate to the second below a minute, to ten seconds below an hour: "45 s", "6 min 20 s", "2 h 10 min"."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    step, small, large = (10, "s", "min") if seconds < 3600 else (600, "min", "h")
    whole, rest = divmod(round(seconds / step) * step // (step // 10), 60)
    return f"{whole} {large} {rest} {small}"


def minutes(seconds: float) -> str:
    """An estimated duration in seconds or minutes."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} minutes"
