"""Judges each cell by the rounds of a gate. Pure: numbers in, verdicts out.

The unit is the round, two fresh processes: what differs between two processes of the same code (where memory lies,
above all) stays for their whole life, so that more samples of one process say nothing new.

Memory and other values that a benchmark returns are compared as they are, since most repeat to the last digit.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

LEVEL = 0.95  # of the intervals, over all cells that are judged together
# Of the interval that has to lie close to no change: two one-sided tests (Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987).
SAME_LEVEL = 0.95
SMALLEST = 0.025  # change worth reporting: half the smallest slow-down that the gate promises to find
SMALLEST_OF_VALUES = 0.01  # the same for values other than times
VERDICTS = ("regressed", "improved", "same", "ambiguous")
MIN_ROUNDS = 4  # rounds before anything is judged: with three, one odd round decides
# Share of the rounds left out at either end. One process in twenty lands badly in memory and is 10 to 50 % off; a mean over
# ten rounds would carry that, and its interval would be too wide for every verdict.
TRIM = 0.1


# What a round has found of a cell: the log-ratio of its times, head over base; or the values of base and head.
Round = float | tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """A change as head over base: the ratio, and the interval that holds it at the level of the family.

    Of values the interval is that of the rounds; all three are NaN where no ratio says anything, at 0 and below.
    """

    ratio: float
    low: float
    high: float
    rounds: int


@dataclass(frozen=True)
class Finding:
    """A cell's estimate and its verdict: "regressed", "improved", "same" or "ambiguous"."""

    estimate: Estimate
    verdict: str


def judge(cells: Mapping[str, Sequence[Round]], smallest: Mapping[str, float] | None = None) -> dict[str, Finding]:
    """Judge the rounds of each cell, all that are timed as one family.

    smallest: a cell's smallest change worth reporting, where that is not SMALLEST, or SMALLEST_OF_VALUES.

    A timed cell has changed when its interval lies wholly beyond the smallest change worth reporting; it is the same when its
    interval lies wholly within twice that, so that a change as large as promised is excluded, and its estimate within the
    smallest change itself. Everything else is ambiguous. Which cells changed is decided by the step-up rule of Benjamini
    and Hochberg (J. R. Stat. Soc. B 57, 1995), and the intervals are those of Benjamini and Yekutieli (J. Am. Stat. Assoc.
    100, 2005), widened by the share of selected cells, so that the two never contradict each other.
    """
    smallest = smallest or {}
    arrays = {name: np.asarray(rounds, float) for name, rounds in cells.items() if len(rounds) >= 2}
    values = {
        name: _finding_of_values(rounds, smallest.get(name, SMALLEST_OF_VALUES))
        for name, rounds in arrays.items()
        if rounds.ndim == 2
    }
    enough = {name: rounds for name, rounds in arrays.items() if name not in values}
    if not enough:
        return values
    thresholds = {name: math.log1p(smallest.get(name, SMALLEST)) for name in enough}
    p_values = [_p_value(rounds, thresholds[name]) for name, rounds in enough.items()]
    picked = int(np.sum(stats.false_discovery_control(p_values) <= 1 - LEVEL))
    level = 1 - (1 - LEVEL) * max(picked, 1) / len(enough)
    return values | {name: _finding(rounds, level, thresholds[name], picked > 0) for name, rounds in enough.items()}


def decide(
    first: Mapping[str, Sequence[Round]],
    confirming: Mapping[str, Sequence[Round]],
    smallest: Mapping[str, float] | None = None,
) -> dict[str, Finding]:
    """Judge all rounds of a gate at its end, with all cells as one family.

    first, confirming: by cell, its first rounds, and those after it came under suspicion. A change
    has to be found by the confirming rounds; what the first alone find is ambiguous.
    """
    enough = {name: rounds for name, rounds in confirming.items() if len(rounds) >= MIN_ROUNDS}
    found = judge({name: rounds for name, rounds in first.items() if len(rounds) >= MIN_ROUNDS}, smallest)
    unconfirmed = {
        name: dataclasses.replace(finding, verdict="ambiguous")
        for name, finding in found.items()
        if finding.verdict in ("regressed", "improved") or confirming.get(name)
    }
    return found | unconfirmed | judge(enough, smallest)


def _finding(rounds: np.ndarray, level: float, threshold: float, changes: bool) -> Finding:
    centre, low, high = interval(rounds, level)
    # A missed change is not a false alarm: "same" needs no correction for the number of cells. But it is asked after every
    # round, and a change as large as promised would pass once in ten times by its interval alone; its estimate hardly ever.
    _, lowest, highest = interval(rounds, SAME_LEVEL)
    if changes and low > threshold:
        verdict = "regressed"
    elif changes and high < -threshold:
        verdict = "improved"
    elif lowest > -2 * threshold and highest < 2 * threshold and abs(centre) < threshold:
        verdict = "same"
    else:
        verdict = "ambiguous"
    return Finding(Estimate(math.exp(centre), math.exp(low), math.exp(high), len(rounds)), verdict)


def _finding_of_values(rounds: np.ndarray, smallest: float) -> Finding:
    """Compare pairs of values: a change is larger than both the spread of the rounds' differences and the smallest of worth.

    The differences are those of one round, since its two processes have their memory at the same addresses.
    """
    base, head = rounds.T
    change, spread = float(np.median(head - base)), float(np.ptp(head - base))
    least = smallest * abs(float(np.median(base)))
    if abs(change) > max(spread, least):
        verdict = "regressed" if change > 0 else "improved"
    else:
        verdict = "same" if spread <= least else "ambiguous"
    ratios = head / base if rounds.min() > 0 else np.full(len(rounds), math.nan)
    return Finding(Estimate(float(np.median(ratios)), float(ratios.min()), float(ratios.max()), len(rounds)), verdict)


def interval(rounds: np.ndarray, level: float) -> tuple[float, float, float]:
    """Trimmed mean of the rounds' log-ratios, and its interval by Student's t: Tukey and McLaughlin (Sankhya A 25, 1963)."""
    centre, error, freedom = _trimmed(rounds)
    half = error * float(special.stdtrit(freedom, (1 + level) / 2))
    return centre, centre - half, centre + half


def proportion(count: int, of: int) -> tuple[float, float]:
    """The interval of a share at 95 %, exact: Clopper and Pearson (Biometrika 26, 1934)."""
    found = stats.binomtest(count, of).proportion_ci(LEVEL, method="exact")
    return float(found.low), float(found.high)


def _trimmed(rounds: np.ndarray) -> tuple[float, float, int]:
    """The trimmed mean, its standard error from the winsorized spread, and the degrees of freedom of that."""
    count, cut = len(rounds), int(TRIM * len(rounds))
    ordered = np.sort(rounds)
    winsorized = np.clip(ordered, ordered[cut], ordered[count - cut - 1])
    error = float(np.std(winsorized, ddof=1)) / ((1 - 2 * cut / count) * math.sqrt(count))
    # Rounds that agree to the last digit still have an interval.
    return float(ordered[cut : count - cut].mean()), max(error, 1e-9), count - 2 * cut - 1


def _p_value(rounds: np.ndarray, threshold: float) -> float:
    """The probability of rounds as far out as these, or further, were the change no larger than the threshold."""
    centre, error, freedom = _trimmed(rounds)
    return min(1.0, 2 * float(special.stdtr(freedom, (threshold - abs(centre)) / error)))
