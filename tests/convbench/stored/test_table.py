"""Tables and records: what a small set of cells looks like, on wide screens, narrow ones, and to programs."""

import csv
import io
import json
import math
import os
import re
import subprocess
from pathlib import Path

import click
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from convbench.cli import commands
from convbench.stored import results, roofline, table, torch_compare

GOLDEN = Path(__file__).parents[2] / "golden" / "table.txt"
NAN = math.nan


def cell(implementation, row, value=None, spread=0.02, **more):
    """A timed cell where a value is given; q25 and q75 lie `spread` of it to either side."""
    base = {
        "benchmark": "conv2d.Size.time_conv2d",
        "params": (repr(implementation), *map(repr, row)),
        "unit": "seconds",
        "threads": 1,
        "label": "n1c1h7w7k1r3s3p1",
        "dtype": "float32",
        "flops": 2e6,
        "bytes": 1024,
        "baseline": "cpu.torch",
        "device": (implementation or "cpu").replace("gpu", "cuda").partition(".")[0],
        "status": "not measured",
        "value": NAN,
        "family": "direct",
    }
    if value is not None:
        quartiles = {"q25": value * (1 - spread), "q75": value * (1 + spread)} if spread is not None else {}
        base |= {"status": "ok", "value": value, "samples": [value] * 5, **quartiles}
    return {**dict.fromkeys(results.COLUMNS), **base, "implementation": implementation, "row": row, **more}


def frame(cells):
    """Cells with what is derived from them, on a machine of 1 GFLOP/s and 1 GB/s."""
    roof = roofline.Roofline()
    roof.add({"flops": 1e9, "dtype": "float32"}, 1, 1.0)
    roof.add({"bytes": 10**9}, 1, 1.0)
    made = pd.DataFrame(list(cells), columns=results.COLUMNS, dtype=object).astype({"value": float})
    return roofline.derive(made, roof)


def skipped(implementation, row, reason, **more):
    return cell(implementation, row, status="skipped", reason=reason, **more)


def failed(implementation, row, reason, **more):
    return cell(implementation, row, status="failed", reason=reason, **more)


SMALL, LARGE, HUGE = ("7x7",), ("1024x1024",), ("4096x4096",)
NO_GPU = "unavailable: gpu.torch needs a CUDA device; torch sees none here"
MEMORY = {"benchmark": "conv2d.Memory.track_peak_extra_bytes", "unit": "bytes"}
LIMITS = {"benchmark": "ceilings.Ceilings.time_ceiling", "baseline": None, "flops": None, "device": None}
PLAIN = {"benchmark": "lists.time_sort", "baseline": None, "flops": None, "device": None}

CELLS = [
    cell(None, ("copy, 1 MiB", "1"), 7.5e-6, **LIMITS),
    cell(None, ("copy, 1 MiB", "2"), 4.25e-6, spread=0.005, **LIMITS),
    cell(None, ("multiply-add", "1"), 1e-3, spread=0.3, **LIMITS),
    skipped(None, ("multiply-add", "2"), "not on this machine: it has 1 core", **LIMITS),
    cell("cpu.loops", SMALL, 0.105),
    skipped("cpu.loops", LARGE, "too slow here: 1.9e+07 FLOPs, over its declared limit of 2e+06"),
    skipped("cpu.loops", HUGE, "too slow here: 3e+08 FLOPs, over its declared limit of 2e+06"),
    cell("cpu.shift", SMALL, 0.008, spread=0.0004),
    cell("cpu.shift", LARGE, 0.0202, spread=0.12),
    cell("cpu.shift", HUGE, 3.5, spread=None),
    cell("cpu.torch", SMALL, 0.004, spread=0.0),
    cell("cpu.torch", LARGE, 0.01),
    cell("cpu.torch", HUGE, 0.9996, spread=0.02),
    failed("cpu.wrong", SMALL, "WrongAnswer: 3.2 at (0, 0, 1, 1) is off by 1.4, 1e+05 times what rounding allows"),
    failed("cpu.wrong", LARGE, "ended without a report: killed, out of time or memory"),
    cell("cpu.wrong", HUGE, 0.5),
    skipped("cpu.none", SMALL, "unsupported: groups=2"),
    skipped("cpu.none", LARGE, "unsupported: groups=2"),
    cell("cpu.none", HUGE),
    *(skipped("gpu.torch", row, NO_GPU) for row in (SMALL, LARGE, HUGE)),
    cell("cpu.later", SMALL),
    cell("cpu.shift", SMALL, 852 * 1024, spread=None, **MEMORY),
    cell("cpu.torch", SMALL, 0, spread=None, **MEMORY),
    cell(None, (), 1.5e-3, **PLAIN),
    failed(None, ("1000",), "ValueError: no", **{**PLAIN, "benchmark": "lists.time_reverse"}),
]
NOTES = table.Notes("box, commit 01234567, env", "cpu.torch")


def text(cells, width=100, notes=NOTES):
    out = io.StringIO()
    table.show(frame(cells), notes, Console(file=out, width=width, color_system=None))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize("widths", [(100, 60)])
def test_the_tables_look_as_before(widths):
    """The whole of it, wide and narrow; UPDATE_GOLDEN=1 writes what it looks like now."""
    now = "".join(f"=== {width} characters\n{text(CELLS, width)}" for width in widths)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(now, encoding="utf-8")
    assert now == GOLDEN.read_text(encoding="utf-8")


def headers(shown, names):
    """The implementations that stand at the head of columns, in order."""
    return [word for line in shown.splitlines() if not re.search(r"\d|:|;", line) for word in line.split() if word in names]


NAMES = ["cpu.torch", "cpu.shift", "cpu.loops", "cpu.scipy_convolve2d", "cpu.numba_direct", "im2col.torch_unfold"]


@pytest.mark.parametrize("width", [40, 50, 60, 72, 80, 100, 120, 160, 200, 500])
def test_every_implementation_has_its_times_at_any_width(width):
    shown = text([cell(name, row, 1.234e-3, spread=0.005) for name in NAMES for row in (SMALL, LARGE)], width)
    words = shown.split()
    assert {words.count(name) for name in NAMES} in ({1}, {2})  # as columns, or as rows of one or both tables
    assert words.count("ms") == 12
    assert max(map(len, shown.splitlines()[2:])) <= width


def test_a_narrow_screen_gets_several_tables_and_a_wide_one_one():
    sizes = [(f"{2**i}x{2**i}",) for i in range(9)]
    cells = [cell(name, row, 1.234e-3) for name in NAMES for row in sizes]
    assert text(cells, 300).count("64x64") == 1
    narrow = text(cells, 60)
    assert 2 <= narrow.count("64x64") <= len(NAMES)
    assert narrow.count("64x64") == narrow.count("256x256")
    assert narrow.count("conv2d.Size.time_conv2d") == 1


def test_many_implementations_stand_below_each_other_where_that_takes_fewer_tables():
    cells = [cell(name, row, 1.234e-3) for name in NAMES for row in (SMALL, LARGE)]
    wide, narrow = text(cells, 300), text(cells, 60)
    assert [line.split() for line in wide.splitlines()].count(NAMES) == 1
    lines = narrow.splitlines()
    starts = [line.split()[0] for line in lines if line.split() and line.split()[0] in NAMES]
    assert starts == NAMES
    (head,) = [line for line in lines if "7x7" in line]
    assert head.split() == ["7x7", "1024x1024"]
    assert narrow.count(" ms ") == wide.count(" ms ")


@given(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True),
    st.lists(st.sampled_from(["7x7", "64x64", "resnet50/n1c64h56w56k64r3s3p1"]), min_size=1, max_size=3, unique=True),
    st.integers(70, 200),
)
@settings(max_examples=40, deadline=None)
def test_no_time_is_lost(names, rows, width):
    cells = [cell(name, (row,), 1e-3 * (i + 1)) for i, (name, row) in enumerate((n, r) for n in names for r in rows)]
    shown = text(cells, width)
    for i in range(len(cells)):
        assert shown.count(f" {i + 1}.0 ms ") == 1 if i < 9 else f" {i + 1} ms " in shown
    for row in rows:
        assert row in shown


# Reasons


def reasons(*cells):
    shown = text([cell("cpu.torch", SMALL, 1.0), *cells], 300)
    return [line for line in shown.splitlines()[2:] if ": " in line]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([skipped("a", SMALL, "unsupported: x")], ["a (7x7): unsupported: x"]),
        ([skipped("a", row, "unsupported: x") for row in (SMALL, LARGE)], ["a (2 rows): unsupported: x"]),
        ([skipped("a", (row,), f"unsupported: {row}") for row in "xy"], ["a (x): unsupported: x", "a (y): unsupported: y"]),
        ([skipped("a", (row,), f"too slow here: {row}") for row in "xyz"], ["a (3 rows): too slow here"]),
        ([skipped(name, SMALL, "unsupported: x") for name in "ab"], ["a (7x7), b (7x7): unsupported: x"]),
        (
            [skipped(name, row, "no") for name, row in (("a", SMALL), ("a", LARGE), ("b", SMALL))],
            ["a (2 rows), b (7x7): no"],
        ),
        ([failed("a", SMALL, "why")], ["a (7x7): FAILED, why"]),
        ([failed("a", row, "why") for row in (SMALL, LARGE, HUGE)], ["a (3 rows): FAILED, why"]),
        ([failed("a", SMALL, "why"), skipped("a", LARGE, "why")], ["a (7x7): FAILED, why", "a (1024x1024): why"]),
        ([skipped("a", SMALL, None)], ["a (7x7): no reason recorded"]),
        (
            [skipped(name, SMALL, f"unavailable: {name} needs a GPU") for name in ("gpu.a", "gpu.b")] + [cell("c", SMALL)],
            ["gpu.a (7x7), gpu.b (7x7): unavailable: it needs a GPU"],
        ),
        ([failed("a", SMALL, "")], ["a (7x7): FAILED, no reason recorded"]),
        ([failed("a", ("x", "2"), "why")], ["a (x, 2): FAILED, why"]),
        ([cell("a", SMALL)], []),
        ([cell("a", SMALL, 1.0)], []),
        ([skipped("a", SMALL, "[red]unavailable[/red] [bold")], ["a (7x7): [red]unavailable[/red] [bold"]),
        (
            [skipped(name, row, "unsupported: x") for name in ("cpu.torch", "a", "b") for row in (LARGE, HUGE)],
            ["every implementation (2 rows each): unsupported: x"],
        ),
    ],
)
def test_reasons(cells, expected):
    assert reasons(*cells) == expected


def test_one_row_is_not_rows():
    every = [skipped(name, LARGE, "unsupported: x") for name in ("cpu.torch", "a", "b")]
    assert "1 rows" not in reasons(*every)[0]


@pytest.mark.parametrize("name", ["[red]x[/red]", "[/]", "[bold"])
def test_brackets_are_shown_as_they_are(name):
    """A suite that is not ours may have names and parameters that look like rich's markup."""
    shown = text([cell(name, (name,), 1.0, benchmark=name)], 200, table.Notes(name, name))
    assert shown.count(name) == 5


def test_a_benchmark_without_any_time_says_so():
    shown = text([skipped("a", SMALL, "unsupported: x"), cell("b", SMALL)])
    assert "conv2d.Size.time_conv2d: no times" in shown
    assert "a (7x7): unsupported: x" in shown


def test_a_column_without_time_is_left_out_and_a_failed_one_is_not():
    shown = text([cell("cpu.torch", SMALL, 1.0), skipped("a", SMALL, "no"), failed("b", SMALL, "no"), cell("c", SMALL)])
    assert headers(shown, {"cpu.torch", "a", "b", "c"}) == ["cpu.torch", "b"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (cell("x", SMALL, 2e-3), "2.0 ms ±2.0 %"),
        (cell("x", SMALL, 2e-3, spread=0.3), "2 ms ±30 %"),
        (cell("x", SMALL, 2e-3, spread=0.0), "2.000 ms ±0.0 %"),
        (cell("x", SMALL, 2e-3, spread=1e-5), "2.000 ms ±<0.1 %"),
        (cell("x", SMALL, 2e-3, spread=None), "2.00 ms"),
        (failed("x", SMALL, "why"), "failed"),
    ],
)
def test_what_stands_in_a_cell(given, expected):
    assert expected in re.sub(" +", " ", text([given, cell("y", SMALL, 1.0)]))


@pytest.mark.parametrize(("baseline", "said"), [("cpu.torch", True), (None, False)])
def test_the_legend_names_the_baseline(baseline, said):
    shown = text([cell("cpu.torch", SMALL, 1.0)], notes=table.Notes("heading", baseline))
    assert shown.startswith("heading\nmedian ± half the interquartile range")
    assert ("speed-up over cpu.torch" in shown) == said


# Records


def strict(content):
    """Parse JSON as the standard has it: no NaN, no Infinity."""

    def refuse(constant):
        raise ValueError(f"{constant} is no JSON")

    return json.loads(content, parse_constant=refuse)


def test_records_have_these_fields_and_no_others():
    rows = table.records(frame(CELLS))
    assert len(rows) == len(CELLS)
    assert all(list(row) == table.FIELDS for row in rows)
    assert strict(json.dumps(rows)) == rows
    assert len(set(table.FIELDS)) == len(table.FIELDS)


def test_records_say_what_was_measured():
    by_name = {
        (row["benchmark"].split(".")[1], row["implementation"], row["row"]): row for row in table.records(frame(CELLS))
    }
    shift = by_name["Size", "cpu.shift", "7x7"]
    assert {key: shift[key] for key in ("status", "value", "unit", "repeats", "device", "threads", "speedup", "bound")} == {
        "status": "ok",
        "value": 0.008,
        "unit": "seconds",
        "repeats": 5,
        "device": "cpu",
        "threads": 1,
        "speedup": 0.5,
        "bound": "compute",
    }
    assert shift["percent_of_limit"] == pytest.approx(25)
    assert shift["effective_gflops"] == pytest.approx(0.25)
    loops = by_name["Size", "cpu.loops", "1024x1024"]
    absent = ("value", "q25", "q75", "repeats", "speedup", "effective_gflops", "percent_of_limit", "bound", "relative_l2")
    assert [loops[name] for name in absent] == [None] * len(absent)
    assert loops["reason"].startswith("too slow here: 1.9e+07")
    assert by_name["Ceilings", None, "copy, 1 MiB, 2"]["value"] == 4.25e-6
    assert by_name["time_sort", None, ""]["value"] == 1.5e-3


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
    (folder / "00000000-env.cells.jsonl").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)


def show(*arguments):
    return CliRunner().invoke(commands.main, ["table", *arguments], catch_exceptions=False)


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
        ((), ["cpu.loops", "cpu.shift", "cpu.torch", "lists.time_sort", "speed-up over cpu.torch"], []),
        (("-i", "cpu.s*"), ["cpu.shift", "lists.time_sort"], ["cpu.loops"]),
        (("-i", "cpu.s*", "-i", "cpu.loops"), ["cpu.shift", "cpu.loops"], []),
        (("-b", "Size"), ["conv2d.Size"], ["lists"]),
        (("-b", "^lists"), ["lists.time_sort"], ["conv2d.Size", "cpu.loops"]),
        (("-b", "'64x64'"), ["64x64"], ["7x7"]),
        (("-b", "Size", "-i", "cpu.torch", "-b", "sort"), ["cpu.torch", "lists.time_sort"], ["cpu.shift"]),
        (("--baseline", "cpu.loops"), ["speed-up over cpu.loops", "2.0x"], []),
        (("--machine", "box"), ["box, commit 00000000, env"], []),
    ],
)
def test_filters(arguments, shown, hidden):
    done = show(*arguments)
    assert (done.exit_code, done.stderr) == (0, "")
    assert [word for word in shown if word not in done.stdout] == []
    below = done.stdout.split("\n", 2)[2]  # the legend may name the baseline
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
        *(cell("cpu.torch", ("one", str(n)), 0.01 / n, threads=n, **threads) for n in (1, 2)),
        *(cell("cpu.mmap", ("32", str(n)), 0.01 / n, threads=1, benchmark="read_batch.Warm") for n in (1, 4)),
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
    assert "--layout is for people" in done.stderr
