"""Whether samples of one process decide comparisons of two medians yet. The next process may differ by more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

MAX_LOOKS = 4  # times that samples are taken, and looked at
# Of the interval that leaves the truth out in 5 of 100 though it is looked at so often: Pocock (Biometrika 64, 1977).
LEVEL = 1 - 0.0182
RESAMPLES = 999


class Comparison(NamedTuple):
    """A comparison: ours should be at least `min_ratio` times as fast as another."""

    ours: str
    than: str
    min_ratio: float


def interval(ours: Sequence[float], than: Sequence[float]) -> tuple[float, float]:
    """The interval of the other's median time over ours, by the percentile bootstrap (Efron, Ann. Stat. 7, 1979).

    Of samples that are taken again while it holds something, at most MAX_LOOKS times, it leaves the truth out in 5 of 100.
    """
    from scipy import stats  # the suite can be listed without SciPy

    if min(len(ours), len(than)) < 2:
        return 0.0, np.inf
    more = {"n_resamples": RESAMPLES, "confidence_level": LEVEL, "method": "percentile", "rng": np.random.default_rng(0)}
    found = stats.bootstrap((than, ours), _ratio, vectorized=True, **more).confidence_interval
    return float(found.low), float(found.high)


def _ratio(than: Any, ours: Any, axis: int) -> Any:
    return np.median(than, axis=axis) / np.median(ours, axis=axis)


def intervals(
    comparisons: Iterable[Comparison], samples: Mapping[str, Sequence[float]]
) -> dict[tuple[str, str], tuple[float, float]]:
    """The interval of each pair, ours first, of which both have samples."""
    pairs = dict.fromkeys((each.ours, each.than) for each in comparisons)
    ready = [(ours, than) for ours, than in pairs if ours in samples and than in samples]
    return {(ours, than): interval(samples[ours], samples[than]) for ours, than in ready}


def undecided(comparisons: Sequence[Comparison], samples: Mapping[str, Sequence[float]]) -> bool:
    """Whether an interval contains the wanted ratio."""
    found = intervals(comparisons, samples)
    known = ((each.min_ratio, *found[each.ours, each.than]) for each in comparisons if (each.ours, each.than) in found)
    return any(low < wanted < high for wanted, low, high in known)
