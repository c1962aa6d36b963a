"""The noise of equal work: how rounds are made, and how many of them detect a slow-down."""

import io
import math

import click
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noises import noisy
from rich.console import Console

from convbench.doctor import noise
from convbench.gate import judge

NOWHERE = Console(file=io.StringIO())


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(1e-6, 1e-3), min_size=3, max_size=20), st.integers(-20, 20))
def test_another_unit_changes_nothing(seconds, exponent):
    one = noise.Noise("compute", tuple(seconds), (0.0, 0.1), 0.01)
    other = noise.Noise("compute", tuple(value * 2.0**exponent for value in seconds), (0.0, 0.1), 0.01)
    assert other.between == pytest.approx(one.between, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.001, 0.3), st.floats(1.1, 3))
def test_more_noise_needs_more_rounds(spread, factor):
    few, many = noisy(spread).rounds, noisy(spread * factor).rounds
    assert few is not None or many is None
    assert many is None or few <= many


@pytest.mark.parametrize("spread", [0.01, 0.02, 0.03, 0.05])
def test_in_so_many_rounds_nine_of_ten_are_told(spread):
    """The share is close to nine of ten, neither lower nor higher."""

    def told(rounds):
        random = np.random.default_rng(0)
        changes = random.normal(math.log1p(noise.SLOWDOWN), spread, (2000, rounds))
        half = np.array([judge.interval(row, noise.LEVEL)[1] for row in changes])
        return np.mean(half > math.log1p(judge.SMALLEST))

    rounds = noisy(spread).rounds
    assert 0.87 < told(rounds) < 0.98
    assert rounds == 2 or told(rounds - 1) < told(rounds)


def test_a_drift_is_no_difference_between_the_two_of_a_round():
    drifting = noise._noise("compute", [([1 + i / 20] * 3, [1 + i / 20] * 3) for i in range(20)])
    assert drifting.between > 0.1
    assert drifting.ratio_deviation == 0
    assert drifting.rounds == 2
    assert noisy(1.0).rounds is None


def test_measured_in_fresh_processes(monkeypatch):
    monkeypatch.setattr(noise, "ROUNDS", 2)
    started = []
    process = noise._process
    monkeypatch.setattr(noise, "_process", lambda kind: started.append(kind) or process(kind))
    found = noise.measure(NOWHERE)
    kinds = ["compute", "memory", "memory", "compute"]
    assert started == [kind for kind in kinds for _ in range(2)]
    assert [one.kind for one in found] == ["compute", "memory"]
    for one in found:
        assert len(one.seconds) == 4
        assert len(one.ratios) == 2
        assert all(1e-6 < value < 1 for value in one.seconds)
        assert one.within >= 0


def test_it_ends_in_time(monkeypatch):
    monkeypatch.setattr(noise, "MAX_SECONDS", 0.0)
    monkeypatch.setattr(noise, "_round", lambda kind, generator: ([1.0, 1.1, 1.2], [1.0, 1.2, 1.1]))
    assert [len(one.ratios) for one in noise.measure(NOWHERE)] == [3, 3]


@pytest.mark.parametrize(
    ("program", "limit", "words"),
    [
        ("import sys; sys.exit('no memory')", 60.0, "failed: no memory"),
        ("print('ready')", 60.0, "failed: it said nothing"),
        ("import time; time.sleep(9)", 0.6, "took over 1 s"),
    ],
)
def test_a_process_that_gives_no_times(program, limit, words, tmp_path, monkeypatch):
    work = tmp_path / "work.py"
    work.write_text(program)
    monkeypatch.setattr(noise, "WORKER", work)
    monkeypatch.setattr(noise, "MAX_PROCESS_SECONDS", limit)
    with pytest.raises(click.ClickException, match=words):
        noise.measure(NOWHERE)
