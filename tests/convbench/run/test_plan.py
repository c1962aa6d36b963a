"""Which cells a run measures, which are there already, and how long the rest will take."""

import itertools
import json
import math
import re

import compressed
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from convbench.common import numbers
from convbench.common.cells import spelling
from convbench.common.selection import Selection, check_names
from convbench.common.selection import select as select_cells
from convbench.run import classes, plan
from convbench.stored import side_lines

IMPLEMENTATIONS = ["'cpu.loops'", "'cpu.shift'", "'cpu.torch'", "'gpu.torch'"]
CONV, THREADS, STARTUP, CEILINGS = (
    "conv2d.Size.time_conv2d",
    "conv2d.Threads.time_conv2d",
    "conv2d.Startup.time_first_call",
    "limits.Ceilings.time_ceiling",
)
# In this order asv lists them; the ceilings come last.
SUITE = {
    CONV: {
        "params": [IMPLEMENTATIONS, ["'7x7'", "'64x64'", "'512x512'"]],
        "param_names": ["implementation", "size"],
        "axis": "size",
        "quick": ["'7x7'", "'64x64'"],
        "rounds": 2,
    },
    THREADS: {
        "params": [IMPLEMENTATIONS[:2], ["'a'"], ["1", "2"]],
        "param_names": ["implementation", "problem", "threads"],
        "axis": "problem",
        "quick": [],
        "rounds": 3,
    },
    STARTUP: {
        "params": [IMPLEMENTATIONS[:1], ["3"]],
        "param_names": ["implementation", "kernel"],
        "axis": "kernel",
        "quick": ["3"],
    },
    "lists.time_sort": {"params": [], "param_names": []},
    "lists.time_find": {"params": [["1", "10"]], "param_names": ["n"]},
    CEILINGS: {
        "params": [["'copy, 1 MiB'", "'multiply-add'"], ["1", "2", "'all'"]],
        "param_names": ["ceiling", "threads"],
        "ceilings": {},
        "rounds": 2,
        "quick": ["'copy, 1 MiB'", "'multiply-add'"],
    },
}
EVERYTHING = {(name, params) for name, entry in SUITE.items() for params in itertools.product(*entry["params"])}


def select(*patterns, implementations=(), quick=False, suite=SUITE):
    return select_cells(suite, Selection(patterns, tuple(implementations), quick))


def spellings(*patterns, **more):
    return [spelling(cell) for cell in select(*patterns, **more)]


def of(cells, name):
    return [params for benchmark, params in cells if benchmark == name]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (("a.time", ()), "a.time"),
        (("a.time", ("1",)), "a.time(1)"),
        (("a.B.time", ("'cpu.loops'", "'7x7'", "2")), "a.B.time('cpu.loops', '7x7', 2)"),
    ],
)
def test_spelling(cell, text):
    assert spelling(cell) == text


def test_everything_and_the_ceilings_first():
    cells = select()
    assert len(cells) == len(set(cells))
    assert set(cells) == EVERYTHING
    assert [name for name, _ in itertools.groupby(cells, lambda cell: cell[0])] == [
        CEILINGS,
        CONV,
        THREADS,
        STARTUP,
        "lists.time_sort",
        "lists.time_find",
    ]
    assert of(cells, CONV)[:3] == [("'cpu.loops'", size) for size in ("'7x7'", "'64x64'", "'512x512'")]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["Size.*'cpu.loops'"], [f"{CONV}('cpu.loops', '{size}')" for size in ("7x7", "64x64", "512x512")]),
        (["'7x7'"], [f"{CONV}({name}, '7x7')" for name in IMPLEMENTATIONS]),
        (["^lists"], ["lists.time_sort", "lists.time_find(1)", "lists.time_find(10)"]),
        (["time_sort$"], ["lists.time_sort"]),
        ([r"find\(1\)$"], ["lists.time_find(1)"]),
        (["find", "sort"], ["lists.time_sort", "lists.time_find(1)", "lists.time_find(10)"]),
        (["find|sort"], ["lists.time_sort", "lists.time_find(1)", "lists.time_find(10)"]),
        (["Ceilings.*1 MiB.*, 1"], [f"{CEILINGS}('copy, 1 MiB', 1)"]),
        (
            ["limits", "sort"],
            [*(f"{CEILINGS}({a}, {b})" for a, b in itertools.product(*SUITE[CEILINGS]["params"])), "lists.time_sort"],
        ),
        (["TIME"], []),
        (["^time"], []),
        (["nothing"], []),
    ],
)
def test_regular_expressions(patterns, expected):
    assert spellings(*patterns) == expected


@pytest.mark.parametrize(
    ("globs", "names"),
    [
        (["cpu.*"], IMPLEMENTATIONS[:3]),
        (["*"], IMPLEMENTATIONS),
        (["*.torch"], IMPLEMENTATIONS[2:]),
        (["cpu.loops"], IMPLEMENTATIONS[:1]),
        (["cpu.loops", "gpu.*"], ["'cpu.loops'", "'gpu.torch'"]),
        (["cpu.[ls]*"], IMPLEMENTATIONS[:2]),
        (["cpu.????s"], IMPLEMENTATIONS[:1]),
        (["CPU.*"], []),
        (["loops"], []),
        (["cpu"], []),
        ([r"cpu\.loops"], []),
    ],
)
def test_implementations_by_glob(globs, names):
    cells = select(implementations=globs)
    assert list(dict.fromkeys(params[0] for params in of(cells, CONV))) == names
    # What has no implementation is not left out by one.
    assert {"lists.time_sort", "lists.time_find"} <= {name for name, _ in cells}


def test_quick_takes_the_named_problems():
    cells = select(quick=True)
    assert of(cells, CONV) == [(name, size) for name in IMPLEMENTATIONS for size in ("'7x7'", "'64x64'")]
    assert of(cells, STARTUP) == [("'cpu.loops'", "3")]
    assert of(cells, THREADS) == []


def test_quick_narrows_what_else_is_asked_for():
    assert spellings("Size", implementations=["cpu.loops"], quick=True) == [
        f"{CONV}('cpu.loops', '{s}')" for s in ("7x7", "64x64")
    ]
    assert spellings("512x512", quick=True) == []


@pytest.mark.parametrize(
    ("patterns", "globs", "quick", "threads"),
    [
        ([], [], False, ["1", "2", "'all'"]),
        ([], [], True, ["1"]),
        ([], ["cpu.loops"], False, ["1", "2", "'all'"]),
        ([], ["cpu.loops"], True, ["1"]),
        ([], ["nothing"], False, ["1", "2", "'all'"]),
        (["Size"], [], False, []),
        (["Size"], [], True, []),
        (["Ceilings"], [], False, ["1", "2", "'all'"]),
        (["Ceilings"], [], True, ["1"]),
        ([r", 2\)$"], [], False, ["2"]),
    ],
)
def test_the_rule_of_the_ceilings(patterns, globs, quick, threads):
    """They are added unless cells are named; a short run needs those of one thread."""
    cells = select(*patterns, implementations=globs, quick=quick)
    assert of(cells, CEILINGS) == [(what, count) for what in ("'copy, 1 MiB'", "'multiply-add'") for count in threads]


def test_ceilings_without_threads_are_no_error():
    suite = {"other.time_limit": {"params": [["'x'"]], "param_names": ["what"], "ceilings": {"'x'": {"bytes": 1}}}}
    assert len(select(suite=suite)) == len(select(suite=suite, quick=True)) == 1


def test_a_short_selection_has_the_first_of_further_parameters():
    facts = {"params": [["'cpu.a'"], ["1", "8"], ["2", "4"]], "param_names": ["implementation", "batch", "workers"]}
    found = select(suite={"read.time_it": {**facts, "axis": "batch", "quick": ["8"]}}, quick=True)
    assert found == [("read.time_it", ("'cpu.a'", "8", "2"))]


def test_implementations_on_request_are_measured_if_they_are_named():
    asked = {**SUITE[CONV], "implementations": {"cpu.loops": {"device": "cpu", "on_request": True}}}

    def names(**selection):
        return {params[0] for _, params in select_cells({CONV: asked}, Selection(**selection))}

    others = {*IMPLEMENTATIONS} - {"'cpu.loops'"}
    assert names() == others
    assert names(patterns=("Size",)) == others
    assert names(implementations=("cpu.loops",)) == {"'cpu.loops'"}
    assert names(patterns=("cpu.loops",)) == {"'cpu.loops'"}


def test_what_is_never_near_the_fastest_is_left_out_of_the_short_selection():
    suite = {CONV: {**SUITE[CONV], "implementations": {"cpu.loops": {"device": "cpu", "full_only": True}}}}

    def names(**selection):
        return {params[0] for _, params in select_cells(suite, Selection(**selection))}

    assert names() == {*IMPLEMENTATIONS}
    assert names(quick=True) == {*IMPLEMENTATIONS} - {"'cpu.loops'"}
    assert names(quick=True, implementations=("cpu.loops",)) == {"'cpu.loops'"}


def test_nothing_known_nothing_selected():
    assert select(suite={}) == []


# The regular expression given to asv


def asv_selects(pattern, cells):
    """The cells that asv's --bench takes: re.search on the name, followed by its parameters where it has any."""
    found = []
    for name, params in cells:
        text = f"{name}({', '.join(params)})" if params else name
        if re.search(pattern, text):
            found.append((name, params))
    return found


names = st.from_regex(r"[a-z_]{1,6}(\.[A-Za-z_]{1,5}){0,2}", fullmatch=True)
metacharacters = st.text(r"()[]{}.*+?^$|\-# ab1,'" + '"\n\t&~é', max_size=8)


@settings(max_examples=40)
@given(st.dictionaries(names, st.lists(st.lists(metacharacters, min_size=1, max_size=3), max_size=3), max_size=4), st.data())
def test_a_pattern_matches_its_cells_and_no_others(suite, data):
    """Parameters as asv has them: Python's repr, which keeps neighbours apart whatever they hold."""
    every = [
        (name, params)
        for name, axes in suite.items()
        for params in itertools.product(*([repr(value) for value in dict.fromkeys(axis)] for axis in axes))
    ]
    assume(every)
    own = data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    pattern = plan.ClassPlan("s", own, 1, 0.0).pattern()
    assert set(asv_selects(pattern, every)) == set(own)


@settings(max_examples=40)
@given(st.lists(st.tuples(names, metacharacters), min_size=2, max_size=8, unique=True), st.data())
def test_a_pattern_takes_any_text_literally(cells, data):
    """The repr of a suite's own objects may be any text."""
    every = [(name, (text,)) for name, text in cells]
    own = data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    assert set(asv_selects(plan.ClassPlan("s", own, 1, 0.0).pattern(), every)) == set(own)


@pytest.mark.parametrize(
    ("own", "others"),
    [
        (("a.time", ()), [("a.time_more", ()), ("aa.time", ()), ("a_time", ()), ("a.time", ("1",))]),
        (("a.time", ("1",)), [("a.time", ("10",)), ("a.time", ("1", "2")), ("a.time", ()), ("b.a.time", ("1",))]),
        (("a.time", ("'.*'",)), [("a.time", ("'xx'",))]),
        (("a.time", ("'x|y'",)), [("a.time", ("'x",)), ("a.time", ("y'",)), ("y')", ())]),
        (("a.time", ("'x'",)), [("a.time", ("'X'",)), ("a.time", ("'x'\n",))]),
    ],
)
def test_a_pattern_leaves_out_what_looks_alike(own, others):
    assert asv_selects(plan.ClassPlan("s", [own], 1, 0.0).pattern(), [own, *others]) == [own]


# Existing results


def test_missing_without_a_file(tmp_path):
    cells = select()
    assert plan.missing(cells, SUITE, None) == cells
    assert plan.missing(iter(cells), SUITE, tmp_path / "none.json") == cells


def test_failed_ones_are_missing_and_skipped_ones_are_not(tmp_path):
    sizes = ["'ok'", "'skipped'", "'silent'", "'failed'", "'reported'", "'absent'"]
    suite = {CONV: {"params": [["'cpu.loops'"], sizes], "param_names": ["implementation", "size"], "version": "1"}}
    values = [1.0, math.nan, math.nan, None, math.nan, math.nan]
    content = {
        "commit_hash": "0" * 40,
        "env_name": "env",
        "date": 0,
        "params": {"machine": "box"},
        "result_columns": ["result", "params", "version"],
        "results": {CONV: [values[:-1], [["'cpu.loops'"], sizes[:-1]], "1"]},
    }
    path = tmp_path / "00000000-env.json"
    path.write_text(json.dumps(content))
    side = [("'ok'", "ok"), ("'skipped'", "skipped"), ("'reported'", "failed")]
    lines = [json.dumps({"benchmark": CONV, "params": ["'cpu.loops'", size], "status": status}) for size, status in side]
    compressed.write_text(side_lines.path(path), "\n".join(lines))
    cells = select(suite=suite)
    assert [params[1] for _, params in plan.missing(cells, suite, path)] == ["'silent'", "'failed'", "'reported'", "'absent'"]
    assert plan.missing(cells[:2], suite, path) == []
    for reason, again in (("unavailable: no device", True), ("no input: not there", True), ("unsupported: groups=2", False)):
        more = {"benchmark": CONV, "params": ["'cpu.loops'", "'skipped'"], "status": "skipped", "reason": reason}
        compressed.write_text(side_lines.path(path), "\n".join([lines[0], json.dumps(more), *lines[2:]]))
        assert plan.missing(cells[:2], suite, path) == []
        assert plan.missing(cells[:2], suite, path, named=True) == (cells[1:2] if again else [])
    # Another version is another measurement: nothing of it is there.
    newer = {CONV: {**suite[CONV], "version": "2"}}
    assert plan.missing(cells, newer, path) == cells


# Classes and estimates


def test_classes_are_in_order():
    cells = select()
    found = plan.classes(cells, SUITE, {})
    assert [one.name for one in found] == ["limits.Ceilings", "conv2d.Size", "conv2d.Threads", "conv2d.Startup", "lists"]
    assert [cell for one in found for cell in one.cells] == cells
    assert [one.rounds for one in found] == [2, 2, 3, 1, 1]


def test_a_benchmark_outside_any_class_or_module():
    assert [one.name for one in plan.classes([("time_it", ())], {"time_it": {}}, {})] == ["time_it"]


def test_the_estimate_is_what_is_known_and_else_what_is_typical():
    cells = [(CONV, ("'cpu.loops'", size)) for size in ("'7x7'", "'64x64'", "'512x512'")]
    known = {cells[0]: 3.0, cells[2]: 0.5, ("other", ()): 100.0}
    (one,) = plan.classes(cells, SUITE, known)
    assert one.seconds == pytest.approx(2 * (3.0 + plan.TYPICAL_SECONDS + 0.5))
    (one,) = plan.classes(cells, SUITE, {})
    assert one.seconds == pytest.approx(6 * plan.TYPICAL_SECONDS)


def test_no_cells_no_classes():
    assert plan.classes([], SUITE, {}) == []


def test_durations(tmp_path):
    def line(cell, wall):
        return json.dumps({"benchmark": cell, "params": ["1"], "status": "ok", "wall": wall})

    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first.write_text("\n".join([line("a", 1.0), line("b", 2), line("a", 5.0), line("c", None), line("d", "long"), "{"]))
    second.write_text(
        "\n".join([line("b", 4.0), line("e", math.nan), line("f", math.inf), '{"benchmark": "g", "params": ["1"]}'])
    )
    found = plan.durations([first, second, tmp_path / "none.jsonl"])
    assert found == {("a", ("1",)): pytest.approx(5.0, abs=0.1), ("b", ("1",)): pytest.approx(4.0, abs=0.1)}
    assert all(seconds >= 4.0 for seconds in found.values())
    assert plan.durations([]) == {}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1 s"),
        (0.4, "1 s"),
        (1.4, "1 s"),
        (59.6, "60 s"),
        (89.4, "89 s"),
        (90, "2 minutes"),
        (120, "2 minutes"),
        (540, "9 minutes"),
        (3600, "60 minutes"),
    ],
)
def test_minutes(seconds, text):
    assert numbers.minutes(seconds) == text


@pytest.mark.parametrize(
    ("text", "done", "params"),
    [
        (None, 0, []),
        ("", 0, []),
        ('{"a": 1}\n', 1, []),
        ('{"a": 1}\n{"params": ["2"]}\n', 2, ["2"]),
        ('{"params": ["1"]}\n{"params": ["2"', 2, []),
    ],
)
def test_progress(tmp_path, text, done, params):
    path = tmp_path / "cells.jsonl"
    if text is not None:
        path.write_text(text)
    assert classes.progress(path) == classes.Progress(done, params)


def test_names_of_parameters_without_values_name_no_implementation():
    check_names({"a": {"param_names": ["implementation"]}, "b": {"param_names": ["implementation"], "params": []}}, ["x"])
