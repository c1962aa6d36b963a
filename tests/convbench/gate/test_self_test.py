"""The result of a self-test: the rates with their intervals, as text and as JSON, and what calls it refuses."""

import io
import json
import os
from collections import Counter
from pathlib import Path

import pytest
from command_line import inside, sentence
from gate_projects import Sample
from rich.console import Console

from convbench.asv import machine
from convbench.gate import judge, self_test
from convbench.gate.self_test import Rate

GOLDEN = Path(__file__).parents[2] / "golden" / "self_test.txt"


def rate(share, slowed=None, unchanged=None, seconds=60.0):
    return Rate(share, Counter(slowed or {}), Counter(unchanged or {}), seconds)


# Twice four gates of twenty cells; one false alarm, and one slow-down of 10 % that was not reached.
RATES = [
    rate(0.0, unchanged={"same": 18, "ambiguous": 1, "skipped": 1}),
    rate(0.05, {"regressed": 7, "same": 1, "ambiguous": 2}, {"same": 10}, 120.0),
    rate(0.10, {"regressed": 9, "not reached": 1}, {"same": 10}, 70.0),
    rate(0.25, {"regressed": 10}, {"same": 9, "not measured": 1}),
    rate(0.0, unchanged={"same": 19, "regressed": 1}),
    rate(0.05, {"regressed": 9, "ambiguous": 1}, {"same": 10}, 100.0),
    rate(0.10, {"regressed": 9, "skipped": 1}, {"same": 10}, 80.0),
    rate(0.25, {"regressed": 10}, {"same": 10}),
]


def shown(rates, monkeypatch):
    monkeypatch.setattr(machine, "name", lambda: "box-2cores")
    text = io.StringIO()
    self_test.show(rates, Console(file=text, width=140))
    return text.getvalue()


def test_golden(monkeypatch):
    text = shown(RATES, monkeypatch)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_the_rates_count_what_could_have_been_found():
    assert (self_test.alarms(RATES).count, self_test.alarms(RATES).of) == (1, 98)  # neither skipped nor not measured
    assert (self_test.failed(RATES).count, self_test.failed(RATES).of) == (1, 2)
    assert [(self_test.found(RATES, share).count, self_test.found(RATES, share).of) for share in (0.05, 0.10, 0.25)] == [
        (16, 20),
        (18, 19),  # what was not reached was not found
        (20, 20),
    ]


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [(0, 10, 0.0, 0.3085), (10, 10, 0.6915, 1.0), (1, 480, 0.0000527, 0.0115), (5, 10, 0.1871, 0.8129)],  # of their tables
)
def test_the_interval_is_the_exact_one(count, of, low, high):
    assert judge.proportion(count, of) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(
    ("found", "smallest"),
    [((9, 9, 10), 0.05), ((8, 9, 10), 0.10), ((10, 8, 9), 0.25), ((10, 10, 8), None), ((0, 0, 0), None)],
)
def test_the_smallest_slow_down_that_is_found_and_all_larger_ones(found, smallest, monkeypatch):
    shares = zip((0.05, 0.10, 0.25), found, strict=True)
    rates = [rate(0.0, unchanged={"same": 20}), *(rate(share, {"regressed": n, "same": 10 - n}) for share, n in shares)]
    assert self_test.smallest_found(rates) == smallest
    last = shown(rates, monkeypatch).splitlines()[-1]
    if smallest:
        assert last == f"in 60 s, a gate here finds 90% or more of slow-downs of {smallest:.0%} and up"
    else:
        assert last.startswith("in 60 s, a gate here finds less than 90% of slow-downs of 25%: increase --budget")


def test_few_slow_downs_say_nothing(monkeypatch):
    rates = [rate(0.0, unchanged={"same": 9}), *(rate(share, {"regressed": 9}) for share in (0.05, 0.10, 0.25))]
    assert self_test.smallest_found(rates) is None
    last = "fewer than 10 slow-downs of 25% are not enough to tell what a gate here finds: repeat them with --self-test 10"
    assert shown(rates, monkeypatch).splitlines()[-1] == last


def test_nothing_that_could_be_judged(monkeypatch):
    rates = [rate(0.0, unchanged={"skipped": 2}), *(rate(share, {"skipped": 2}) for share in (0.05, 0.10, 0.25))]
    assert "false alarms: 0 of 0\n" in shown(rates, monkeypatch)


def test_json():
    content = json.loads(json.dumps(self_test.document("h" * 40, {"budget_seconds": None}, RATES)))
    assert content["exit_status"] == 1
    assert content["false_alarms"]["interval"] == [pytest.approx(0.00026, abs=1e-5), pytest.approx(0.0555, abs=1e-4)]
    assert content["failed_gates"]["share"] == 0.5
    assert [one["slow_down"] for one in content["found"]] == [0.05, 0.10, 0.25]
    assert content["smallest_found"] == 0.10
    assert content["gates"][1]["slowed"] == {"regressed": 7, "same": 1, "ambiguous": 2}
    assert [gate["slow_down"] for gate in content["gates"]] == [0.0, 0.05, 0.10, 0.25] * 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--self-test", "0"], "0 is not in the range x>=1"),
        (["--self-test", "HEAD"], "'HEAD' is not a valid integer range"),
        (["--self-test", "--markdown", "r.md"], "--self-test writes no Markdown"),
        (["--self-test", "2", "--dirty"], "--dirty, --installed and --self-test cannot be combined"),
        (["--self-test", "2", "--merge", "r.json"], "--merge takes the shards' reports"),
    ],
)
def test_a_wrong_call(tmp_path, arguments, said):
    made = Sample(tmp_path / "project")
    done = inside(made.folder, "gate", *arguments)
    assert done.returncode == 2
    assert said in sentence(done)
