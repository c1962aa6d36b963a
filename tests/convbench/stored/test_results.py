"""Results of asv and the suite are read back: every status, every broken file, and every wrong value."""

import copy
import json
import math
import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_documents import (
    BROKEN,
    COLUMNS,
    NAN,
    OURS,
    SIZE,
    SIZE_PARAMS,
    benchmark,
    document,
    line,
    load,
    put,
    stored,
    write,
)

from convbench.common.cells import plain
from convbench.common.untrusted import Unreadable
from convbench.stored import results

# value in asv's file, line of the side file, status and reason
STATUSES = {
    "a time": (0.25, None, "ok", None),
    "a time and its line": (0.25, {"status": "ok", "reason": None}, "ok", None),
    "an integer": (3, None, "ok", None),
    "zero": (0.0, None, "ok", None),
    "skipped with a reason": (
        NAN,
        {"status": "skipped", "reason": "unsupported: groups=2"},
        "skipped",
        "unsupported: groups=2",
    ),
    "skipped without a reason": (NAN, {"status": "skipped"}, "skipped", None),
    "failed with a report": (None, {"status": "failed", "reason": "WrongAnswer: by 3"}, "failed", "WrongAnswer: by 3"),
    "failed without a report": (None, None, "failed", "no time (asv gives no reason)"),
    "failed, though asv took it for skipped": (NAN, {"status": "failed", "reason": "why"}, "failed", "why"),
    "not measured": (NAN, None, "not measured", None),
    "infinite": (-math.inf, None, "failed", "its value is infinite"),
    "text": ("3 apples\n", None, "failed", "its value is text, not a number: 3 apples"),
    "a list": ([1, 2], None, "failed", "its value is a list, not a number: [1, 2]"),
    "an object": ({"a": 1}, None, "failed", "its value is an object, not a number: {'a': 1}"),
    "huge": (10**400, None, "failed", "its value has 1332 bits, too many to show"),
    "large": (-(2**62), None, "ok", None),
}


@pytest.mark.parametrize("case", STATUSES)
def test_status(tmp_path, case):
    value, facts, status, reason = STATUSES[case]
    side = None if facts is None else [line(SIZE, "'cpu.loops'", "'7x7'", **facts)]
    cells = load(tmp_path, {SIZE: stored([value, 1.0, 1.0, 1.0], SIZE_PARAMS)}, side=side)
    cell = cells.iloc[0]
    assert (cell.status, None if cell.reason != cell.reason else cell.reason) == (status, reason)
    assert cell.value == value if status == "ok" else math.isnan(cell.value)
    assert list(cells.status[1:]) == ["ok"] * 3


def test_a_cell_has_what_its_benchmark_declares(tmp_path):
    row = stored([0.5, NAN, 1.0, NAN], SIZE_PARAMS, q25=[0.4, None, 0.9, None], q75=[0.7, None, 1.2, None])
    row += [None] * (COLUMNS.index("samples") - len(row)) + [[[0.4, 0.5, 0.7], None, [1.0], None]]
    side = [line(SIZE, "'cpu.loops'", "'7x7'", status="ok", relative_l2=1e-7, cold=2e-3, threads={"numba": 1})]
    cells = load(tmp_path, {SIZE: row}, side=side)
    first, torch = cells.iloc[0], cells.iloc[2]
    assert (first.benchmark, first.params) == (SIZE, ("'cpu.loops'", "'7x7'"))
    assert (first.implementation, first.row, first.unit, first.threads) == ("cpu.loops", ("7x7",), "seconds", 1)
    assert (first.value, first.q25, first.q75, first.samples) == (0.5, 0.4, 0.7, [0.4, 0.5, 0.7])
    assert (first.label, first.flops, first.bytes, first["dtype"]) == ("n1c1h7w7k1r3s3p1", 882, 428, "float32")
    assert (first.baseline, first.device, first.family) == ("cpu.torch", "cpu", "direct")
    assert (first.relative_l2, first.cold) == (1e-7, 2e-3)
    assert math.isnan(torch.cold)
    assert (torch.implementation, torch.value, torch.samples) == ("cpu.torch", 1.0, [1.0])
    assert torch.device is None or torch.device != torch.device


@pytest.mark.parametrize("length", range(2, len(COLUMNS) + 1))
def test_trailing_columns_may_be_missing(tmp_path, length):
    full = [[1.0, 2.0, NAN, None], SIZE_PARAMS, "1", 1700000000000, 3.5, *[[1.0, 2.0, None, None]] * 4]
    full += [[1, 1, None, None], [2, 2, None, None], [[1.0], [2.0], None, None], None]
    cells = load(tmp_path, {SIZE: full[:length]})
    assert list(cells.status) == ["ok", "ok", "not measured", "failed"]
    assert list(cells.value[:2]) == [1.0, 2.0]


def test_a_whole_benchmark_may_have_failed(tmp_path):
    cells = load(tmp_path, {SIZE: stored(None, SIZE_PARAMS)})
    assert list(cells.status) == ["failed"] * 4


def test_cells_come_in_the_order_of_their_parameters(tmp_path):
    cells = load(tmp_path, {SIZE: stored([1.0, 2.0, 3.0, 4.0], SIZE_PARAMS)})
    expected = [("cpu.loops", "7x7"), ("cpu.loops", "64x64"), ("cpu.torch", "7x7"), ("cpu.torch", "64x64")]
    assert [(cell.implementation, *cell.row) for cell in cells.itertuples()] == expected
    assert list(cells.value) == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("version", "kept"), [("1", True), (None, True), ("2", False), ("0" * 12, False)], ids=["same", "none", "other", "hash"]
)
def test_another_version_is_another_measurement(tmp_path, version, kept):
    cells = load(tmp_path, {SIZE: stored([1.0] * 4, SIZE_PARAMS, version=version)})
    assert len(cells) == (4 if kept else 0)


@pytest.mark.parametrize(("version", "said"), [(1, "format 1 of asv's files: run `asv update`"), (3, "upgrade asv")])
def test_another_format_of_asv_says_what_to_do(tmp_path, version, said):
    path = write(tmp_path / "box", document({SIZE: stored([1.0] * 4, SIZE_PARAMS)}))
    for read, file in (
        (lambda: results.load(path, {}), path),
        (lambda: results.benchmarks(tmp_path), tmp_path / "benchmarks.json"),
    ):
        file.write_text(json.dumps({"version": version}))
        with pytest.raises(Unreadable, match=re.escape(said)):
            read()


def test_a_benchmark_that_is_gone_is_dropped(tmp_path):
    cells = load(tmp_path, {SIZE: stored([1.0] * 4, SIZE_PARAMS), "old.time": stored([1.0])})
    assert set(cells.benchmark) == {SIZE}


def test_parameters_are_those_that_were_measured(tmp_path):
    """A name added since then shifts nothing: the file has its own list."""
    cells = load(tmp_path, {SIZE: stored([1.0, 2.0], [["'cpu.torch'"], ["'7x7'", "'64x64'"]])})
    assert [(cell.implementation, *cell.row, cell.value) for cell in cells.itertuples()] == [
        ("cpu.torch", "7x7", 1.0),
        ("cpu.torch", "64x64", 2.0),
    ]


@pytest.mark.parametrize(
    ("params", "names", "side", "threads"),
    [
        ([["'cpu.loops'"], ["4"]], ["implementation", "threads"], None, 4),
        ([["'cpu.loops'"], ["'all'"]], ["implementation", "threads"], {"numba": 6, "openblas": 6}, 6),
        ([["'cpu.loops'"], ["'all'"]], ["implementation", "threads"], {}, None),
        ([["'cpu.loops'"], ["'all'"]], ["implementation", "threads"], None, None),
        ([["'cpu.loops'"], ["'7x7'"]], ["implementation", "size"], None, 1),
        ([], [], None, 1),
    ],
)
def test_threads(tmp_path, params, names, side, threads):
    known = {"t.time": benchmark(*params, names=names)}
    cell = [v[0] for v in params]
    lines = None if side is None else [line("t.time", *cell, status="ok", threads=side)]
    cells = load(tmp_path, {"t.time": stored([1.0], params)}, known, lines)
    assert cells.threads[0] == threads or (threads is None and cells.threads.isna()[0])


# Side files


def test_the_last_line_of_a_cell_counts(tmp_path):
    side = [
        line(SIZE, "'cpu.loops'", "'7x7'", status="failed", reason="first"),
        line(SIZE, "'cpu.loops'", "'64x64'", status="skipped", reason="other"),
        line(SIZE, "'cpu.loops'", "'7x7'", status="skipped", reason="last"),
    ]
    cells = load(tmp_path, {SIZE: stored([NAN] * 4, SIZE_PARAMS)}, side=side)
    assert list(cells.reason[:2]) == ["last", "other"]


GOOD = line(SIZE, "'cpu.loops'", "'7x7'", status="skipped", reason="good")


@pytest.mark.parametrize(
    "bad",
    [
        json.dumps(line(SIZE, "'cpu.loops'", "'7x7'", status="failed", reason="cut short"))[:-9],
        "{",
        "",
        "null",
        "3",
        '"text"',
        "[]",
        "{}",
        '{"benchmark": "b"}',
        '{"params": []}',
        '{"benchmark": "b", "params": null}',
        '{"benchmark": "b", "params": 3}',
        '{"benchmark": "b", "params": [[1]]}',
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_line_that_makes_no_sense_is_passed_over(tmp_path, bad, first):
    side = [bad, GOOD] if first else [GOOD, bad]
    cells = load(tmp_path, {SIZE: stored([NAN] * 4, SIZE_PARAMS)}, side=side)
    assert (cells.status[0], cells.reason[0]) == ("skipped", "good")


# Broken files


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_named(tmp_path, case):
    path = put(tmp_path / "box" / "01234567-env.json", BROKEN[case])
    with pytest.raises(Unreadable, match=r"^box/01234567-env\.json .") as caught:
        results.load(path, OURS)
    assert "\n" not in str(caught.value)


def test_every_cut_of_a_file_is_named(tmp_path):
    text = json.dumps(document({SIZE: stored([1.0] * 4, SIZE_PARAMS)}))
    path = tmp_path / "box" / "01234567-env.json"
    for length in range(len(text)):
        with pytest.raises(Unreadable, match=r"box/01234567-env\.json"):
            results.load(put(path, text[:length]), OURS)


def test_a_file_that_is_missing_or_a_folder_is_named(tmp_path):
    (tmp_path / "box" / "folder.json").mkdir(parents=True)
    for name in ("folder", "missing"):
        with pytest.raises(Unreadable, match=f"box/{name}.json is unreadable"):
            results.load(tmp_path / "box" / f"{name}.json", OURS)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text("ab'1", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
    max_leaves=4,
)


def places(node, path=()):
    """The way to every node below a JSON document's root."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from places(child, (*path, key))


WHOLE = document(
    {SIZE: stored([1.0, NAN, None, 2.0], SIZE_PARAMS, q25=[1.0] * 4, q75=[2.0] * 4, samples=[[1.0], None, None, [2.0]])}
)


@given(st.sampled_from(sorted(places(WHOLE), key=str)), anything)
@settings(max_examples=400, deadline=None)
def test_any_one_wrong_value_is_read_or_named(tmp_path_factory, place, value):
    content = copy.deepcopy(WHOLE)
    parent = content
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    path = write(tmp_path_factory.mktemp("any"), content)
    try:
        cells = results.load(path, OURS).cells
    except Unreadable:
        return
    assert set(cells.status) <= {"ok", "skipped", "failed", "not measured"}
    assert all(isinstance(part, str) for row in cells.row for part in row)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "3", b"\xff\xfe", "{}{}"])
def test_broken_benchmarks_are_named(tmp_path, content):
    put(tmp_path / "results" / "benchmarks.json", content)
    with pytest.raises(Unreadable, match=r"^results/benchmarks\.json ."):
        results.benchmarks(tmp_path / "results")


def test_benchmarks(tmp_path):
    assert results.benchmarks(tmp_path) == {}
    put(tmp_path / "benchmarks.json", json.dumps({**OURS, "version": 2}))
    assert results.benchmarks(tmp_path) == OURS


def test_result_files(tmp_path):
    for i, name in enumerate(["b/2.json", "a/1.json", "b/0.json"]):
        os.utime(put(tmp_path / name, "{}"), (i, i))
    for other in ("benchmarks.json", "a/machine.json", "a/1.cells.jsonl.gz", ".run/a.json", "a/deep/x.json", "a/note.txt"):
        put(tmp_path / other, "{}")
    assert results.result_files(tmp_path) == [tmp_path / name for name in ("b/2.json", "a/1.json", "b/0.json")]
    assert results.result_files(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("'cpu.loops'", "cpu.loops"),
        ('"it\'s"', "it's"),
        ("'a\\nb'", "a\nb"),
        ("3", "3"),
        ("3.50", "3.5"),
        ("None", "None"),
        ("True", "True"),
        ("(1, 2)", "(1, 2)"),
        ("<function f>", "<function f>"),
        ("numpy.float32", "numpy.float32"),
        ("1x2", "1x2"),
        ("'open", "'open"),
        ("", ""),
        ("''", ""),
    ],
)
def test_plain(text, written):
    assert plain(text) == written


@given(
    st.text() | st.sampled_from(["None", "1", "True", "1.5", "[]"]), st.none() | st.booleans() | st.integers() | st.floats()
)
def test_plain_undoes_repr_where_that_is_no_other_value(text, other):
    assert plain(repr(text)) in (text, repr(text))
    assert plain(repr(text)) != plain(repr(other))
