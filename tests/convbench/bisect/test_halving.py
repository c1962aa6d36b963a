"""Which commits of a range are measured, and what is left of it."""

import math
import random

import pytest

from convbench.bisect.halving import Halving


def search(count, first_slow, unbuilt):
    """Search commits 0 to count - 1, of which the last is slow: (the suspects, how many were measured, how many skipped)."""
    halving, measured = Halving(0, count - 1), 0
    while (place := halving.next()) is not None:
        assert 0 < place < count - 1
        assert halving.left() >= 1
        halving.tell(place, None if place in unbuilt else place >= first_slow)
        measured += place not in unbuilt
    assert halving.left() == 0
    return list(halving.suspects), measured, len(halving.skipped)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 63, 64, 65, 100])
def test_every_first_slow_commit_is_found_in_log2_measurements(count):
    for first in range(1, count):
        found, measured, skipped = search(count, first, ())
        assert (found, skipped) == ([first], 0)
        assert measured <= math.ceil(math.log2(count - 1))


@pytest.mark.parametrize("seed", range(20))
def test_skips_cost_one_each(seed):
    generator = random.Random(seed)
    first, unbuilt = generator.randrange(1, 64), set(generator.sample(range(1, 63), generator.choice([1, 5, 20, 60])))
    found, measured, skipped = search(64, first, unbuilt)
    assert measured + skipped <= 6 + skipped <= 6 + len(unbuilt)
    assert first in found
    assert set(found[:-1]) <= unbuilt  # only what cannot be measured is suspected beside the first that is slow
    if first - 1 not in unbuilt and first not in unbuilt:
        assert found == [first]


def test_five_in_the_middle_that_do_not_build():
    assert search(64, 32, {30, 31, 32, 33, 34}) == ([30, 31, 32, 33, 34, 35], 5, 5)


def test_nothing_between_builds():
    assert search(6, 3, {1, 2, 3, 4}) == ([1, 2, 3, 4, 5], 0, 4)
