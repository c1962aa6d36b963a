"""Benchmarks that return memory or any other number: compared, judged, reported in their units."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import inside
from gate_commits import built_by, interpreter
from gate_projects import Sample

from convbench.gate import judge, report

SUITE = """
import os
import shutil
import sys

import numpy as np
import sample


def peakmem_array():
    np.ones(sample.MEGABYTES << 17)


def peakmem_nothing():
    np.ones(10)


def mem_list():
    return [1.5] * sample.LENGTH


def track_size():
    return sample.LENGTH


track_size.unit = "files"


def track_same():
    return 7


def track_programs():
    return shutil.which("python") == sys.executable


def track_loss():
    return sample.LOSS


def track_faults():
    return sample.FAULTS


def track_tolerated():
    return sample.LENGTH


def track_drawn():
    return int.from_bytes(os.urandom(2), "big")


def track_nan():
    return sample.NAN


def track_nan_on_both():
    return float("nan")


def track_infinite():
    return float("inf")


def track_words():
    return "7"


class Skipped:
    def setup(self):
        raise NotImplementedError

    def track_it(self):
        return 1
"""
BASE = "MEGABYTES, LENGTH, LOSS, FAULTS, NAN = 20, 1000, -2.0, 0, 1.0\n"
HEAD = "MEGABYTES, LENGTH, LOSS, FAULTS, NAN = 24, 1020, -2.5, 1, float('nan')\n"


@pytest.fixture(scope="module")
def gated(tmp_path_factory):
    """The output of a gate of two such commits, and its report."""
    folder = tmp_path_factory.mktemp("values")
    python = interpreter(folder / "python")
    (packages,) = (folder / "python").glob("lib/python*/site-packages")
    (packages / "pympler").symlink_to(Path(importlib.util.find_spec("pympler").origin).parent)  # for mem_
    made = Sample(folder / "project")
    conf = json.loads((made.folder / "asv.conf.json").read_text())
    made.write({"asv.conf.json": json.dumps(conf | {"regressions_thresholds": {".*tolerated": 0.05}})})
    base = made.commit({"benchmarks/b.py": SUITE, "sample/__init__.py": BASE})
    head = made.commit({"sample/__init__.py": HEAD})
    with built_by(python):
        done = inside(made.folder, "gate", base, head, "--json", str(folder / "report.json"), "--budget", "1")
    return done.stdout, json.loads((folder / "report.json").read_text())


@pytest.mark.slow
def test_values_have_verdicts(gated):
    said, content = gated
    found = {cell["benchmark"].removeprefix("b."): cell for cell in content["cells"]}
    assert {name: cell["verdict"] for name, cell in found.items()} == {
        "peakmem_array": "regressed",
        "peakmem_nothing": "same",
        "mem_list": "regressed",
        "track_size": "regressed",
        "track_same": "same",
        "track_programs": "same",
        "track_loss": "improved",
        "track_faults": "regressed",
        "track_tolerated": "same",
        "track_drawn": "ambiguous",
        "track_nan": "broken",
        "track_nan_on_both": "skipped",
        "track_infinite": "not measured",
        "track_words": "not measured",
        "Skipped.track_it": "skipped",
    }, said
    assert content["exit_status"] == 3
    assert content["not_timed"] == []
    size, memory = found["track_size"], found["peakmem_array"]
    assert (size["before"], size["after"], size["unit"], size["ratio"]) == (1000, 1020, "files", 1.02)
    assert size["values"] == {kind: [[1000, 1020]] * judge.MIN_ROUNDS for kind in ("first", "confirming")}
    assert memory["after"] - memory["before"] == pytest.approx(4 << 20, rel=0.2)
    assert found["track_programs"]["before"] == 1  # as in asv, `python` is the environment's own
    assert found["track_faults"]["ratio"] is None
    assert found["track_nan"]["reason"].endswith("it is skipped, and on the base it is not: its value is NaN")
    assert found["track_nan_on_both"]["reason"] == "its value is NaN (on both sides)"
    assert re.search(r"^regressed +b\.track_size +1000 files +1020 files +1\.020 ", said, re.MULTILINE)
    assert re.search(r"^regressed +b\.peakmem_array .* MiB .* MiB ", said, re.MULTILINE)


def pairs(base, head):
    return list(zip(base, head, strict=True))


@pytest.mark.parametrize(
    ("rounds", "verdict", "ratio"),
    [
        (pairs([100] * 4, [102] * 4), "regressed", 1.02),
        (pairs([100] * 4, [98] * 4), "improved", 0.98),
        (pairs([100] * 4, [101] * 4), "same", 1.01),
        (pairs([100, 110, 105], [104, 114, 109]), "regressed", 109 / 105),  # what both share is no spread
        (pairs([100, 110, 105], [103, 117, 106]), "ambiguous", 1.03),
        (pairs([0] * 4, [0] * 4), "same", None),
        (pairs([0] * 4, [1e-9] * 4), "regressed", None),
        (pairs([-2.0] * 4, [-2.5] * 4), "improved", None),
        (pairs([1e300] * 4, [-1e300] * 4), "improved", None),
    ],
)
def test_a_change_is_larger_than_the_spread_and_one_percent(rounds, verdict, ratio):
    finding = judge.judge({"a": rounds})["a"]
    assert finding.verdict == verdict
    assert report.change(finding)[0] == (ratio and pytest.approx(ratio))


def test_values_and_times_are_judged_beside_each_other():
    """Values do not belong to the family that widens the intervals of times."""
    times = {"a": [0.1, 0.11, 0.1, 0.09], "b": [0.0, 0.01, 0.0, -0.01]}
    values = {f"v{i}": pairs([100] * 4, [100 + i] * 4) for i in range(9)}
    assert judge.judge(times | values) == judge.judge(times) | judge.judge(values)
    assert judge.judge(values, {"v5": 0.06})["v5"].verdict == "same"


@pytest.mark.parametrize("noise", [lambda g: g.normal(100, 3), lambda g: g.choice([100, 130]), lambda g: g.integers(0, 5)])
def test_noisy_values_of_identical_commits_are_hardly_ever_changed(noise):
    """A change is found first, and must then be confirmed in the same direction."""
    generator = np.random.default_rng(0)
    changed = 0
    for _ in range(1000):
        first, again = ([(noise(generator), noise(generator)) for _ in range(judge.MIN_ROUNDS)] for _ in range(2))
        found = judge.judge({"a": first})["a"].verdict
        if found in ("regressed", "improved"):
            changed += judge.decide({"a": first}, {"a": again})["a"].verdict in ("regressed", "improved")
    assert changed <= 5
