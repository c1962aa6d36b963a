"""Where series changed: the statistics on series of known truth, and what holds whatever the numbers."""

import math
import time

import history_proof
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from convbench.stored import change_points

NAN = math.nan


# Series of known truth


def score(kind, method=history_proof.ours, series=history_proof.SERIES):
    (record,) = history_proof.records(kind, 1)
    return history_proof.score(record[:series], method(record[:series]))


QUIET = [kind for kind in history_proof.KINDS if kind.startswith("no step") and "tails" not in kind]


@pytest.mark.parametrize("kind", QUIET)
def test_at_most_one_false_alarm_in_a_hundred_series_without_a_step(kind):
    assert score(kind).wrong <= 1


@pytest.mark.parametrize("kind", ["step of 10 %", "step of 50 %"])
def test_every_step_is_found_within_one_commit(kind):
    assert score(kind).hits == history_proof.SERIES


@pytest.mark.parametrize(("kind", "series"), [("step of 5 %", 15), ("10 %, 20 commits", 50), ("no step, 5 commits", 50)])
def test_more_is_found_than_by_asv_with_no_more_false_alarms(kind, series):
    ours = score(kind, series=series)
    for method in (history_proof.asv_steps, history_proof.asv_regressions):
        theirs = score(kind, method, series)
        assert ours.hits >= theirs.hits
        assert ours.wrong <= theirs.wrong
        assert (ours.hits, -ours.wrong) > (theirs.hits, -theirs.wrong) or not theirs.wrong


def test_each_series_alone_is_judged_as_well():
    """Without others beside it, from which to learn about noise."""

    def alone(record):
        return [history_proof.ours([made])[0] for made in record]

    assert score("step of 10 %", alone).hits >= 99
    assert score("no step", alone).wrong <= 1


# What holds whatever the numbers


@st.composite
def records(draw):
    """A few series of a few levels each, with noise and holes."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.integers(4, 40))
    made = []
    for _ in range(draw(st.integers(1, 5))):
        levels = np.repeat(random.choice([1.0, 1.1, 1.5], 8), 5)[:count]
        values = levels * np.exp(random.normal(0, 0.02, count))
        values[random.random(count) < draw(st.sampled_from([0, 0.3]))] = NAN
        made.append(change_points.Series(values, 0.01))
    return made


def places(finding):
    return [(c.kind, c.last, c.first, c.good, c.changed) for c in finding.changes]


@settings(max_examples=25, deadline=None)
@given(records(), st.integers(-60, 20))
def test_another_unit_changes_nothing(record, exponent):
    scaled = [change_points.Series(np.asarray(one.values) * 2.0**exponent, one.spread) for one in record]
    for finding, other in zip(change_points.judge(record), change_points.judge(scaled), strict=True):
        assert places(finding) == places(other)
        assert [c.ratio for c in finding.changes] == pytest.approx([c.ratio for c in other.changes])
        assert [c.after * 2.0**exponent for c in finding.changes] == pytest.approx([c.after for c in other.changes])


# Of a pair of steps to move, the one that came first had the choice.
PAIR = [1.11, 1.1, 0.97, 1.0, 1.06, 1.12, 1.5, 1.55, 1.03, 1.05, 1.05, 1.07, 1.06, 1.14, 0.95, 0.98, 1.02]


@settings(max_examples=25, deadline=None)
@given(records())
@example([change_points.Series(PAIR, 0.01)])
def test_turned_around_the_same_changes_go_the_other_way(record):
    turned = [change_points.Series(np.asarray(one.values)[::-1], one.spread) for one in record]
    for one, finding, other in zip(record, change_points.judge(record), change_points.judge(turned), strict=True):
        # A point that is alone comes after others either way.
        found, back = ([c for c in one.changes if c.kind != change_points.ALONE] for one in (finding, other))
        end = len(one.values) - 1
        turned_back = [(end - c.first, end - c.last, end - c.changed, end - c.good) for c in reversed(back)]
        assert [(c.last, c.first, c.good, c.changed) for c in found] == turned_back
        assert [c.ratio for c in found] == pytest.approx([1 / c.ratio for c in reversed(back)])


@settings(max_examples=25, deadline=None)
@given(records(), st.integers(1, 3))
def test_commits_without_values_only_widen_the_ranges(record, holes):
    """The same values with empty commits in between."""

    def spread(values):
        wide = np.full(len(values) * (holes + 1), NAN)
        wide[:: holes + 1] = values
        return wide

    wide = [change_points.Series(spread(one.values), one.spread) for one in record]
    for finding, other in zip(change_points.judge(record), change_points.judge(wide), strict=True):
        found = [(kind, *(place * (holes + 1) for place in rest)) for kind, *rest in places(finding)]
        assert found == places(other)


@settings(max_examples=25, deadline=None)
@given(records())
def test_a_change_is_whole(record):
    for one, finding in zip(record, change_points.judge(record), strict=True):
        present = np.isfinite(one.values)
        assert finding.points == present.sum()
        for c in finding.changes:
            assert c.good <= c.last < c.first <= c.changed
            assert present[[c.good, c.last, c.first, c.changed]].all()
            assert c.low <= c.ratio <= c.high
            assert c.ratio == pytest.approx(c.after / c.before)
            assert c.p_value <= change_points.LEVEL


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 2.0], [NAN] * 9, [0.0] * 9, [1.0, NAN, 1.0, NAN, 2.0]])
def test_what_is_too_short_is_not_judged(values):
    (finding,) = change_points.judge([change_points.Series(values)])
    assert finding.short
    assert finding.changes == ()


def kinds(values, spread=0.0, others=20):
    """What is found in a series beside others that do not change."""
    random = np.random.default_rng(1)
    quiet = [change_points.Series(np.exp(random.normal(0, 0.02, len(values)))) for _ in range(others)]
    finding = change_points.judge([change_points.Series(values, spread), *quiet])[0]
    return [(c.kind, c.last, c.first) for c in finding.changes]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1, 1.01, 1.2, 1.21], [("step", 1, 2)]),
        ([1, 1.01, 1.2, 1.21, 1.19], [("step", 1, 2)]),
        ([1, 1.01, NAN, 1.2, 1.21], [("step", 1, 3)]),
        ([1.2, 1.21, 1.0, 1.01], [("step", 1, 2)]),
        ([1, 1.01, 0.99, 1.2], [("alone", 2, 3)]),
        ([1, 1.2, 1.21, 1.2], [("alone", 0, 1)]),
        ([1, 1.01, 1.2, 0.99, 1], [("alone", 1, 2)]),
        ([1, 1.01, 1.03, 1.0], []),
        ([1, 1, 1, 1], []),
        ([1, 1, 1, 1, 1.005, 1.005, 1.005, 1.005], []),
        ([1] * 10 + [1.5] + [1] * 10, [("alone", 9, 10)]),
        ([1] * 10 + [1.5] * 2 + [1] * 10, []),
        ([1] * 10 + [1.5] * 3 + [1] * 10, [("step", 9, 10), ("step", 12, 13)]),
        (list(np.linspace(1, 1.5, 30)), [("drift", 0, 29)]),
    ],
)
def test_found(values, found):
    assert kinds(values) == found


def test_a_short_series_is_as_noisy_as_its_samples():
    assert kinds([1, 1.01, 1.2, 1.21], spread=0.02) == [("step", 1, 2)]
    assert kinds([1, 1.01, 1.2, 1.21], spread=0.2) == []


def test_a_short_series_alone_cannot_know():
    assert kinds([1, 1.02, 1.2, 1.22], others=0) == []


@pytest.mark.parametrize("count", [1000, pytest.param(5000, marks=pytest.mark.proof)])
def test_many_series_of_two_hundred_commits(count):
    random = np.random.default_rng(0)
    values = np.exp(random.normal(0, 0.02, (count, 200)))
    values[::100, 120:] *= 1.1
    start = time.process_time()
    findings = change_points.judge([change_points.Series(row) for row in values])
    assert time.process_time() - start < 6e-3 * count
    found = [i for i, finding in enumerate(findings) if finding.changes]
    assert set(range(0, count, 100)) <= set(found)
    assert len(found) <= count // 100 + 2
