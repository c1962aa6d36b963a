"""Which comparisons of two medians their samples do not decide yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

LEVEL = 0.95
RESAMPLES = 999


class Comparison(NamedTuple):
    """Ours is wanted to be `least` times as fast as another."""

    ours: str
    than: str
    least: float


def interval(ours: Sequence[float], than: Sequence[float]) -> tuple[float, float]:
    """Between what the other's median time over ours lies: the percentile bootstrap (Efron, Ann. Stat. 7, 1979) at LEVEL."""
    if min(len(ours), len(than)) < 2:
        return 0.0, np.inf
    more = {"n_resamples": RESAMPLES, "confidence_level": LEVEL, "method": "percentile", "rng": np.random.default_rng(0)}
    found = stats.bootstrap((than, ours), _ratio, vectorized=True, **more).confidence_interval
    return float(found.low), float(found.high)


def _ratio(than: Any, ours: Any, axis: int) -> Any:
    return np.median(than, axis=axis) / np.median(ours, axis=axis)


def undecided(comparisons: Iterable[Comparison], samples: Mapping[str, Sequence[float]]) -> list[str]:
    """Those who take part in a comparison whose interval holds what is wanted; nobody who has no samples."""
    names: dict[str, None] = {}
    for ours, than, least in comparisons:
        if ours in samples and than in samples:
            low, high = interval(samples[ours], samples[than])
            if low < least < high:
                names |= {ours: None, than: None}
    return list(names)
