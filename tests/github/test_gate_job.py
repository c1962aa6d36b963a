"""Our own gate: when it measures, which code judges, and that every operation is measured."""

import itertools
import json
import re

import pytest
from actions import Run
from adopters import Adopter
from comments import report
from workflows import JOBS, ROOT, WORKFLOWS

PARTS = JOBS["gate.measure"]["strategy"]["matrix"]["include"]


@pytest.fixture
def adopter(tmp_path):
    made = Adopter(tmp_path / "hub")
    made.result(0, report())
    made.branch("topic")
    made.head = made.change()
    return made


def run(adopter, **more):
    return Run(adopter.hub, adopter.hub.pull_request(adopter.main, adopter.head, **more)).workflow(WORKFLOWS["gate"])


@pytest.mark.slow
@pytest.mark.parametrize("status", [0, 1])
def test_a_touched_implementation_is_measured_in_jobs_side_by_side_by_the_bases_tool(adopter, status):
    adopter.head = adopter.change(impls__mine="")
    adopter.result(status, report())
    made = run(adopter)
    ended = "success" if status == 0 else "failure"
    assert made.jobs == {"measure": ("measure ", ended), "gate": ("gate", ended)}, made.log
    assert set(made.artifacts) == {f"gate-{part['part']}" for part in PARTS}
    assert made.judged_by == [adopter.main] * len(PARTS)
    assert "--budget" in adopter.asked()


def test_what_touches_no_implementation_passes(adopter):
    made = run(adopter)
    assert made.jobs == {"measure": ("measure ", "success"), "gate": ("gate", "success")}, made.log
    assert made.artifacts == {}


@pytest.mark.slow
def test_the_label_gate_measures_all_the_same(adopter):
    assert len(run(adopter, action="labeled", label="gate", labels=["gate"]).artifacts) == len(PARTS)


@pytest.mark.parametrize("action", ["labeled", "unlabeled"])
def test_another_label_leaves_the_required_check_as_it_is(adopter, action):
    made = run(adopter, action=action, label="documentation")
    assert made.jobs == {"measure": ("measure ", "skipped"), "gate": ("another label", "skipped")}


def test_every_operation_and_its_threads_are_measured():
    """An expression that no longer matches anything would leave its cells out in silence."""
    known = json.loads((ROOT / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    cells = [
        f"{name}({', '.join(params)})"
        for name, benchmark in known.items()
        if name != "version" and "implementation" in benchmark["param_names"]
        for params in itertools.product(*benchmark["params"])
    ]
    found = set()
    for part in PARTS:
        matches = [{cell for cell in cells if re.search(line, cell)} for line in part["bench"].splitlines()]
        assert all(matches), part
        assert len(set().union(*matches)) < 500, part
        found.update(*matches)

    def groups(names):
        return {name.split(".")[0] + (".Threads" if ".Threads." in name else "") for name in names}

    assert groups(found) == groups(cells)
