"""`convbench table`: what it prints for people, for programs and as torch does."""

import csv
import io
import json
import math
import subprocess

import click
import compressed
import pytest
from click.testing import CliRunner
from shown_cells import MEMORY, PLAIN, SMALL, cell, frame, skipped, strict

from convbench.cli.main import main
from convbench.stored import table, torch_compare

NAN = math.nan


# The command

SUITE = {
    "conv2d.Size.time_conv2d": {
        "params": [["'cpu.loops'", "'cpu.shift'", "'cpu.torch'"], ["'7x7'", "'64x64'"]],
        "param_names": ["implementation", "size"],
        "version": "1",
        "unit": "seconds",
        "baseline": "cpu.torch",
    },
    "lists.time_sort": {"params": [], "param_names": [], "version": "1", "unit": "seconds"},
    "lists.time_all": {"params": [["'all'"]], "param_names": ["threads"], "version": "1", "unit": "seconds"},
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with one results file that has every status, and a side file."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / "asv.conf.json").write_text('{"version": 1, "project": "other", "repo": "."}')
    folder = tmp_path / "results" / "box"
    folder.mkdir(parents=True)
    (folder.parent / "benchmarks.json").write_text(json.dumps({**SUITE, "version": 2}))
    params = SUITE["conv2d.Size.time_conv2d"]["params"]
    content = {
        "commit_hash": "0" * 40,
        "env_name": "env",
        "date": 0,
        "params": {"machine": "box"},
        "result_columns": ["result", "params", "version", "stats_q_25", "stats_q_75"],
        "results": {
            "conv2d.Size.time_conv2d": [[2.0, NAN, NAN, 4.0, 1.0, None], params, "1", [1.9, *[None] * 5], [2.1, *[None] * 5]],
            "lists.time_sort": [[0.5], [], "1"],
            "lists.time_all": [[0.5], [["'all'"]], "1"],
        },
    }
    (folder / "00000000-env.json").write_text(json.dumps(content))
    side = [
        {"params": ["'cpu.loops'", "'64x64'"], "status": "skipped", "reason": 'unsupported: "a", b;\nc'},
        {"params": ["'cpu.torch'", "'7x7'"], "status": "ok", "relative_l2": NAN},
    ]
    lines = [json.dumps({"benchmark": "conv2d.Size.time_conv2d", **line}) for line in side]
    compressed.write_text(folder / "00000000-env.cells.jsonl.gz", "\n".join(lines))
    monkeypatch.chdir(tmp_path)


def show(*arguments):
    return CliRunner().invoke(main, ["table", *arguments], catch_exceptions=False)


@pytest.mark.usefixtures("project")
def test_json_of_the_command_is_json():
    done = show("--json")
    assert (done.exit_code, done.stderr) == (0, "")
    cells = strict(done.stdout)
    assert all(list(cell) == table.FIELDS for cell in cells)
    assert [cell["status"] for cell in cells] == ["ok", "skipped", "not measured", "ok", "ok", "failed", "ok", "ok"]
    assert [cell["speedup"] for cell in cells] == [0.5, None, None, None, 1.0, None, None, None]
    assert cells[1]["reason"] == 'unsupported: "a", b;\nc'
    assert cells[-1]["threads"] is None


@pytest.mark.usefixtures("project")
def test_csv_of_the_command_is_csv():
    done = show("--csv")
    lines = list(csv.reader(io.StringIO(done.stdout, newline="")))
    assert lines[0] == table.FIELDS
    assert [len(line) for line in lines] == [len(table.FIELDS)] * 9
    first = dict(zip(table.FIELDS, lines[1], strict=True))
    assert (first["implementation"], float(first["value"]), first["reason"]) == ("cpu.loops", 2.0, "")
    assert lines[2][table.FIELDS.index("reason")] == 'unsupported: "a", b;\nc'
    assert "nan" not in done.stdout.lower()


@pytest.mark.usefixtures("project")
def test_csv_and_json_say_the_same():
    lines = list(csv.DictReader(io.StringIO(show("--csv").stdout, newline="")))
    cells = strict(show("--json").stdout)
    assert [{key: "" if value is None else str(value) for key, value in cell.items()} for cell in cells] == lines


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("arguments", "shown", "hidden"),
    [
        (("-b", "."), ["cpu.loops", "cpu.torch", "lists.time_sort", "speed-up: over cpu.torch"], []),
        ((), ["cpu.torch", "speed-up: over cpu.torch", "more: convbench table"], ["lists", "cpu.loops"]),
        (("--summary", "-b", "lists"), ["lists.time_sort"], ["cpu."]),
        (("-i", "cpu.s*"), ["cpu.shift", "lists.time_sort"], ["cpu.loops"]),
        (("-i", "cpu.s*", "-i", "cpu.loops"), ["cpu.shift", "cpu.loops"], []),
        (("-b", "Size"), ["conv2d.Size"], ["lists"]),
        (("-b", "^lists"), ["lists.time_sort"], ["conv2d.Size", "cpu.loops"]),
        (("-b", "'64x64'"), ["64x64"], ["7x7"]),
        (("-b", "Size", "-i", "cpu.torch", "-b", "sort"), ["cpu.torch", "lists.time_sort"], ["cpu.shift"]),
        (("--baseline", "cpu.loops"), ["speed-up: over cpu.loops", "2.0x"], []),
        (("--machine", "box"), ["box, commit 00000000"], []),
    ],
)
def test_filters(arguments, shown, hidden):
    done = show(*arguments)
    assert (done.exit_code, done.stderr) == (0, "")
    assert [word for word in shown if word not in done.stdout] == []
    below = done.stdout.split("\n", 3)[3]  # the legend may name the baseline
    assert [word for word in hidden if word in below] == []


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",)])
def test_a_speedup_needs_its_baseline_not_in_sight(form):
    """Filtering the baseline out of a table leaves the speed-ups over it."""
    done = show("-i", "cpu.loops", "-b", "Size", *form)
    assert ("0.50x" if not form else "0.5") in done.stdout


# As torch prints its own


def compare(cells):
    known = {
        "conv2d.Size.time_conv2d": {"param_names": ["implementation", "size"]},
        "conv2d.Threads.time_conv2d": {"param_names": ["implementation", "problem", "threads"]},
        "lists.time_sort": {},
        "read_batch.Warm": {"param_names": ["implementation", "batch", "workers"]},
        MEMORY["benchmark"]: {"param_names": ["implementation", "problem"]},
    }
    return torch_compare.compare(frame(cells), known)


def test_the_layout_of_torch():
    """A row a size, a column an implementation, a block a thread count, a table a benchmark, one unit each."""
    pytest.importorskip("torch.utils.benchmark")
    threads = {"benchmark": "conv2d.Threads.time_conv2d"}
    cells = [
        *(cell("cpu.torch", (size,), value) for size, value in (("7x7", 4e-6), ("64x64", 5e-5))),
        *(cell("cpu.shift", (size,), value) for size, value in (("7x7", 8e-6), ("64x64", 9e-5))),
        skipped("cpu.loops", ("64x64",), "too slow here: 9 FLOPs"),
        *(cell("cpu.torch", ("one", n), 0.01 / n, threads=n, **threads) for n in (1, 2)),
        *(cell("cpu.mmap", (32, n), 0.01 / n, threads=1, benchmark="read_batch.Warm") for n in (1, 4)),
        cell("cpu.torch", SMALL, 1024, spread=None, **MEMORY),
        cell(None, (), 1.5e-3, **PLAIN),
    ]
    assert [line.rstrip() for line in compare(cells).splitlines()] == LAID_OUT.splitlines()


LAID_OUT = """\
[------ conv2d.Size.time_conv2d ------]
             |  cpu.torch  |  cpu.shift
1 threads: ----------------------------
      7x7    |      4.0    |      8.0
      64x64  |     50.0    |     90.0

Times are in microseconds (us).

[ conv2d.Threads.time_conv2d ]
           |  cpu.torch
1 threads: ------------
      one  |    10.000
2 threads: ------------
      one  |    5.000

Times are in milliseconds (ms).

[- read_batch.Warm -]
          |  cpu.mmap
1 threads: ----------
      32  |   10.000
4 threads: ----------
      32  |   2.500

Times are in milliseconds (ms).

[ lists.time_sort -]
            |   time
1 threads: ---------
      time  |  1.500

Times are in milliseconds (ms).

cpu.loops (64x64): too slow here
"""


def test_no_times_to_lay_out():
    with pytest.raises(click.ClickException, match="none of these cells has a time"):
        compare([skipped("cpu.loops", SMALL, "no")])


@pytest.mark.usefixtures("project")
def test_the_layout_is_an_option_of_the_command():
    pytest.importorskip("torch.utils.benchmark")
    done = show("--layout", "compare")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "1 threads: ---" in done.stdout
    done = show("--layout", "compare", "--json")
    assert done.exit_code == 2
    assert "--layout cannot be combined" in done.stderr


def test_a_commit_that_is_named_shows_what_it_has(project, tmp_path):
    """Also benchmarks that have another version today, other parameters, or that are gone."""
    folder = tmp_path / "results" / "box"
    content = json.loads((folder / "00000000-env.json").read_text())
    content["results"] = {
        "conv2d.Size.time_conv2d": [[3.0], [["'cpu.old'"], ["'9x9'"]], "0"],
        "gone.time_it": [[0.25, 0.5], [["1", "2"]], "7"],
        "gone.peakmem_it": [[4096.0], [], "7"],
        "lists.time_sort": [[0.5], [], "1"],
    }
    (folder / "00000000-env.json").write_text(json.dumps(content))
    subprocess.run(["git", "config", "user.email", "-"], check=True)
    for command in (["add", "asv.conf.json"], ["-c", "user.name=-", "commit", "--quiet", "--message", "-"]):
        subprocess.run(["git", *command], check=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    content["commit_hash"] = commit
    (folder / f"{commit[:8]}-env.json").write_text(json.dumps(content))
    said = show("--commit", "HEAD", "--bench", ".").stdout
    assert "; older benchmark versions: conv2d.Size.time_conv2d, gone.peakmem_it, gone.time_it\n" in said
    for words in ("cpu.old", "9x9", "3.00 s", "250 ms", "4.00 KiB", "lists.time_sort"):
        assert words in said, said
    assert [cell["unit"] for cell in strict(show("--commit", "HEAD", "--json").stdout)][1:4] == [
        "seconds",
        "seconds",
        "bytes",
    ]
    assert "cpu.old" not in show("--bench", ".").stdout
