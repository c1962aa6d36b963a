"""A range of commits on a cluster: the results are those of one machine, whoever measured what."""

import gzip
import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace
from unittest import mock

import pytest
from clusters import cluster, copy
from command_line import inside
from gate_projects import Sample
from runs import convbench, results, suite_project, use_preinstalled

from convbench.cluster import ranges
from convbench.run.plan import ClassPlan

pytestmark = [pytest.mark.first, pytest.mark.timeout(600)]

# Time is counted and not taken, so that every machine measures the same.
CODE = """
passed = 0


def work(n):
    global passed
    passed += n / 10


def clock():
    return passed
"""
SUITE = """
from sample import clock, work


class Work:
    params = [1, 2]
    rounds, repeat, number, warmup_time = 1, 3, 1, 0
    timer = staticmethod(clock)

    def time_work(self, n):
        work(n)


class Odd(Work):
    def time_odd(self, n):
        if n == 2:
            raise ValueError("it is even")
        work(n)


"""


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """Three commits of which the second does not build: measured on two machines, and on one by `convbench run`."""
    folder = tmp_path_factory.mktemp("range")
    made = Sample(folder / "project")
    made.write({"benchmarks/speed.py": SUITE, "home/.keep": "", "asv.conf.json": use_preinstalled(made)})
    made.hashes = [made.commit({"sample/__init__.py": CODE}, "first")]
    made.hashes += [made.commit({"sample/__init__.py": "# does not build"}, "second")]
    made.hashes += [made.commit({"sample/__init__.py": CODE}, "third")]
    alone = copy(made.folder, folder / "alone")
    with cluster(folder / "cluster", "box-a", "box-b") as machines:
        made.ran = convbench(made.folder, "run", "ALL", "--busy", "--cluster", str(machines.file))
        made.measured = {name: measured(made.folder, name) for name in ("box-a", "box-b")}
        made.again = convbench(made.folder, "run", "ALL", "--busy", "--cluster", machines.address, "--machines", "*-a")
        made.logs = machines.logs()
    with mock.patch.dict(os.environ, CONVBENCH_MACHINE="box-a"):
        made.alone = SimpleNamespace(folder=alone, ran=convbench(alone, "run", "ALL", "--busy"))
    return made


SUITE_ALONE = """
class Fast:
    params = ["1", "2"]
    rounds, repeat, number, warmup_time = 1, 2, 1, 0
    def time_it(self, n): pass
"""
TIMES = {"started_at", "duration", "date", "profile"}
PASSING = {"run", "wall", "ended", "load", "steal", "started", "cold"}


def measured(folder, machine):
    """What a machine's files hold, without times of day and durations."""
    found = {}
    for path in (folder / "results" / machine).iterdir():
        if path.suffix == ".gz":
            lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
            kept = [{key: value for key, value in line.items() if key not in PASSING} for line in lines]
            found[path.name] = sorted(map(json.dumps, kept))
            continue
        content = json.loads(path.read_text()) if path.suffix == ".json" else path.read_text()
        if "results" in content:
            columns = content["result_columns"]
            for row in content["results"].values():
                for i, name in enumerate(columns[: len(row)]):
                    row[i] = None if name in TIMES else row[i]
            content["durations"] = sorted(content["durations"])
        found[path.name] = content
    return found


@pytest.mark.proof
def test_each_machine_has_the_files_that_a_run_on_it_alone_makes(story):
    status, out, err = story.alone.ran
    assert status == 1, out + err
    alone = measured(story.alone.folder, "box-a")
    assert len(alone) == 6, sorted(alone)  # of two commits their times and lines, the machine, the commit that is not built
    assert story.ran[0] == 1, story.ran[1] + story.ran[2] + story.logs
    for machine in ("box-a", "box-b"):
        there = story.measured[machine]
        facts = alone["machine.json"] | {"machine": machine}
        assert there.keys() == alone.keys()
        assert there.pop("machine.json") == facts
        for name, content in there.items():
            text = json.dumps(alone[name], sort_keys=True).replace('"box-a"', f'"{machine}"')
            assert json.dumps(content, sort_keys=True) == text
    lists = [(folder / "results" / "benchmarks.json").read_text() for folder in (story.folder, story.alone.folder)]
    assert lists[0] == lists[1]


@pytest.mark.proof
def test_what_went_wrong_is_told_by_machine_in_one_line(story):
    _, out, err = story.ran
    second = story.hashes[1][:8]
    for machine in ("box-a", "box-b"):
        assert f"{machine}: 1 of 3 commits does not build: {second}; see the reasons above; {machine}: 2 cells failed" in err
        assert f"speed.Odd of {story.hashes[0][:8]} on {machine}: 3 timed, 0 skipped, 1 FAILED" in out
    assert err.count("\n") == 1


@pytest.mark.proof
def test_nothing_is_measured_twice_and_a_glob_chooses_machines(story):
    """Failed cells are tried again, as by `convbench run`; a commit that did not build is not."""
    _, out, _ = story.again
    assert f"{story.hashes[1][:8]} did not build before and is skipped" in out
    assert {line.partition(" of ")[0] for line in out.splitlines() if " timed, " in line} == {"speed.Odd"}
    assert "box-b" not in out.replace("it is called box-b, not *-a", "")


@pytest.mark.proof
def test_asv_and_the_readers_of_results_take_them_for_their_own(story):
    done = subprocess.run(
        [sys.executable, "-m", "asv", "publish", "--no-pull"], cwd=story.folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    index = json.loads((story.folder / "html" / "index.json").read_text())
    assert {machine["machine"] for machine in index["machines"].values()} == {"box-a", "box-b"}
    assert set(index["revision_to_hash"].values()) >= {story.hashes[0], story.hashes[2]}
    for machine in ("box-a", "box-b"):
        table = inside(story.folder, "table", "--machine", machine, "--bench", ".", "--json")
        assert {(cell["benchmark"], cell["status"]) for cell in json.loads(table.stdout)} >= {
            ("speed.Work.time_work", "ok"),
            ("speed.Odd.time_odd", "failed"),
        }
        assert inside(story.folder, "history", "--machine", machine, "--bench", ".").returncode in (0, 2)


@pytest.mark.slow
def test_the_checked_out_commit_is_measured_on_a_machine_of_the_cluster(tmp_path):
    folder = suite_project(tmp_path / "project", SUITE_ALONE)
    with cluster(tmp_path / "cluster", "box-a") as machines:
        done = inside(folder, "run", "--busy", "--cluster", machines.address)
        assert (done.returncode, done.stderr) == (0, ""), machines.logs()
        assert re.fullmatch(r"speed.Fast of \w{8} on box-a: 2 timed, 0 skipped, 0 FAILED, \d+ s\n", done.stdout)
        assert results(folder).keys() == {"speed.Fast.time_it"}


def test_a_class_takes_nothing_from_what_was_published_meanwhile(tmp_path):
    published = tmp_path / "old.json"
    old = {"results": {"speed.Work.time_a": [1], "speed.Other.time_b": [2]}, "durations": {"<build>": 1}}
    new = {"results": {"speed.Work.time_a": [3], "speed.Other.time_b": [0]}, "durations": {}}
    published.write_text(json.dumps(old))
    each = ClassPlan("speed.Work", [("speed.Work.time_a", ())], 1, 0.0)
    merged = json.loads(ranges._merged(json.dumps(new).encode(), published, each))
    assert merged == {"results": {"speed.Work.time_a": [3], "speed.Other.time_b": [2]}, "durations": {"<build>": 1}}
    assert json.loads(ranges._merged(json.dumps(new).encode(), tmp_path / "none", each)) == new
