"""The flat profile: every function once, in the order asked for, with the sums that pstats has."""

import contextlib
import io
import pstats
import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convbench.suite import flat_profile

CONV, WALK, EMPTY = ("impls/conv.py", 10, "conv"), ("impls/walk.py", 1, "walk"), ("~", 0, "<built-in method numpy.empty>")
KNOWN = {
    CONV: (100, 100, 0.01, 1.0, {}),
    WALK: (22_500, 90_000, 0.9, 0.99, {CONV: (22_500, 22_500, 0.2, 0.99), WALK: (67_500, 0, 0.7, 0.7)}),
    EMPTY: (300, 300, 0.09, 0.09, {WALK: (300, 300, 0.09, 0.09)}),
}


def test_a_known_profile():
    assert flat_profile.render(KNOWN, "own").splitlines() == [
        "90,400 function calls, 22,900 of them primitive, in 1.00 s",
        "",
        " calls  primitive      own  per call  cumulative  per call  function",
        "90,000     22,500   900 ms   10.0 us      990 ms   44.0 us  walk (impls/walk.py:1)",
        "   300        300  90.0 ms    300 us     90.0 ms    300 us  built-in method numpy.empty",
        "   100        100  10.0 ms    100 us      1.00 s   10.0 ms  conv (impls/conv.py:10)",
    ]


@pytest.mark.parametrize(("order", "first"), [("own", "walk"), ("cumulative", "conv"), ("calls", "walk")])
def test_the_largest_comes_first(order, first):
    assert flat_profile.render(KNOWN, order).splitlines()[3].rpartition("  ")[2].startswith(first)


@given(
    st.dictionaries(
        st.tuples(st.just("a.py"), st.integers(1, 9), st.sampled_from("fg")),
        st.tuples(st.integers(1, 10**6), st.integers(0, 10**6), st.floats(1e-9, 1e3), st.floats(1e-9, 1e3)),
        min_size=1,
    ),
    st.sampled_from([("own", "tottime"), ("cumulative", "cumulative"), ("calls", "ncalls")]),
)
def test_sums_and_order_are_those_of_pstats(made, orders):
    stats = {
        function: (primitive, primitive + recursive, own, own + below, {})
        for function, (primitive, recursive, own, below) in made.items()
    }
    order, its_order = orders
    printed = io.StringIO()
    theirs = pstats.Stats(SimpleNamespace(stats=stats, create_stats=lambda: None), stream=printed).sort_stats(its_order)
    total, _, _, *rows = flat_profile.render(stats, order).splitlines()
    assert re.findall(r"[\d,]+(?= function| of)", total) == [f"{theirs.total_calls:,}", f"{theirs.prim_calls:,}"]
    assert sorted(row.rpartition("  ")[2] for row in rows) == sorted(f"{name} (a.py:{line})" for _, line, name in stats)
    with contextlib.suppress(ValueError):  # of several that are equal, either may come first
        place = [(line, name) for _, line, name in theirs.fcn_list]
        key = {"own": 2, "cumulative": 3, "calls": 1}[order]
        mine = [(int(found[2]), found[1]) for found in (re.search(r"  (\w+) \(a\.py:(\d+)\)$", row) for row in rows)]
        values = [[stats["a.py", *each][key] for each in ranked] for ranked in (mine, place)]
        assert values[0] == values[1]


def test_nothing_called_is_a_heading():
    assert flat_profile.render({}, "own").splitlines()[0] == "0 function calls, 0 of them primitive, in 0 ns"
