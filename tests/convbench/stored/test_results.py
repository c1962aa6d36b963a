"""What asv and the suite wrote, read back: every status, every broken file, and a suite that is not ours."""

import copy
import csv
import io
import json
import math
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from convbench.cli import commands
from convbench.common.cells import plain
from convbench.common.selection import Selection, select
from convbench.run import plan
from convbench.stored import results, side_lines

# asv's own order; a row may end early.
COLUMNS = [
    *("result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25"),
    *("stats_q_75", "stats_number", "stats_repeat", "samples", "profile"),
]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAN = math.nan


def stored(result, params=(), version="1", q25=None, q75=None, samples=None):
    """A row of asv's file, cut where nothing follows."""
    values = {"result": result, "params": list(params), "version": version}
    values |= {"stats_q_25": q25, "stats_q_75": q75, "samples": samples}
    row = [values.get(column) for column in COLUMNS]
    while row and row[-1] is None:
        row.pop()
    return row


def document(rows, machine="box", commit=COMMIT):
    return {
        "commit_hash": commit,
        "env_name": "env",
        "date": 1700000000000,
        "params": {"machine": machine, "cpu": "A Processor", "num_cpu": "2"},
        "python": "3.11",
        "requirements": {},
        "env_vars": {},
        "result_columns": COLUMNS,
        "results": rows,
        "durations": {},
        "version": 2,
    }


def write(folder, content, side=None, machine="box", name=f"{COMMIT[:8]}-env"):
    """One results file, and its side file where lines are given: objects, or text as it stands."""
    path = folder / machine / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    if side is not None:
        lines = [line if isinstance(line, str) else json.dumps(line) for line in side]
        side_lines.path(path).write_text("\n".join(lines) + "\n")
    return path


def benchmark(*params, names=(), version="1", **more):
    return {"params": list(params), "param_names": list(names), "version": version, "unit": "seconds", **more}


def line(name, *params, **facts):
    return {"benchmark": name, "params": list(params), **facts}


OURS = {
    "conv2d.Size.time_conv2d": benchmark(
        ["'cpu.loops'", "'cpu.torch'"],
        ["'7x7'", "'64x64'"],
        names=["implementation", "size"],
        axis="size",
        baseline="cpu.torch",
        implementations={"cpu.loops": {"device": "cpu", "family": "direct"}},
        problems={"'7x7'": {"label": "n1c1h7w7k1r3s3p1", "flops": 882, "bytes": 428, "dtype": "float32"}},
    )
}
SIZE = "conv2d.Size.time_conv2d"
SIZE_PARAMS = OURS[SIZE]["params"]


def load(tmp_path, rows, known=OURS, side=None):
    cells = results.load(write(tmp_path, document(rows), side), known).cells
    assert list(cells.columns) == results.COLUMNS
    return cells


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
    "failed without a report": (None, None, "failed", "ended without a report: killed, out of time or memory"),
    "failed, though asv took it for skipped": (NAN, {"status": "failed", "reason": "why"}, "failed", "why"),
    "not measured": (NAN, None, "not measured", None),
    "infinite": (math.inf, None, "not measured", None),
    "no number": ({"a": 1}, None, "not measured", None),
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
    side = [line(SIZE, "'cpu.loops'", "'7x7'", status="ok", relative_l2=1e-7, threads={"numba": 1})]
    cells = load(tmp_path, {SIZE: row}, side=side)
    first, torch = cells.iloc[0], cells.iloc[2]
    assert (first.benchmark, first.params) == (SIZE, ("'cpu.loops'", "'7x7'"))
    assert (first.implementation, first.row, first.unit, first.threads) == ("cpu.loops", ("7x7",), "seconds", 1)
    assert (first.value, first.q25, first.q75, first.samples) == (0.5, 0.4, 0.7, [0.4, 0.5, 0.7])
    assert (first.label, first.flops, first.bytes, first["dtype"]) == ("n1c1h7w7k1r3s3p1", 882, 428, "float32")
    assert (first.baseline, first.device, first.family, first.relative_l2) == ("cpu.torch", "cpu", "direct", 1e-7)
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


@given(cut=st.integers(0, 200))
@settings(max_examples=60)
def test_a_side_file_cut_anywhere_keeps_its_whole_lines(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("side") / "x.cells.jsonl"
    lines = [json.dumps(line("b", str(i), status="ok")) + "\n" for i in range(4)]
    path.write_text("".join(lines)[:cut])
    whole = sum(cut >= len("".join(lines[: i + 1]).rstrip("\n")) for i in range(4))
    assert list(side_lines.read(path)) == [("b", (str(i),)) for i in range(whole)]


def test_no_side_file_no_lines(tmp_path):
    assert side_lines.read(tmp_path / "none.jsonl") == {}


# Broken files


def without(key):
    content = document({SIZE: stored([1.0] * 4, SIZE_PARAMS)})
    del content[key]
    return json.dumps(content)


def with_rows(rows):
    return json.dumps(document(rows))


BROKEN = {
    "empty": "",
    "blank": "\n",
    "half an object": "{",
    "half a file": json.dumps(document({SIZE: stored([1.0] * 4, SIZE_PARAMS)}))[:400],
    "two objects": "{}{}",
    "not JSON": "<html></html>",
    "not text": b"\xff\xfe\x00\x01",
    "zeros": b"\0" * 300,
    "null": "null",
    "a number": "3",
    "a string": '"results"',
    "a list": "[]",
    "an object without anything": "{}",
    "asv's old format": '{"results": {"b": 1.0}, "params": {"machine": "box"}, "version": 1}',
    "machine.json": '{"arch": "x86_64", "machine": "box", "version": 1}',
    **{f"no {key}": without(key) for key in ("params", "commit_hash", "env_name", "date", "result_columns", "results")},
    "no machine": json.dumps({**document({}), "params": {}}),
    "machine a list": json.dumps({**document({}), "params": ["box"]}),
    "columns a number": json.dumps({**document({SIZE: []}), "result_columns": 3}),
    "results a list": json.dumps({**document({}), "results": []}),
    "results null": json.dumps({**document({}), "results": None}),
    "a row a number": with_rows({SIZE: 3}),
    "a row null": with_rows({SIZE: None}),
    "fewer values than cells": with_rows({SIZE: stored([1.0], SIZE_PARAMS)}),
    "fewer quartiles than cells": with_rows({SIZE: stored([1.0] * 4, SIZE_PARAMS, q25=[1.0])}),
    "fewer samples than cells": with_rows({SIZE: stored([1.0] * 4, SIZE_PARAMS, samples=[[1.0]])}),
    "values a number": with_rows({SIZE: stored(1.0, SIZE_PARAMS)}),
    "parameters a number": with_rows({SIZE: [[1.0], 3, "1"]}),
}


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_named(tmp_path, case):
    path = put(tmp_path / "box" / "01234567-env.json", BROKEN[case])
    with pytest.raises(results.Unreadable, match=r"^box/01234567-env\.json .") as caught:
        results.load(path, OURS)
    assert "\n" not in str(caught.value)


def test_every_cut_of_a_file_is_named(tmp_path):
    text = json.dumps(document({SIZE: stored([1.0] * 4, SIZE_PARAMS)}))
    path = tmp_path / "box" / "01234567-env.json"
    for length in range(len(text)):
        with pytest.raises(results.Unreadable, match=r"box/01234567-env\.json"):
            results.load(put(path, text[:length]), OURS)


def test_a_file_that_is_missing_or_a_folder_is_named(tmp_path):
    (tmp_path / "box" / "folder.json").mkdir(parents=True)
    for name in ("folder", "missing"):
        with pytest.raises(results.Unreadable, match=f"box/{name}.json is unreadable"):
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
    except results.Unreadable:
        return
    assert set(cells.status) <= {"ok", "skipped", "failed", "not measured"}
    assert all(isinstance(part, str) for row in cells.row for part in row)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "3", b"\xff\xfe", "{}{}"])
def test_broken_benchmarks_are_named(tmp_path, content):
    put(tmp_path / "results" / "benchmarks.json", content)
    with pytest.raises(results.Unreadable, match=r"^results/benchmarks\.json ."):
        results.benchmarks(tmp_path / "results")


def test_benchmarks(tmp_path):
    assert results.benchmarks(tmp_path) == {}
    put(tmp_path / "benchmarks.json", json.dumps({**OURS, "version": 2}))
    assert results.benchmarks(tmp_path) == OURS


def test_result_files(tmp_path):
    for i, name in enumerate(["b/2.json", "a/1.json", "b/0.json"]):
        os.utime(put(tmp_path / name, "{}"), (i, i))
    for other in ("benchmarks.json", "a/machine.json", "a/1.cells.jsonl", ".run/a.json", "a/deep/x.json", "a/note.txt"):
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


@given(st.text())
def test_plain_undoes_repr(text):
    assert plain(repr(text)) == text


# A suite that is not ours

OTHER = {
    "lists.time_append": benchmark(),
    "lists.time_broken": benchmark(),
    "lists.time_left_out": benchmark(),
    "lists.time_sort": benchmark(["10", "1000"], names=["n"]),
    "lists.time_grid": benchmark(["10", "20"], ["'up'", "'down'"], names=["n", "order"]),
    "lists.track_length": benchmark(unit="items"),
    "lists.peakmem_copy": benchmark(["<list>"], names=["kind"], unit="bytes"),
}
OTHER_ROWS = {
    "lists.time_append": stored([1.5e-3], q25=[1.4e-3], q75=[1.6e-3]),
    "lists.time_broken": stored(None),
    "lists.time_left_out": stored([NAN]),
    "lists.time_sort": stored([2e-6, 3e-4], [["10", "1000"]]),
    "lists.time_grid": stored([1.0, 2.0, 3.0, None], [["10", "20"], ["'up'", "'down'"]]),
    "lists.track_length": stored([42]),
    "lists.peakmem_copy": stored([4096], [["<list>"]]),
}


def test_another_suite_loads(tmp_path):
    cells = load(tmp_path, OTHER_ROWS, OTHER)
    assert cells.implementation.isna().all()
    got = {(cell.benchmark, cell.row): cell.status for cell in cells.itertuples()}
    assert got == {
        ("lists.time_append", ()): "ok",
        ("lists.time_broken", ()): "failed",
        ("lists.time_left_out", ()): "not measured",
        ("lists.time_sort", ("10",)): "ok",
        ("lists.time_sort", ("1000",)): "ok",
        ("lists.time_grid", ("10", "up")): "ok",
        ("lists.time_grid", ("10", "down")): "ok",
        ("lists.time_grid", ("20", "up")): "ok",
        ("lists.time_grid", ("20", "down")): "failed",
        ("lists.track_length", ()): "ok",
        ("lists.peakmem_copy", ("<list>",)): "ok",
    }


def test_another_suite_is_selected_and_stepped(tmp_path):
    cells = select(OTHER, Selection())
    assert ("lists.time_append", ()) in cells
    assert len(cells) == 11
    assert [step.name for step in plan.steps(cells, OTHER, {})] == ["lists"]
    path = write(tmp_path, document(OTHER_ROWS))
    assert plan.missing(cells, OTHER, path) == [
        ("lists.time_broken", ()),
        ("lists.time_left_out", ()),
        ("lists.time_grid", ("20", "'down'")),
    ]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An asv project in a git repository, and the current folder."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    (tmp_path / "asv.conf.json").write_text('{"version": 1, "project": "other", "repo": "."}')
    git = ["git", "-C", tmp_path, "-c", "user.name=A", "-c", "user.email=a@b.c"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "first"]):
        subprocess.run([*git, *command], check=True)
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def head(project: Path) -> str:
    return subprocess.check_output(["git", "-C", project, "rev-parse", "HEAD"], text=True).strip()


def store(project, rows, known, **more):
    (project / "results" / "benchmarks.json").write_text(json.dumps({**known, "version": 2}))
    return write(project / "results", document(rows), **more)


def show(*arguments):
    return CliRunner().invoke(commands.main, ["table", *arguments], catch_exceptions=False)


def test_another_suite_is_shown(project):
    store(project, OTHER_ROWS, OTHER)
    done = show()
    assert (done.exit_code, done.stderr) == (0, "")
    for text in (
        *("box, commit 01234567, env", "lists.time_append", "1.5 ms ±6.7 %", "42.0 items", "4.00 KiB", "300 us"),
        *("ended without a report", "20, down", "up"),
    ):
        assert text in done.stdout
    assert "time_left_out" not in done.stdout
    assert "nan" not in done.stdout


def test_ours_and_another_are_shown_together(project):
    """Cells with an implementation beside cells without, each with and without a reason."""
    ours = stored([1.0, NAN, None, NAN], SIZE_PARAMS)
    side = [
        line(SIZE, "'cpu.loops'", "'64x64'", status="skipped"),
        line("lists.time_left_out", status="skipped", reason="too old"),
        line("lists.time_grid", "20", "'up'", status="failed"),
        line("lists.time_grid", "10", "'up'", status="skipped"),
    ]
    grid = stored([NAN, 2.0, NAN, None], [["10", "20"], ["'up'", "'down'"]])
    store(project, {SIZE: ours, **OTHER_ROWS, "lists.time_grid": grid}, OURS | OTHER, side=side)
    done = show()
    assert (done.exit_code, done.stderr) == (0, "")
    for text in (
        *("cpu.loops (64x64): no reason recorded", "cpu.torch (7x7): FAILED, ended without a report", "too old"),
        *("(10, up): no reason recorded", "(20, up)"),
    ):
        assert text in done.stdout
    assert "nan" not in done.stdout
    assert "()" not in done.stdout
    assert len(json.loads(show("--json").stdout)) == 15


@pytest.mark.parametrize("some", OTHER)
def test_another_suite_is_shown_one_benchmark_at_a_time(project, some):
    store(project, {some: OTHER_ROWS[some]}, {some: OTHER[some]})
    done = show()
    if some == "lists.time_left_out":
        assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    else:
        assert done.exit_code == 0
        assert some in done.stdout


def test_another_suite_as_records(project):
    store(project, OTHER_ROWS, OTHER)
    cells = json.loads(show("--json").stdout)
    lines = list(csv.DictReader(io.StringIO(show("--csv").stdout)))
    assert len(cells) == len(lines) == 11
    assert [cell["value"] for cell in cells if cell["benchmark"] == "lists.time_append"] == [1.5e-3]
    assert [cell["value"] for cell in lines if cell["benchmark"] == "lists.track_length"] == ["42.0"]
    assert {cell["implementation"] for cell in cells} == {None}


# `convbench table` and the files it finds


def aged(path, seconds):
    os.utime(path, (seconds, seconds))


@pytest.mark.parametrize("case", ["empty", "half a file", "not text", "a list", "fewer values than cells"])
def test_a_bad_file_is_passed_over_for_the_next_good_one(project, case):
    aged(store(project, {SIZE: stored([9.0] * 4, SIZE_PARAMS)}, OURS, name="00000000-env"), 1000)
    aged(store(project, {SIZE: stored([1.0] * 4, SIZE_PARAMS)}, OURS, name="11111111-env"), 2000)
    aged(put(project / "results" / "box" / "22222222-env.json", BROKEN[case]), 3000)
    done = show()
    assert done.exit_code == 0
    assert done.stderr.startswith("passed over: box/22222222-env.json ")
    assert done.stderr.count("\n") == 1
    assert "1.00 s" in done.stdout
    assert "9.00 s" not in done.stdout


def test_a_file_cut_short_is_named_though_nobody_can_tell_when_it_was_measured(project):
    row = [[9.0] * 4, SIZE_PARAMS, "1", 1_700_000_000_000]
    store(project, {SIZE: row}, OURS, name="00000000-env")
    aged(put(project / "results" / "box" / "22222222-env.json", BROKEN["half a file"]), 1000)
    done = show()
    assert done.exit_code == 0
    assert done.stderr.startswith("passed over: box/22222222-env.json ")
    assert "9.00 s" in done.stdout


def test_a_bad_file_that_nobody_asked_for_is_not_mentioned(project):
    store(project, {SIZE: stored([1.0] * 4, SIZE_PARAMS)}, OURS)
    put(project / "results" / "other" / "22222222-env.json", "")
    done = show("--machine", "box")
    assert (done.exit_code, done.stderr) == (0, "")


def test_bad_files_alone_are_no_results(project):
    for name in ("a", "b"):
        put(project / "results" / "box" / f"{name}.json", "")
    done = show()
    assert done.exit_code == 1
    first, second, last = done.stderr.splitlines()
    assert {first.split()[2], second.split()[2]} == {"box/a.json", "box/b.json"}
    assert last.startswith("Error: no results yet in results/")


def test_the_machine_and_the_commit_asked_for(project):
    commit = head(project)
    at = {"name": f"{commit[:8]}-env"}
    (project / "results" / "benchmarks.json").write_text(json.dumps(OURS))
    for machine, name, value, time in (("box", commit, 1.0, 1), ("box", COMMIT, 2.0, 2), ("den", COMMIT, 3.0, 3)):
        content = document({SIZE: stored([value] * 4, SIZE_PARAMS)}, machine, name)
        aged(write(project / "results", content, machine=machine, **(at if name == commit else {})), time)
    for arguments, expected in (
        ((), ("den, commit 01234567", "3.00 s")),
        (("--machine", "box"), ("box, commit 01234567", "2.00 s")),
        (("--commit", "HEAD"), (f"box, commit {commit[:8]}", "1.00 s")),
        (("--commit", commit[:10]), (f"box, commit {commit[:8]}", "1.00 s")),
    ):
        done = show(*arguments)
        assert done.exit_code == 0
        assert all(text in done.stdout for text in expected), arguments
    assert show("--commit", "HEAD", "--machine", "den").exit_code == 1


NOTHING = {
    "every version differs": ({SIZE: stored([1.0] * 4, SIZE_PARAMS, version="2")}, OURS),
    "no benchmarks.json": ({SIZE: stored([1.0] * 4, SIZE_PARAMS)}, None),
    "no benchmark": ({}, OURS),
    "nothing measured": ({SIZE: stored([NAN] * 4, SIZE_PARAMS)}, OURS),
}


@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",)], ids=["table", "json", "csv"])
@pytest.mark.parametrize("case", NOTHING)
def test_a_file_with_nothing_to_show(project, case, form):
    rows, known = NOTHING[case]
    store(project, rows, known or {})
    if known is None:
        (project / "results" / "benchmarks.json").unlink()
    done = show(*form)
    if case == "nothing measured" and form:
        assert done.exit_code == 0
    else:
        assert done.exit_code == 1
        assert done.stderr.startswith("Error: nothing in the results of ")
