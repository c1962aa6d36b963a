"""Tables and records of a small set of cells, on wide and narrow screens, and as JSON and CSV."""

import io
import json
import math
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from shown_cells import CELLS, HUGE, LARGE, SMALL, cell, failed, frame, skipped, strict

from convbench.stored import table

GOLDEN = Path(__file__).parents[2] / "golden" / "table.txt"
NAN = math.nan


NOTES = table.Notes("box, commit 01234567, env", "cpu.torch")


def text(cells, width=100, notes=NOTES, why=False):
    out = io.StringIO()
    table.show(frame(cells), notes, Console(file=out, width=width, color_system=None), why)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize("widths", [(100, 60)])
def test_the_tables_look_as_before(widths):
    """The whole of it, wide and narrow; UPDATE_GOLDEN=1 writes what it looks like now."""
    now = "".join(f"=== {width} characters\n{text(CELLS, width)}" for width in widths)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(now, encoding="utf-8")
    assert now == GOLDEN.read_text(encoding="utf-8")


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
    wide, narrow = text(cells, 300).split(), text(cells, 60).split()
    assert [wide.count(name) for name in NAMES] == [1] * 6
    assert narrow.count(NAMES[0]) > 1
    assert {narrow.count(name) for name in NAMES} == {narrow.count(NAMES[0])}
    assert [narrow.count(size) for (size,) in sizes] == [1] * 9


def first_words(shown):
    return [line.split()[0] for line in shown.splitlines() if line.split() and line.split()[0] in NAMES]


def test_the_fastest_is_first_and_what_could_do_less_is_last():
    times = {"cpu.torch": (2, 2), "cpu.shift": (1, 5), "cpu.loops": (3, 1), "cpu.numba_direct": (0.1, None)}
    cells = [
        cell(name, row, value) for name, values in times.items() for row, value in zip((SMALL, LARGE), values, strict=True)
    ]
    assert first_words(text(cells)) == ["cpu.loops", "cpu.torch", "cpu.shift", "cpu.numba_direct"]
    assert first_words(text(cells[::2])) == ["cpu.numba_direct", "cpu.shift", "cpu.torch", "cpu.loops"]


def test_one_problem_is_a_list_with_intervals_and_bars():
    shown = text(
        [cell("cpu.torch", SMALL, 0.5, spread=0.1), cell("cpu.shift", SMALL, 0.1, spread=0.2), failed("a", SMALL, "no")]
    )
    lines = {line.split()[0]: line for line in reversed(shown.splitlines()) if line.split()}
    assert re.search(r"100 ms +±20 % +5\.0x +3\.8 to 6\.9 .* ██▋$", lines["cpu.shift"])
    assert lines["cpu.torch"].endswith(" " + "█" * 13)
    assert lines["a"].split() == ["a", "failed"]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"a": (1.0, 0.1), "b": (1.15, 0.1), "c": (2.0, 0.1)}, ["a", "b"]),
        ({"a": (1.0, 0.01), "b": (1.15, 0.01)}, ["a"]),
        ({"b": (1.0, None), "a": (1.0, None)}, ["b"]),
    ],
)
def test_what_is_as_fast(times, expected):
    cells = [cell(name, SMALL, value, spread=spread) for name, (value, spread) in times.items()]
    assert table.as_fast(frame(cells)) == expected


@pytest.mark.parametrize(("share", "expected"), [(1.0, "█" * 20), (0.5, "█" * 10), (0.0, "▏"), (0.013, "▎"), (0.051, "█")])
def test_a_bar(share, expected):
    assert table.bar(share, 20) == expected


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
    shown = text([cell("cpu.torch", SMALL, 1.0), *cells], 300, why=True)
    return [line for line in shown.splitlines()[4:] if ": " in line]


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
    shown = text([skipped("a", SMALL, "unsupported: x"), skipped("c", SMALL, "too slow here: y"), cell("b", SMALL)])
    assert "conv2d.Size.time_conv2d: no times" in shown
    assert "skipped: 1 unsupported, 1 too slow here; --why shows each" in shown


def test_a_column_without_time_is_left_out_and_a_failed_one_is_not():
    shown = text([cell("cpu.torch", SMALL, 1.0), skipped("a", SMALL, "no"), failed("b", SMALL, "no"), cell("c", SMALL)])
    assert [line.split()[0] for line in shown.splitlines() if line.startswith((" cpu", " a ", " b ", " c "))] == [
        "cpu.torch",
        "b",
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (cell("x", SMALL, 2e-3), "2.0 ms ±2.0 %"),
        (cell("x", SMALL, 2e-3, spread=0.3), "2 ms ±30 %"),
        (cell("x", SMALL, 2e-3, spread=0.0), "2.000 ms ±0.0 %"),
        (cell("x", SMALL, 2e-3, spread=1e-5), "2.000 ms ±<0.1 %"),
        (cell("x", SMALL, 2e-3, spread=None), "2.00 ms"),
        (cell("x", SMALL, 2e-3, cold=3.1e-3), "3.10 ms cold"),
        (failed("x", SMALL, "why"), "failed"),
    ],
)
def test_what_stands_in_a_cell(given, expected):
    for others in ([], [cell("y", LARGE, 1.0)]):
        shown = re.sub(" +", " ", text([given, cell("y", SMALL, 1.0), *others]))
        assert (expected if others else expected.removesuffix(" cold")) in shown


@pytest.mark.parametrize(("baseline", "said"), [("cpu.torch", True), (None, False)])
def test_the_legend_names_the_baseline(baseline, said):
    shown = text([cell("cpu.torch", SMALL, 1.0)], notes=table.Notes("heading", baseline))
    assert shown.startswith("heading\nmedian ± half the interquartile range (IQR/2)")
    assert ("speed-up: over cpu.torch" in shown) == said


# Records


def test_records_have_these_fields_and_no_others():
    rows = table.as_dicts(frame(CELLS))
    assert len(rows) == len(CELLS)
    assert all(list(row) == table.FIELDS for row in rows)
    assert strict(json.dumps(rows)) == rows
    assert len(set(table.FIELDS)) == len(table.FIELDS)


def test_records_say_what_was_measured():
    by_name = {
        (row["benchmark"].split(".")[1], row["implementation"], row["row"]): row for row in table.as_dicts(frame(CELLS))
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
