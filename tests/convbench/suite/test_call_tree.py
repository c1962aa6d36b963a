"""The tree of calls, the functions' names and the flame graph, of made and of real programs."""

import cProfile
import json
import os
from collections import Counter
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

import impls
from benchmarks.commands import jit_names
from benchmarks.commands import profile as suite_side
from benchmarks.timing import clock
from convbench.suite import call_tree, flame_graph

GOLDEN = Path(__file__).parents[2] / "golden" / "profile.txt"


# The tree


@st.composite
def programs(draw):
    """Calls of function 0: each call is a function's number and the calls that it makes, which recur as they like."""
    program = [(0, [])]
    path = [program[0]]
    for number, depth in draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=30)):
        del path[depth:]
        call = (number if path else 0, [])
        (path[-1][1] if path else program).append(call)
        path.append(call)
    return program


def functions():
    """Four functions that make the calls they are told to make."""
    code = "def f{0}(calls):\n    for number, inner in calls:\n        made[number](inner)\n"
    made = []
    for number in range(4):
        names = {"made": made}
        exec(compile(code.format(number), f"program{number}.py", "exec"), names)
        made.append(names[f"f{number}"])
    return made


def count(calls):
    return sum((Counter([number]) + count(inner) for number, inner in calls), Counter())


@given(programs())
def test_every_call_is_in_the_tree_once(program):
    """Programs that really ran: calls and own times of all lines add up, and each edge of the graph is one line."""
    made, profile = functions(), cProfile.Profile()
    with clock.no_garbage_collection():
        for number, inner in program:
            profile.runcall(made[number], inner)
    stats = suite_side._statistics(profile)
    graph = call_tree.read(stats)
    with mock.patch.object(call_tree, "MIN_SHARE", 0.0):
        lines = list(call_tree.lines(graph))
    assert sum((Counter({int(line.text[1]): line.cost.calls}) for line in lines), Counter()) == count(program)
    assert sum(line.cost.own for line in lines) == pytest.approx(graph.whole)
    assert len(lines) == sum(map(len, graph.callees.values()))
    assert [(line.text, line.cost.calls) for line in lines if not line.depth] == [("f0 (program0.py:1)", len(program))]
    assert lines[0].cost.cumulative == pytest.approx(graph.whole)
    path = []
    for line, following in zip(lines, [*lines[1:], call_tree.Line(lines[0].cost, 0, "")], strict=True):
        del path[line.depth :]
        assert (line.mark == "[recursion]") == (line.text in path)
        path.append(line.text)
        if line.mark.startswith("["):
            assert following.depth <= line.depth


def test_a_deep_recursion_is_two_lines():
    def fall(depth):
        return depth and fall(depth - 1)

    profile = cProfile.Profile()
    with clock.no_garbage_collection():  # hypothesis is called when garbage is collected, and would be in the profile
        profile.runcall(fall, 500)
    lines = list(call_tree.lines(call_tree.read(suite_side._statistics(profile))))
    assert [(line.depth, line.mark) for line in lines] == [(0, "*"), (1, "[recursion]")]
    assert [line.cost.calls for line in lines] == [1, 500]


CONV, MAKE, FILL = ("impls/conv.py", 10, "conv"), ("impls/conv.py", 20, "make"), ("impls/conv.py", 30, "fill")
CHECK, WALK, EMPTY = ("impls/check.py", 5, "check"), ("impls/walk.py", 1, "walk"), ("~", 0, "<built-in method numpy.empty>")
KNOWN = {
    CONV: (100, 100, 0.01, 1.0, {}),
    MAKE: (200, 200, 0.25, 0.8, {CONV: (100, 100, 0.15, 0.6), CHECK: (100, 100, 0.1, 0.2)}),
    FILL: (22_500, 22_500, 0.4, 0.5, {MAKE: (22_500, 22_500, 0.4, 0.5)}),
    WALK: (22_500, 90_000, 0.1, 0.1, {FILL: (22_500, 22_500, 0.025, 0.1), WALK: (67_500, 0, 0.075, 0.075)}),
    CHECK: (100, 100, 0.1862, 0.3862, {CONV: (100, 100, 0.1862, 0.3862)}),
    EMPTY: (300, 300, 0.05, 0.05, {MAKE: (300, 300, 0.05, 0.05)}),
    ("~", 0, "<built-in method builtins.len>"): (900, 900, 0.003, 0.003, {CONV: (900, 900, 0.003, 0.003)}),
    ("~", 0, "<method 'ravel' of 'numpy.ndarray' objects>"): (100, 100, 0.0008, 0.0008, {CONV: (100, 100, 0.0008, 0.0008)}),
}


def test_a_known_profile():
    """UPDATE_GOLDEN=1 writes what it looks like now."""
    now = call_tree.render(KNOWN) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(now, encoding="utf-8")
    assert now == GOLDEN.read_text(encoding="utf-8")


def test_nothing_called_is_a_heading():
    assert call_tree.render({}) == "calls  own  cumulative  share  function"


def test_functions_are_named_by_where_they_are_imported_from():
    def names(code):
        return suite_side._name(code)

    assert names(impls.load.__code__) == ("impls/contract.py", impls.load.__code__.co_firstlineno, "load")
    assert names(json.dumps.__code__)[::2] == ("json/__init__.py", "dumps")
    assert names(click.echo.__code__)[0] == "click/utils.py"
    assert names((lambda: 0).__code__)[2].endswith("imported_from.<locals>.<lambda>")
    cython = (lambda: 0).__code__.replace(co_filename="impls/a.pyx", co_firstlineno=7, co_qualname="loops[float[:, ::1]]")
    assert names(cython) == ("impls/a.pyx", 7, "loops")
    assert names("<method 'x' of 'y' objects at 0x7f12ab>") == ("~", 0, "<method 'x' of 'y' objects>")


# The flame graph


def picture(*frames, stacks=1000):
    """What py-spy draws: frames are (name, row, start, width) in stacks."""
    groups = ""
    for name, row, start, width in frames:
        box = f'x="{start / stacks:.4%}" y="{52 + 16 * row}" width="{width / stacks:.4%}" height="15" fill="red"'
        title = f"<title>{name} ({width:,} samples, {width / stacks:.2%})</title>"
        groups += f'<g>{title}<rect {box} fg:x="{start}" fg:w="{width}"/><text x="0" y="0">{name}</text></g>'
    return (
        f'<svg xmlns="{flame_graph.SVG}" xmlns:fg="{flame_graph.FG}"><script><![CDATA[if (1 < 2 && 3) {{}}]]></script>'
        f'<text id="title">py-spy record</text><svg id="frames" total_samples="{stacks}">{groups}</svg></svg>'
    )


def drawn(svg):
    """Names and places of a picture's frames."""
    root = ElementTree.fromstring(svg)
    found = []
    for group in root.iter(f"{{{flame_graph.SVG}}}g"):
        frame = flame_graph.Frame(group)
        assert frame.title.text.startswith(f"{frame.name} ({frame.end - frame.start:,} samples, ")
        found.append((frame.name, (int(frame.box.get("y")) - 52) // 16, frame.start, frame.end - frame.start))
    return sorted(found, key=lambda frame: frame[1:])


def test_addresses_become_functions():
    """Neighbours of one function become one frame, but not across what called them; what has a name is left alone."""
    compiled = [(0x1000, 0x2000, "kernel (by Numba)"), (0x2000, 0x2100, "other (by Numba)")]
    base = [("all", 0, 0, 1000), ("one (a.py:1)", 1, 0, 600), ("two (a.py:2)", 1, 600, 400)]
    above = [
        *(("0x1000 (?)", 2, 0, 100), ("0x1abc (?)", 2, 100, 200), ("0x1fff (?)", 2, 300, 100), ("0x2000 (?)", 2, 400, 50)),
        *(("0x9 (?)", 2, 450, 50), ("0x7f01 (libm.so.6)", 2, 500, 40), ("0x7f02 (libm.so.6)", 2, 540, 40)),
        *(("malloc (libc.so.6)", 2, 580, 20), ("0x1004 (?)", 2, 600, 10), ("0x1008 (?)", 2, 900, 10)),
        *(("exp (libm.so.6)", 3, 50, 60), ("exp (libm.so.6)", 3, 110, 40)),
    ]
    svg = flame_graph.label(picture(*base, *above), "im2col <2 threads>", compiled)
    assert drawn(svg) == [
        *base,
        *(
            ("kernel (by Numba)", 2, 0, 400),
            ("other (by Numba)", 2, 400, 50),
            ("no symbol (compiled at run time)", 2, 450, 50),
        ),
        *(("no symbol (libm.so.6)", 2, 500, 80), ("malloc (libc.so.6)", 2, 580, 20)),
        *(("kernel (by Numba)", 2, 600, 10), ("kernel (by Numba)", 2, 900, 10)),
        *(("exp (libm.so.6)", 3, 50, 60), ("exp (libm.so.6)", 3, 110, 40)),
    ]
    assert "im2col &lt;2 threads&gt;" in svg
    assert "py-spy record" not in svg
    assert 'fg:x="0"' in svg  # which its script looks for
    script = ElementTree.fromstring(svg).find(f"{{{flame_graph.SVG}}}script")
    assert script.text == "if (1 < 2 && 3) {}"


@given(
    st.lists(st.tuples(st.sampled_from(["0x10 (?)", "0x11 (?)", "0x20 (?)", "f (a.py:1)"]), st.integers(1, 9)), min_size=1)
)
def test_no_stack_is_lost_or_counted_twice(row):
    total = sum(width for _, width in row)
    starts = [sum(width for _, width in row[:index]) for index in range(len(row))]
    frames = [(name, 1, start, width) for (name, width), start in zip(row, starts, strict=True)]
    compiled = [(0x10, 0x20, "kernel (by Numba)")]
    found = drawn(flame_graph.label(picture(("all", 0, 0, total), *frames, stacks=total), "title", compiled))[1:]
    covered = [name for name, _, start, width in found for _ in range(start, start + width)]
    expected = [flame_graph._name(name, compiled) or name for name, width in row for _ in range(width)]
    assert covered == expected
    assert [start for *_, start, _ in found] == sorted({start for *_, start, _ in found})


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZN5impls6conv2d3cpu11numba_loops6_loopsB2v9B40c8tJTIeF", "_loops (impls.conv2d.cpu.numba_loops, by Numba)"),
        ("_ZN7cpython5impls6conv2d6_loopsB2v9", "wrapper of _loops (impls.conv2d, by Numba)"),
        ("cfunc._ZN5impls6conv2d6_bandsB2v9", "wrapper of _bands (impls.conv2d, by Numba)"),
        ("__gufunc__._ZN13_3cdynamic_3e36__numba_parfor_gufunc_0x7f3cbb635c90B3v58", "parallel loop (by Numba)"),
        ("NRT_incref", "NRT_incref (by Numba)"),
    ],
)
def test_symbols_of_numba(symbol, name):
    assert jit_names._spell(symbol) == name


def test_a_list_for_perf(tmp_path):
    path = tmp_path / "perf.map"
    path.write_text("7f00 100 jit_avx2_conv_fwd_kernel_f32.0\n8f00 fc a name of words\n")
    assert jit_names._listed(path) == [
        (0x7F00, 0x8000, "jit_avx2_conv_fwd_kernel_f32.0 (compiled at run time)"),
        (0x8F00, 0x8FFC, "a name of words (compiled at run time)"),
    ]
    assert jit_names._listed(tmp_path / "none") == []
