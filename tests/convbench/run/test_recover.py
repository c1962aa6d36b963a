"""The finished cells of a class whose run was interrupted."""

import json
import math
import signal

import pytest
from command_line import inside
from gate_projects import Sample
from runs import start, use_preinstalled, wait_until

from convbench.run import recover

pytestmark = pytest.mark.timeout(600)

SUITE = """
import json
import os
import time

import asv_runner

told = []


class Work:
    params = ["quick", "none", "slow"]
    rounds, repeat, number, warmup_time = 1, 2, 1, 0

    def time_it(self, pace):
        if pace == "slow":
            time.sleep(float(open({pace!r}).read()))
        if not told:
            told.append(pace)
            line = {{"benchmark": "speed.Work.time_it", "params": [repr(pace)], "number": 1}}
            line |= {{"status": "skipped"}} if pace == "none" else {{"status": "ok", "samples": [0.25, 0.5]}}
            with open(os.environ["CONVBENCH_CELLS"], "a") as file:
                file.write(json.dumps(line) + "\\n")
"""


@pytest.mark.slow
def test_finished_cells_of_a_class_that_was_cut_short_are_kept(tmp_path):
    made = Sample(tmp_path / "project")
    made.write({"asv.conf.json": use_preinstalled(made), "benchmarks/speed.py": SUITE.format(pace=str(tmp_path / "pace"))})
    made.commit({"sample/__init__.py": "x = 1\n"})
    (tmp_path / "pace").write_text("60")
    side = made.folder / ".convbench/run/cells.jsonl"
    process = start(made.folder, "run", "--busy")
    wait_until(lambda: side.is_file() and side.read_text().count("\n") == 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert "[1/1] speed.Work: cut short, 2 of its cells are kept" in out
    assert "interrupted: 0 of 1 classes are done, speed.Work is not" in err
    (path,) = made.folder.glob("results/*/*-*.json")
    row = json.loads(path.read_text())["results"]["speed.Work.time_it"]
    assert row[0][0] == 0.375
    assert all(map(math.isnan, row[0][1:]))
    (tmp_path / "pace").write_text("0.01")
    done = inside(made.folder, "run", "--busy")
    assert done.returncode == 0, done.stderr
    assert "1 cell of 1 class, 2 have results already" in done.stdout


def test_a_cell_is_finished_when_all_its_rounds_are(tmp_path):
    ok = {"benchmark": "a", "status": "ok", "samples": [1.0], "number": 1}
    lines = [ok | {"params": ["1"]}] * 2 + [ok | {"params": ["2"]}]
    lines += [ok | {"params": ["3"]}, ok | {"params": ["3"], "status": "failed"}]
    lines += [ok | {"params": ["4"], "status": "skipped"}] * 2
    (tmp_path / "side").write_text("\n".join(map(json.dumps, lines)) + '\n{"benchm')
    assert set(recover.finished(tmp_path / "side", 2)) == {("a", ("1",)), ("a", ("4",))}
