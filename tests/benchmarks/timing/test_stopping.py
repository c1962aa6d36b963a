"""Samples are taken until they decide a comparison, which they rarely do by chance."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.timing import stopping

noisy = st.lists(st.floats(0.9, 1.1), min_size=5, max_size=30)


@settings(max_examples=25, deadline=None)  # the first call imports SciPy
@given(noisy, noisy, st.floats(0.5, 2.0))
def test_a_comparison_is_decided_where_its_interval_leaves_the_wanted_ratio_out(ours, than, wanted):
    low, high = stopping.interval(ours, than)
    assert 0.9 / 1.1 - 1e-9 <= low <= statistics.median(than) / statistics.median(ours) <= high <= 1.1 / 0.9 + 1e-9
    samples = {"ours": ours, "than": than}
    comparisons = [stopping.Comparison("ours", "than", wanted), stopping.Comparison("ours", "gone", 1.0)]
    assert stopping.undecided(comparisons, samples) == (low < wanted < high)


@pytest.mark.parametrize("count", [7, 14])
def test_what_is_just_as_fast_as_wanted_is_rarely_decided(count, monkeypatch):
    """For any number of looks: of 100 such comparisons five are to be decided, and by chance a few more or less."""
    monkeypatch.setattr(stopping, "RESAMPLES", 199)
    generator, decided = np.random.default_rng(2), 0
    for _ in range(100):
        every = generator.lognormal(0, 0.1, (2, stopping.MAX_LOOKS * count))
        lengths = range(count, stopping.MAX_LOOKS * count + 1, count)
        looks = ({"ours": every[0, :n], "than": 1.3 * every[1, :n]} for n in lengths)
        decided += not all(stopping.undecided([stopping.Comparison("ours", "than", 1.3)], look) for look in looks)
    assert 1 <= decided <= 12
    assert stopping.interval([1.0], [1.0, 2.0]) == (0.0, math.inf)
