"""Where both sides have installed the same, nothing is measured, and what the head adds to the suite is called once."""

import json

import pytest
from command_line import inside
from gate_commits import built_by, interpreter
from gate_projects import Sample

SUITE = """
import os
import sample


def told(name):
    with open(os.environ["CALLS"], "a") as file:
        file.write(name + "\\n")


def time_old():
    told("old")
    sample.work()


time_old.sample_time = 0.002
"""
NEW = """
import sample
from . import b


class New:
    params = [1, 2]

    def setup(self, n):
        b.told(f"setup {n}")

    def time_new(self, n):
        CALL
"""
CODE = "def work():\n    return sum(range(100))\n"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return interpreter(tmp_path_factory.mktemp("python"))


@pytest.fixture
def gate(tmp_path, python, monkeypatch):
    """Gates a project before and after files of it have changed: what it printed, its JSON, and what was called."""
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))

    def run(changed, *arguments):
        made = Sample(tmp_path / "project")
        base = made.commit({"benchmarks/b.py": SUITE, "sample/__init__.py": CODE})
        head = made.commit(changed)
        (tmp_path / "calls").write_text("")
        with built_by(python):
            done = inside(made.folder, "gate", base, head, "--json", str(tmp_path / "a.json"), *arguments)
        report = json.loads((tmp_path / "a.json").read_text())
        assert report["exit_status"] == done.returncode
        return done.stdout, report, (tmp_path / "calls").read_text().split("\n")[:-1]

    return run


def test_a_documentation_change_calls_nothing(gate):
    said, report, called = gate({"docs/index.md": "more", "sample/__init__.py": CODE + "# more\n"})
    assert (report["exit_status"], report["rounds"], called) == (0, 0, [])
    assert (report["identical"], report["untouched"]) == (True, 1)
    assert "untouched: 1 of 1 cells" in said.splitlines()[2]
    assert "nothing to measure: both sides have installed the same files" in said
    assert said.endswith("The gate passes.\n")


def test_a_new_benchmark_is_called_and_no_other(gate):
    _, report, called = gate({"benchmarks/new.py": NEW.replace("CALL", "sample.work()")})
    assert report["exit_status"] == 0
    assert report["untouched"] == len(report["cells"]) == 3
    assert set(called) == {"setup 1"}


def test_a_new_benchmark_that_fails(gate):
    _, report, _ = gate({"benchmarks/new.py": NEW.replace("CALL", "sample.absent()")})
    assert report["exit_status"] == 4
    assert {cell["benchmark"]: cell["verdict"] for cell in report["cells"] if cell["params"] in ([], ["1"])} == {
        "b.time_old": "untouched",
        "new.New.time_new": "not measured",
    }


def test_a_benchmark_that_the_head_has_changed_is_called(gate):
    changed = SUITE.replace("sample.work()", "sample.absent()")
    _, report, called = gate({"benchmarks/b.py": changed})
    assert (report["exit_status"], report["identical"]) == (4, True)
    assert [cell["verdict"] for cell in report["cells"]] == ["not measured"]
    assert set(called) == {"old"}


def test_all_measures_all_the_same(gate):
    _, report, called = gate({"docs/index.md": "more"}, "--all", "--budget", "0.05")
    assert report["cells"][0]["rounds"] > 0
    assert set(called) == {"old"}
    assert not report["identical"]
