"""One data frame of all results: every number in it is that of a results file."""

import itertools
import json
import math
import re
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest
from command_line import inside
from published import BENCHMARKS, LINES, MEMORY, PLAIN, QUARTILES, SWEEP, TIMES, Published

from convbench.stored import export, side_lines

DOCS = Path(__file__).parents[3] / "docs" / "pages.md"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Published(tmp_path_factory.mktemp("export") / "project", BENCHMARKS)
    made.commits = [made.add(TIMES, QUARTILES, LINES), made.add(TIMES)]
    return made


def call(folder, *arguments):
    return inside(folder, "export", *map(str, arguments))


@pytest.mark.parametrize(("ending", "read"), [("csv", pd.read_csv), ("parquet", pd.read_parquet)])
def test_a_notebook_starts_with_one_line(project, tmp_path, ending, read):
    done = call(project.folder, tmp_path / f"all.{ending}")
    assert done.returncode == 0, done.stderr
    cells = read(tmp_path / f"all.{ending}")
    assert done.stdout.startswith(f"{len(cells)} cells of 2 commits on 1 machines are in ")
    assert list(cells)[: len(export.COLUMNS)] == list(export.COLUMNS)
    assert [name for name in cells if name not in export.COLUMNS] == ["param_ceiling", "param_size", "param_threads"]
    assert set(cells.commit) == set(project.commits)
    sweep = cells[(cells.benchmark == SWEEP["name"]) & (cells.commit == project.commits[0])]
    expected = {
        (implementation[1:-1], size[1:-1]): value
        for (implementation, size), value in zip(itertools.product(*SWEEP["params"]), TIMES[SWEEP["name"]], strict=True)
        if value and math.isfinite(value)
    }
    times = sweep[sweep.status == "ok"]
    assert dict(zip(zip(times.implementation, times.param_size, strict=True), times.value, strict=True)) == expected
    fast = times[(times.implementation == "cpu.fast") & (times.param_size == "64x64")].iloc[0]
    assert fast.speedup == pytest.approx(6.1e-5 / 9.87e-6)
    assert fast.effective_gflops == pytest.approx(18 * 64 * 64 / 9.87e-6 / 1e9)
    assert (fast.device, fast.family, fast.threads, fast.machine, fast.cpu) == ("cpu", "winograd", 1, "box", "A processor")
    skipped = sweep[sweep.status == "skipped"]
    assert set(skipped.reason) == {"unavailable: gpu.fast needs a GPU"}
    assert set(cells[cells.benchmark == MEMORY["name"]].unit) == {"bytes"}
    assert cells[cells.benchmark == PLAIN["name"]].implementation.isna().all()


def test_the_columns_are_documented():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE))
    assert rows == export.COLUMNS


def test_a_file_that_cannot_be_read_is_named(project, tmp_path):
    bad = project.results / "box" / "00000000-env-py3.11.json"
    bad.write_text("{")
    try:
        done = call(project.folder, tmp_path / "all.csv")
    finally:
        bad.unlink()
    assert done.returncode == 0
    assert done.stderr.count("skipped: box/00000000-env-py3.11.json") == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [("all.xlsx", "all.xlsx must end in .csv or .parquet"), ("none/all.csv", "cannot be written: ")],
)
def test_mistakes(project, tmp_path, name, words):
    done = call(project.folder, tmp_path / name)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not any(tmp_path.iterdir())


def test_nothing_to_export(tmp_path):
    made = Published(tmp_path / "project", BENCHMARKS)
    assert "no results yet in results/" in call(made.folder, tmp_path / "all.csv").stderr


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(export.click.ClickException, match=r"^Parquet needs pyarrow: pip install 'convbench\[export\]'$"):
        export.check(tmp_path / "all.parquet")


def test_the_record_of_this_project(tmp_path):
    """The smallest file of each machine, with its side file."""
    record = Path(__file__).parents[3] / "results"
    shutil.copy(record / "benchmarks.json", tmp_path)
    sizes = {path: path.stat().st_size for path in record.glob("*/*-*.json")}
    smallest = {path.parent.name: path for path in sorted(sizes, key=sizes.__getitem__, reverse=True)}
    stored = 0
    for machine, path in smallest.items():
        (tmp_path / machine).mkdir()
        shutil.copy(path, tmp_path / machine)
        shutil.copy(side_lines.path(path), tmp_path / machine)
        content = json.loads(path.read_text(encoding="utf-8"))
        stored += any(isinstance(v, float) for row in content["results"].values() for v in row[0] or [])
    cells = export.frame(tmp_path)
    assert stored == len(smallest)
    assert cells.groupby(["machine", "commit", "environment"]).ngroups == stored
    assert (cells.status == "ok").any()
