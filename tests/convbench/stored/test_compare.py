"""convbench compare: the verdict on two sides of a cell, and its layout."""

import io
import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rich.console import Console
from shown_reports import compared, comparison, side

from convbench.stored import compare

# What is said of a cell


@st.composite
def sides(draw):
    """A side of the same order of magnitude as any other, its median within its quartiles."""
    value = draw(st.floats(0.01, 100))
    low = value * draw(st.floats(0, 1))
    high = value * draw(st.floats(1, 5))
    return compare.Side(value, low, high, draw(st.integers(0, 5)))


MISSING = st.sampled_from(["skipped, unavailable: it needs a GPU", "failed", "not measured"]).map(
    lambda reason: compare.Side(reason=reason)
)


@given(sides() | MISSING, sides() | MISSING)
def test_swapped_sides_get_the_same_verdict_and_the_inverse_ratio(before, after):
    verdict, ratio, reason = compare.judge(before, after)
    other_verdict, other_ratio, other_reason = compare.judge(after, before)
    assert verdict == other_verdict
    assert (ratio is None) == (other_ratio is None)
    if ratio is not None:
        assert ratio * other_ratio == pytest.approx(1)
    if verdict == compare.DIFFERS:
        assert {reason.split()[0], other_reason.split()[0]} == {"slower", "faster"}
        assert reason.startswith("slower") == (ratio > 1)


@given(sides(), sides(), st.integers(-40, 20))
def test_another_unit_changes_nothing(before, after, exponent):
    """By powers of two, which round nothing; but for numbers so small that they lose digits."""
    assume(all(number == 0 or number > 1e-200 for one in (before, after) for number in (one.low, one.high)))
    scale = 2.0**exponent
    scaled = [compare.Side(one.value * scale, one.low * scale, one.high * scale, one.samples) for one in (before, after)]
    assert compare.judge(*scaled) == compare.judge(before, after)


@given(st.floats(1e-9, 1e3), st.floats(0, 0.1), st.floats(0, 0.1), st.floats(2, 1000), st.integers(2, 100))
def test_twice_as_long_differs(value, spread, other, factor, samples):
    verdict, ratio, reason = compare.judge(side(value, spread, samples), side(value * factor, other, samples))
    assert (verdict, reason.split()[0]) == ("differs", "slower")
    assert ratio == pytest.approx(factor)


@given(sides().filter(lambda one: one.samples >= 2))
def test_identical_samples_are_the_same(one):
    assert compare.judge(one, one)[:2] == ("same", 1.0)


@given(sides(), sides())
def test_what_differs_is_separated_and_beyond_the_noise(before, after):
    verdict, ratio, _ = compare.judge(before, after)
    spread = max((one.high - one.low) / one.value for one in (before, after))
    change = abs(math.log(ratio))
    if verdict == "differs":
        assert change > 3 * spread * (1 - 1e-9)
        assert change > math.log(1.1) * (1 - 1e-9)
        assert before.high < after.low or after.high < before.low
    if verdict != "unknown":
        assert min(before.samples, after.samples) >= 2


@pytest.mark.parametrize(
    ("before", "after", "verdict", "words"),
    [
        (side(1.0), side(1.09), "same", "within 10 %"),
        (side(1.0), side(1.11), "differs", "slower by over 10 %"),
        (side(1.0), side(1 / 1.09), "same", "within 10 %"),
        (side(1.0), side(1 / 1.11), "differs", "faster by over 10 %"),
        (side(1.0, 0.1), side(1.3), "unknown", "within 3 x the spread of 10 %"),
        (side(1.0, 0.1), side(1.4), "differs", "slower by over 3 x the spread of 10 %"),
        (side(1.0, 0.0), side(2.0, 0.0), "differs", "slower by over 10 %"),
        (side(1.0, samples=1), side(2.0), "unknown", "1 and 20 samples; at least 2 are needed"),
        (side(1.0), side(1.0, samples=0), "unknown", "20 and 0 samples; at least 2 are needed"),
        (compare.Side(1.0, 1.9, 2.0, 5), side(2.0), "unknown", "beyond 3 x the spread of 10 %, but the quartiles overlap"),
        (compare.Side(1.0, 0.99, 1.01, 5, "a"), side(1.0), "same", "within 10 %; before: a"),
        (compare.Side(reason="failed, a"), side(1.0), "unknown", "before: failed, a"),
        (compare.Side(reason="a"), compare.Side(reason="a"), "unknown", "before and after: a"),
        (compare.Side(reason="a"), compare.Side(reason="b"), "unknown", "before: a; after: b"),
    ],
)
def test_verdicts(before, after, verdict, words):
    assert compare.judge(before, after)[::2] == (verdict, words)


SLOWER, FASTER = compared(side(1.0), side(2.0)), compared(side(2.0), side(1.0))
UNCHANGED, ONE_SAMPLE = compared(side(1.0), side(1.0)), compared(side(1.0), side(2.0, samples=1))


@pytest.mark.parametrize(
    ("cells", "status"),
    [
        ([UNCHANGED], 0),
        ([UNCHANGED, ONE_SAMPLE], 0),
        ([FASTER], 0),
        ([FASTER, SLOWER], 1),
        ([SLOWER, ONE_SAMPLE], 1),
        ([ONE_SAMPLE], 4),
        ([], 4),
    ],
)
def test_exit_status(cells, status):
    assert compare.exit_status(cells) == status


@settings(max_examples=40, deadline=None)
@given(st.lists(st.builds(compared, sides() | MISSING, sides() | MISSING), max_size=20))
def test_the_worst_comes_first_and_what_is_unknown_last(cells):
    ordered = compare.worst_first(cells)
    known = [one.verdict != "unknown" for one in ordered]
    assert known == sorted(known, reverse=True)
    for wanted in (True, False):
        ratios = [one.ratio or 0 for one in ordered if (one.verdict != "unknown") == wanted]
        assert ratios == sorted(ratios, reverse=True)


# The report


def test_every_cell_is_counted_once():
    out = io.StringIO()
    compare.show(comparison(), Console(file=out, width=160, color_system=None))
    shown = out.getvalue().splitlines()
    assert sum("lists.time_sort" in line for line in shown) == 10
    assert [line for line in shown if "without a time" in line] == [
        "3 cells without a time: before and after: skipped, unavailable",
        "1 cell without a time: before: not measured; after: skipped, too slow here",
    ]
    assert shown[-1] == "14 cells: 5 differ (4 slower, 1 faster), 1 same, 8 unknown"
