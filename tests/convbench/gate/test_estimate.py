"""A gate's estimate of its duration, after calling each cell once: no process runs, and the clock is the test's."""

from collections import Counter
from pathlib import Path

import pytest

from convbench.gate import sample
from convbench.gate.discover import Suite
from convbench.gate.failures import Reason
from convbench.gate.workers import Lost, Sampled, TimedCell


@pytest.fixture
def sampling(monkeypatch):
    """Makes a sampling of cells whose rounds take so many seconds, half of it for blocks; and what was sampled, in order."""

    def make(costs, budget=None, results=None, starts=True):
        clock, order, results = [1.0], [], results or {}

        class Workers:
            def __init__(self, *_):
                pass

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def start(self):
                if not starts:
                    raise Lost("no suite")
                clock[0] += 1.0

            def sample(self, cell, _slower, _keep, once=False):
                if not starts:
                    raise Lost("no suite")
                order.append((cell.name, once))
                clock[0] += costs[cell.name] / (2 if once else 1)
                return results.get(cell.name) or Sampled({"base": [1.0], "head": [1.0]}, planned=costs[cell.name] / 2)

        monkeypatch.setattr(sample, "Workers", Workers)
        monkeypatch.setattr(sample.time, "monotonic", lambda: clock[0])
        cells = [TimedCell(name, (), {"base": 0, "head": 0}, 60.0, 0.01, 1, Path()) for name in costs]
        return sample.Sampling({}, Suite(cells), budget), order

    return make


def estimated(run):
    list(run.estimate(Path()))
    return run.expectation


def test_the_time_of_all_cells_is_told(sampling):
    run, order = sampling({f"c{i}": 1.0 for i in range(20)}, 1000.0)
    # Six rounds of twenty seconds, and a start.
    assert estimated(run) == "20 cells, about 2 min 10 s; --budget reaches all of them"
    assert sorted(order) == sorted((f"c{i}", True) for i in range(20))
    assert not any(state.rounds for state in run.states.values())


@pytest.mark.parametrize(("budget", "reached"), [(500.0, "all"), (200.0, "about 16"), (1.0, "about 1")])
def test_how_many_cells_the_budget_reaches(sampling, budget, reached):
    """The cells cost from 0.1 to 5.9 seconds a round; a tenth of the budget is for the estimate."""
    run, order = sampling({f"c{i}": 0.1 + 0.2 * i for i in range(30)}, budget)
    said = estimated(run)
    assert said.startswith("30 cells, about ")
    assert said.endswith(f"; --budget reaches {reached} of them")
    assert (len(order) == 30) == (budget == 500.0)


def test_the_cheapest_cells_are_measured_first(sampling, monkeypatch):
    monkeypatch.setattr(sample, "ESTIMATE_SHARE", 1.0)
    costs = {f"c{i}": 2.0 if i % 2 else 0.1 for i in range(10)}
    run, order = sampling(costs, 25.0)
    estimated(run)
    list(run.run(Path()))
    assert {state.verdict for name, state in run.states.items() if costs[name] < 1} == {"same"}
    assert Counter(state.verdict for state in run.states.values()) == {"same": 7, "not reached": 3}
    assert Counter(costs[name] for name, once in order if not once) == {0.1: 20, 2.0: 8}


def test_what_fails_or_is_skipped_counts(sampling):
    failed = Sampled(failed={"head": Reason("no")})
    skipped = Sampled(skipped={"base": "no", "head": "no"})
    run, _ = sampling({"a": 1.0, "b": 1.0, "c": 1.0}, 100.0, {"b": failed, "c": skipped})
    estimated(run)
    assert [len(state.failures["head"]) for state in run.states.values()] == [0, 1, 0]
    assert [state.verdict for state in run.states.values()] == [None, None, "skipped"]


def test_a_suite_that_does_not_start(sampling):
    run, _ = sampling({"a": 1.0}, 100.0, starts=False)
    assert estimated(run) == "1 cell, about 1 s; --budget reaches all of them"
    list(run.run(Path()))
    assert run.states["a"].verdict == "not measured"
    assert "no suite" in run.states["a"].reason
