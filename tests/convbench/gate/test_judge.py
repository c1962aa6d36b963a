"""The verdicts on rounds, and how often they are wrong: numbers in, verdicts out, nothing measured."""

import functools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convbench.gate import judge, sample
from convbench.gate.discover import Suite
from convbench.gate.workers import Sampled, TimedCell

OPPOSITE = {"regressed": "improved", "improved": "regressed", "same": "same", "ambiguous": "ambiguous"}
CHANGED = {"regressed", "improved"}

rounds = st.lists(st.floats(-1, 1).map(lambda value: round(value, 6)), min_size=2, max_size=20)
families = st.dictionaries(st.sampled_from("abcdef"), rounds, min_size=1)
# The same with changes that are clear enough for every verdict to come up.
clear = st.builds(
    lambda centre, noise: [centre + value for value in noise],
    st.sampled_from([0.0, 0.0, 0.1, -0.1, 0.5]),
    st.lists(st.floats(-0.01, 0.01), min_size=6, max_size=12),
)
families = families | st.dictionaries(st.sampled_from("abcdef"), clear, min_size=1)


def verdicts(cells, smallest=None):
    return {name: finding.verdict for name, finding in judge.judge(cells, smallest).items()}


# Verdicts


@given(families)
def test_swapped_sides_have_opposite_verdicts(cells):
    there = judge.judge(cells)
    back = judge.judge({name: [-value for value in values] for name, values in cells.items()})
    for name, finding in there.items():
        assert back[name].verdict == OPPOSITE[finding.verdict]
        assert back[name].estimate.ratio == pytest.approx(1 / finding.estimate.ratio, rel=1e-9)
        assert back[name].estimate.low == pytest.approx(1 / finding.estimate.high, rel=1e-9)


@given(families)
def test_the_interval_contains_the_ratio(cells):
    for name, (estimate, verdict) in ((n, (f.estimate, f.verdict)) for n, f in judge.judge(cells).items()):
        assert 0 < estimate.low <= estimate.ratio <= estimate.high
        assert estimate.rounds == len(cells[name])
        assert (verdict == "regressed") <= (estimate.low > 1 + judge.SMALLEST)
        assert (verdict == "improved") <= (estimate.high < 1 / (1 + judge.SMALLEST))


@given(rounds, st.floats(-0.5, 0.5))
def test_a_head_slower_by_a_factor_scales_the_estimate(values, shift):
    one, other = (judge.interval(np.array(values) + by, 0.95) for by in (0.0, shift))
    assert other == pytest.approx([value + shift for value in one], abs=1e-9)


@given(rounds, st.floats(0.1, 10))
def test_noise_scales_the_interval(values, factor):
    if np.std(values) < 1e-4:
        return
    centre, low, high = judge.interval(np.array(values), 0.95)
    scaled = judge.interval(np.array(values) * factor, 0.95)
    assert scaled == pytest.approx([centre * factor, low * factor, high * factor], rel=1e-6, abs=1e-6)


@given(families, st.randoms())
def test_order_says_nothing(cells, generator):
    mixed = [(name, generator.sample(values, len(values))) for name, values in cells.items()]
    generator.shuffle(mixed)
    expected, found = judge.judge(cells), judge.judge(dict(mixed))
    assert found.keys() == expected.keys()
    for name, finding in expected.items():
        assert found[name].verdict == finding.verdict
        assert found[name].estimate.low == pytest.approx(finding.estimate.low, rel=1e-9)


@given(rounds, st.floats(0.5, 0.98), st.floats(0.001, 0.019))
def test_a_higher_level_is_a_wider_interval(values, level, more):
    _, low, high = judge.interval(np.array(values), level)
    _, lower, higher = judge.interval(np.array(values), level + more)
    assert lower < low < high < higher


@given(rounds)
def test_the_spread_is_never_nothing(values):
    centre, low, high = judge.interval(np.array(values), 0.95)
    assert low < centre < high
    assert min(values) - 1e-9 <= centre <= max(values) + 1e-9


@pytest.mark.parametrize("cells", [{}, {"a": []}, {"a": [0.5]}, {"a": [0.5], "b": []}])
def test_fewer_than_two_rounds_say_nothing(cells):
    assert judge.judge(cells) == {}


def test_cells_of_too_few_rounds_stand_aside():
    assert verdicts({"a": [0.0] * 6, "b": [0.5], "c": []}) == {"a": "same"}


@pytest.mark.parametrize("count", [2, 6, 40])
@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (1.0, "same"),
        (1.1, "regressed"),
        (1 / 1.1, "improved"),
        (1.02, "same"),
        (1 / 1.02, "same"),
        (1.03, "regressed"),
        (10, "regressed"),
        (0.01, "improved"),
    ],
)
def test_rounds_that_agree(count, change, verdict):
    assert verdicts({"a": [math.log(change)] * count}) == {"a": verdict}


@pytest.mark.parametrize(
    ("smallest", "verdict"), [({}, "regressed"), ({"a": 0.2}, "same"), ({"b": 0.2}, "regressed"), ({"a": 0.05}, "regressed")]
)
def test_a_smallest_change_of_its_own(smallest, verdict):
    assert verdicts({"a": [math.log(1.1)] * 6}, smallest) == {"a": verdict}


def test_each_cell_has_its_own_smallest_change():
    slower = [math.log(1.1) + noise for noise in (-0.01, 0.01, 0.0, 0.005, -0.005, 0.0)]
    assert verdicts({"a": slower, "b": slower}, {"b": 0.3}) == {"a": "regressed", "b": "same"}


def test_noise_is_ambiguous_and_never_the_same():
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(0, 0.3, (24, 8))
        assert "same" not in verdicts(dict(enumerate(noise))).values()
        assert "ambiguous" in verdicts(dict(enumerate(noise))).values()


def test_what_lies_beyond_the_smallest_change_is_not_the_same():
    noise = np.array([-0.01, 0.01, 0.0, 0.005, -0.005, 0.0])
    assert verdicts({"a": noise + 0.024, "b": noise + 0.026}) == {"a": "same", "b": "ambiguous"}


def test_one_odd_round_of_ten_decides_nothing():
    quiet = [0.001, -0.002, 0.0, 0.003, -0.001, 0.002, -0.003, 0.001, 0.0]
    assert verdicts({"a": [*quiet, 0.5]}) == {"a": "same"}


# Simulated families


def simulate(noise, slowed=0.0, cells=()):
    """Verdicts of a family of noise, of which some cells are slowed."""
    noise = np.array(noise)
    noise[list(cells)] += math.log1p(slowed)
    return verdicts(dict(enumerate(noise)))


def test_no_alarm_in_200_gates_without_a_change():
    for seed in range(200):
        found = simulate(np.random.default_rng(seed).normal(0, 0.02, (24, 8)))
        assert not set(found.values()) & CHANGED, seed


def heavy_tails(generator):
    noise = 0.02 * generator.standard_t(3, (24, 8))
    outlying = generator.random(noise.shape) < 1 / 20
    return np.where(outlying, np.log(generator.choice([0.7, 1.3], noise.shape)), noise)


def test_heavy_tails_raise_at_most_one_alarm_in_a_thousand_cells():
    alarms = cells = 0
    for seed in range(200):
        found = simulate(heavy_tails(np.random.default_rng(seed)))
        alarms, cells = alarms + sum(verdict in CHANGED for verdict in found.values()), cells + len(found)
    assert alarms <= cells / 1000


@pytest.mark.parametrize("many", [2, 12])
def test_a_slow_down_of_ten_percent_is_found(many):
    hits = false = 0
    for seed in range(100):
        found = simulate(np.random.default_rng(seed).normal(0, 0.02, (24, 8)), 0.10, range(many))
        hits += sum(found[i] == "regressed" for i in range(many))
        assert not any(found[i] == "same" for i in range(many)), seed
        false += sum(verdict in CHANGED for name, verdict in found.items() if name >= many)
    assert hits >= 0.95 * 100 * many
    assert false == 0


# Simulated gates: the real session, and rounds that are drawn instead of measured


class Drawn:
    """Replaces Workers: rounds of known truth, which advance the clock as real ones would."""

    def __init__(self, noise, changes, clock):
        self.noise, self.changes, self.clock = noise, changes, clock

    def __call__(self, *_):
        return self

    def __enter__(self):
        self.clock.append(self.clock[-1] + 0.7)
        return self

    def __exit__(self, *_):
        pass

    def sample(self, cell, *_):
        self.clock.append(self.clock[-1] + 0.2)
        ratio = math.exp(self.changes.get(cell.name, 0.0) + self.noise())
        return Sampled({"base": [1.0], "head": [ratio]})


def gates(monkeypatch, noise, slowed=0.0, count=20):
    """Verdicts of the slowed cells, and of the others, of so many gates; seconds that each took."""
    found, seconds = (Counter(), Counter()), []
    cells = [TimedCell(f"b.time_{i}", (), {"base": 0, "head": 0}, 60.0, 0.01, 1, Path()) for i in range(24)]
    changes = {cell.name: math.log1p(slowed) for cell in cells[:12]} if slowed else {}
    for seed in range(count):
        clock = [0.0]
        monkeypatch.setattr(sample, "Workers", Drawn(functools.partial(noise, np.random.default_rng(seed)), changes, clock))
        monkeypatch.setattr(sample.time, "monotonic", lambda clock=clock: clock[-1])
        run = sample.Sampling({}, Suite(cells), None, seed=seed)
        list(run.run(Path()))
        seconds.append(clock[-1])
        for state in run.states.values():
            found[state.cell.name not in changes][state.verdict] += 1
    return *found, seconds


def normal(generator):
    return generator.normal(0, 0.02)


def outlying(generator):
    """One round in twelve is up to 30 % off."""
    return normal(generator) + (generator.random() < 1 / 12) * generator.uniform(-0.3, 0.3)


def wide(generator):
    return 0.02 * generator.standard_t(2)


def two_states(generator):
    """Three rounds in ten find the head 6 % slower."""
    return generator.normal(0, 0.006) + 0.06 * (generator.random() < 0.3)


@pytest.mark.parametrize("noise", [normal, outlying, wide, two_states])
def test_a_gate_of_identical_commits_cries_no_wolf(monkeypatch, noise):
    _, unchanged, seconds = gates(monkeypatch, noise)
    assert not CHANGED & unchanged.keys()
    assert max(seconds) <= 16 * (0.7 + 24 * 0.2) + 40 * 0.9
    if noise is normal:
        assert unchanged["same"] == unchanged.total()
        assert np.median(seconds) <= 1.5 * judge.MIN_ROUNDS * (0.7 + 24 * 0.2)


@pytest.mark.parametrize(("slowed", "share"), [(0.05, 0.95), (0.10, 0.998), (0.5, 1.0)])
def test_a_gate_finds_what_it_promises(monkeypatch, slowed, share):
    found, unchanged, _ = gates(monkeypatch, normal, slowed)
    assert found["regressed"] >= share * found.total()
    assert not CHANGED & unchanged.keys()
