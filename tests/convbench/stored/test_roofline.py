"""The machine's limit and what is derived from it, by values worked out by hand."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convbench.stored import results, roofline

KIB, MIB = 2**10, 2**20
NAN = math.nan


def roof(compute=2e9, copies=None, dtype="float32", threads=1):
    """Two GFLOP/s, and copies that reach 100 bytes/s at a KiB and 10 at a MiB, where nothing else is said."""
    made = roofline.Roofline()
    if compute:
        made.add({"flops": 1000, "dtype": dtype}, threads, 1000 / compute)
    for size, rate in ({KIB: 100, MIB: 10} if copies is None else copies).items():
        made.add({"bytes": size}, threads, size / rate)
    return made


@pytest.mark.parametrize(
    ("flops", "moved", "seconds", "bound"),
    [
        (2e9, KIB, 10.24, "memory"),
        (200e9, KIB, 100, "compute"),
        (2e9, 64, 1, "compute"),  # fewer bytes than any copy: the smallest copy's rate, 0.64 s
        (0, 64, 0.64, "memory"),
        (0, KIB, 10.24, "memory"),
        (0, 32 * KIB, 32 * KIB / 55, "memory"),  # half way between the two sizes, in powers of two
        (0, 2**12, 2**12 / 82, "memory"),
        (0, MIB, MIB / 10, "memory"),
        (0, 4 * MIB, 4 * MIB / 10, "memory"),
        (2e9 * MIB / 10, MIB, MIB / 10, "compute"),  # as long either way
        (2e9 * MIB / 10 - 1e6, MIB, MIB / 10, "memory"),
    ],
)
def test_floor(flops, moved, seconds, bound):
    assert roof().floor(flops, moved, "float32", 1) == (pytest.approx(seconds), bound)


@pytest.mark.parametrize(
    ("made", "dtype", "threads"),
    [
        (roofline.Roofline(), "float32", 1),
        (roof(compute=None), "float32", 1),
        (roof(copies={}), "float32", 1),
        (roof(), "float64", 1),
        (roof(), "float32", 2),
        (roof(threads=2), "float32", 1),
    ],
    ids=["nothing", "no compute", "no copies", "other dtype", "other threads", "only two threads"],
)
def test_no_floor_without_ceilings(made, dtype, threads):
    assert made.floor(1e9, 1e6, dtype, threads) is None


def test_asking_leaves_no_trace():
    made = roofline.Roofline()
    made.floor(1, 1, "float32", 3)
    assert not made.compute
    assert not made.copies


def test_copies_into_fresh_memory_are_no_limit():
    made = roof(copies={})
    made.add({"bytes": MIB, "fresh": True}, 1, 0.001)
    assert made.floor(1, MIB, "float32", 1) is None


def test_each_number_of_threads_has_its_own_limit():
    made = roof()
    made.add({"flops": 1000, "dtype": "float32"}, 2, 2000 / 4e9)  # each of the two did so much
    made.add({"bytes": MIB}, 2, MIB / 1e9)
    assert made.floor(4e9, 8, "float32", 1) == (2, "compute")
    assert made.floor(4e9, 8, "float32", 2) == (1, "compute")


sizes = st.floats(1, 1e12)


@given(st.floats(0, 1e15), sizes, st.dictionaries(st.integers(1, 2**34), st.floats(1e3, 1e12), min_size=1, max_size=5))
def test_floor_is_the_larger_of_two_limits(flops, moved, copies):
    made = roof(copies=copies)
    seconds, bound = made.floor(flops, moved, "float32", 1)
    assert bound in ("compute", "memory")
    assert seconds >= flops / 2e9 * (1 - 1e-9)
    rates = list(copies.values())
    assert moved / max(rates) * (1 - 1e-9) <= seconds or bound == "compute"
    assert seconds <= max(flops / 2e9, moved / min(rates)) * (1 + 1e-9)


# Cells


def cell(implementation="cpu.torch", row=("a",), value=1.0, **more):
    base = {
        "benchmark": "b.time",
        "params": (repr(implementation), *map(repr, row)),
        "status": "ok",
        "unit": "seconds",
        "threads": 1,
        "label": "n1",
        "dtype": "float32",
        "flops": 2e9,
        "bytes": KIB,
        "baseline": "cpu.torch",
        "device": "cpu",
        "family": "direct",
    }
    return {**dict.fromkeys(results.COLUMNS), **base, "implementation": implementation, "row": row, "value": value, **more}


def frame(*cells):
    return pd.DataFrame(list(cells), columns=results.COLUMNS)


def derive(*cells, made=None, baseline=None):
    return roofline.derive(frame(*cells), made or roofline.Roofline(), baseline)


def absent(value):
    return value is None or value != value


CEILINGS = {
    "c.time": {
        "ceilings": {
            "'copy'": {"bytes": KIB},
            "'fresh'": {"bytes": MIB, "fresh": True},
            "'fma'": {"flops": 1000, "dtype": "float32"},
        }
    },
    "b.time": {},
}


def ceiling(name, threads, value, **more):
    params = (repr(name), repr(threads))
    return cell(None, (name, str(threads)), value, benchmark="c.time", params=params, threads=threads, flops=None, **more)


def test_ceilings_are_found_among_the_cells():
    found = roofline.from_cells(
        frame(
            ceiling("copy", 1, 2.0),
            ceiling("fresh", 1, 2.0),
            ceiling("fma", 1, 4.0),
            ceiling("fma", 2, 2.0),
            ceiling("copy", 2, NAN, status="skipped"),
            ceiling("unknown", 1, 1.0),
            cell(),
        ),
        CEILINGS,
    )
    assert found.compute == {(1, "float32"): 250, (2, "float32"): 1000}
    assert dict(found.copies) == {1: {KIB: KIB / 2}}


@pytest.mark.parametrize("known", [{}, CEILINGS, {"other.time": {}}])
def test_a_benchmark_without_parameters_is_no_ceiling(known):
    found = roofline.from_cells(frame(cell(None, (), params=())), known)
    assert not found.compute


@pytest.mark.parametrize("threads", [None, NAN])
def test_ceilings_of_an_unknown_number_of_threads_are_left_out(threads):
    """Plain `asv run` of 'all' threads, with no side file to say how many that were."""
    found = roofline.from_cells(frame(ceiling("fma", 1, 4.0), ceiling("fma", threads, 2.0)), CEILINGS)
    assert found.compute == {(1, "float32"): 250}


def test_derived_by_hand():
    made = roof()
    cells = derive(
        cell("cpu.torch", value=20.48, flops=2e9),
        cell("cpu.shift", value=40.96, flops=2e9),
        cell("cpu.fast", value=10.24, flops=2e9),
        cell("cpu.torch", ("b",), value=5.0, flops=8e9, bytes=64),
        cell("cpu.shift", ("b",), value=2.0, flops=8e9, bytes=64),
        made=made,
    )
    assert list(cells.speedup) == [1, 0.5, 2, 1, 2.5]
    assert list(cells.effective_gflops) == pytest.approx([2 / 20.48, 2 / 40.96, 2 / 10.24, 1.6, 4])
    # 1 KiB at 100 bytes/s takes 10.24 s, longer than 1 s of compute; 8 GFLOP at 2 GFLOP/s take 4 s.
    assert list(cells.limit_seconds) == pytest.approx([10.24, 10.24, 10.24, 4, 4])
    assert list(cells.bound) == ["memory"] * 3 + ["compute"] * 2
    # Winograd and FFT may pass the limit of nominal work.
    assert list(cells.percent_of_limit) == pytest.approx([50, 25, 100, 80, 200])


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [(None, [1, 2, 4]), ("cpu.torch", [1, 2, 4]), ("cpu.shift", [0.5, 1, 2]), ("cpu.fast", [0.25, 0.5, 1])],
)
def test_baseline(baseline, expected):
    cells = derive(cell("cpu.torch", value=4.0), cell("cpu.shift", value=2.0), cell("cpu.fast"), baseline=baseline)
    assert list(cells.speedup) == expected


def test_a_baseline_that_is_not_there_gives_no_speedup():
    assert all(absent(value) for value in derive(cell("cpu.torch"), cell("cpu.shift"), baseline="cpu.none").speedup)
    assert all(absent(value) for value in derive(cell("cpu.torch", baseline=None), cell("cpu.shift", baseline=None)).speedup)


def test_a_suite_without_implementations_has_no_speedup():
    cells = derive(*(cell(None, (row,), baseline=None) for row in "ab"))
    assert all(absent(value) for value in cells.speedup)


@pytest.mark.parametrize("status", ["failed", "skipped", "not measured"])
def test_a_baseline_without_a_time_gives_no_speedup(status):
    cells = derive(
        cell("cpu.torch", value=NAN, status=status), cell("cpu.shift"), cell("cpu.torch", ("b",)), cell("x", ("b",))
    )
    assert [absent(value) for value in cells.speedup] == [True, True, False, False]


def test_rows_and_benchmarks_have_their_own_baseline():
    cells = derive(
        cell("cpu.torch", ("a",), 4.0),
        cell("cpu.torch", ("b",), 8.0),
        cell("cpu.torch", ("a",), 2.0, benchmark="c.time"),
        cell("x", ("a",), 2.0),
        cell("x", ("b",), 2.0),
        cell("x", ("a",), 2.0, benchmark="c.time"),
    )
    assert list(cells.speedup)[3:] == [2, 4, 1]


@pytest.mark.parametrize(
    ("change", "has"),
    [
        ({}, {"speedup", "effective_gflops", "percent_of_limit", "bound"}),
        ({"device": "cuda"}, {"speedup", "effective_gflops"}),
        ({"device": None}, {"speedup", "effective_gflops"}),
        ({"threads": None}, {"speedup", "effective_gflops"}),
        ({"threads": 2}, {"speedup", "effective_gflops"}),
        ({"dtype": "float64"}, {"speedup", "effective_gflops"}),
        ({"flops": None, "bytes": None, "dtype": None}, {"speedup"}),
        ({"unit": "bytes"}, set()),
        ({"unit": "seconds", "status": "failed", "value": NAN}, set()),
        ({"status": "skipped", "value": NAN}, set()),
        ({"status": "not measured", "value": NAN}, set()),
    ],
    ids=lambda value: " ".join(map(str, value.values())) if isinstance(value, dict) else "",
)
def test_what_a_cell_has(change, has):
    cells = derive(cell("cpu.torch"), cell("other", **change), made=roof())
    last = cells.iloc[-1]
    names = ("speedup", "effective_gflops", "percent_of_limit", "bound")
    assert {name for name in names if not absent(last[name])} == has
    assert absent(last.limit_seconds) == ("bound" not in has)


def test_memory_in_bytes_is_not_held_against_times():
    cells = derive(cell("cpu.torch", value=100.0, unit="bytes"), cell("x", value=50.0, unit="bytes"), made=roof())
    for name in ("speedup", "effective_gflops", "percent_of_limit"):
        assert cells[name].isna().all()


@pytest.mark.parametrize(
    ("q25", "q75", "value", "expected"),
    [
        (0.9, 1.1, 1.0, 0.1),
        (1.0, 1.0, 1.0, 0.0),
        (1.0, 3.0, 2.0, 0.5),
        (None, 1.0, 1.0, None),
        (1.0, None, 1.0, None),
        (NAN, NAN, 1.0, None),
        (0.0, 0.0, 0.0, None),
    ],
)
def test_spread(q25, q75, value, expected):
    """Half the interquartile range over the median."""
    spread = derive(cell(value=value, q25=q25, q75=q75), cell("x")).spread[0]
    assert absent(spread) if expected is None else spread == pytest.approx(expected)


def test_a_speedup_carries_the_spread_of_both_sides():
    cells = derive(
        cell("cpu.torch", value=2.0, q25=1.94, q75=2.06),  # 3 %
        cell("x", value=1.0, q25=0.96, q75=1.04),  # 4 %
        cell("y"),
        cell("x", ("b",), q25=0.9, q75=1.1),
    )
    assert cells.speedup_spread[1] == pytest.approx(0.05)
    assert absent(cells.speedup_spread[2])
    assert absent(cells.speedup_spread[3])


def test_a_time_of_zero_is_no_error():
    """A suite that is not ours may track a duration that is zero."""
    cells = derive(cell("cpu.torch"), cell("x", value=0.0))
    assert len(cells) == 2


def test_nothing_in_nothing_out():
    cells = derive()
    assert cells.empty
    assert {"speedup", "effective_gflops", "percent_of_limit", "bound", "limit_seconds"} <= set(cells.columns)


def test_the_cells_given_stay_as_they_are():
    before = frame(cell())
    columns = list(before.columns)
    roofline.derive(before, roof())
    assert list(before.columns) == columns


times = st.floats(1e-9, 1e3)


@settings(max_examples=40, deadline=None)
@given(st.lists(times, min_size=2, max_size=6), st.floats(1, 1e12), st.integers(1, 2**34))
def test_the_figures_agree_with_each_other(values, flops, moved):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names = ["cpu.torch", *(f"cpu.n{i}" for i in range(1, len(values)))]
        cells = derive(
            *(cell(name, value=value, flops=flops, bytes=moved) for name, value in zip(names, values, strict=True)),
            made=roof(),
        )
    value = cells.value.to_numpy(float)
    assert np.allclose(cells.speedup.to_numpy(float) * value, values[0])
    assert np.allclose(cells.effective_gflops.to_numpy(float) * value * 1e9, flops)
    assert np.allclose(cells.percent_of_limit.to_numpy(float) * value / 100, cells.limit_seconds.to_numpy(float))
