"""The pick of cpu.auto: by measured problems, weighted by similarity, or by rule; explain() shows it."""

import re
from unittest import mock

import numpy as np
import pytest
from auto_tables import HERE, LAYER, entry
from cases import case
from choices import W, X, asked, needs_compiled
from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st

import impls
from benchmarks.commands import tune
from benchmarks.workloads import random_problems
from impls.conv2d import arguments, choice, measurements, rules

FILTER = entry([1, 1, 512, 512], [1, 1, 3, 3], {"cpu.windows": 100.0}, padding=1)


@pytest.mark.parametrize(
    ("shapes", "settings", "name", "runner_up"),
    [
        (((1, 64, 56, 56), (64, 64, 3, 3)), {"padding": 1}, "cpu.shift", "cpu.fft"),
        (((2, 100, 40, 50), (48, 100, 3, 3)), {"padding": 1}, "cpu.shift", "cpu.fft"),
        (((1, 1, 600, 800), (1, 1, 5, 5)), {}, "cpu.windows", None),
        (((4, 1, 28, 28), (2, 1, 3, 3)), {"padding": "same"}, "cpu.windows", None),
    ],
)
def test_the_nearest_measured_problem_decides(table, shapes, settings, name, runner_up):
    table({("avx9", 1): [LAYER, FILTER]})
    found = impls.explain(*shapes, **settings)
    assert found.implementation.name == name
    assert runner_up in (None, found.runner_up)
    assert name in found.alike[0].times


def test_the_nearer_counts_for_more():
    """Channels halved, and doubled twice; a missing implementation counts as LATE."""
    near, far = (
        measurements.measured(entry([1, c, 9, 9], [8, c, 3, 3], times))
        for c, times in [(32, {"cpu.shift": 1.0, "cpu.fft": 1.5}), (256, {"cpu.fft": 2.0, "cpu.windows": 2.5})]
    )
    known = measurements.Known((far, near))
    alike, expected = known.expect(measurements.problem((1, 64, 9, 9), (8, 64, 3, 3)))
    assert alike == (near, far)
    assert list(expected) == ["cpu.fft", "cpu.shift", "cpu.windows"]
    assert expected["cpu.shift"] < measurements.LATE**0.5 < (expected["cpu.windows"] / 1.25**0.5)
    assert known.expect(near.problem) == ((near,), {"cpu.shift": 1.0, "cpu.fft": pytest.approx(1.5)})


@examples(deadline=None)  # the first imports scikit-learn
@given(st.integers(0, 1000), st.integers(1, 20), st.randoms(use_true_random=False))
def test_all_that_was_measured_decides_and_what_was_measured_itself_alone(seed, count, chance):
    """Against scikit-learn, whose ridge regression with this kernel is the mean of the Gaussian process."""
    ridges, pairs = pytest.importorskip("sklearn.kernel_ridge"), pytest.importorskip("sklearn.metrics.pairwise")
    names = ["cpu.shift", "cpu.fft", "cpu.torch", "cpu.loops"]
    times = [{name: 10 ** chance.uniform(-6, -5) for name in names} for _ in range(count)]
    drawn = random_problems.generate(count, seed)
    every = [measurements.measured(tune._entry(p.label, t)) for p, t in zip(drawn, times, strict=True)]
    known, other = measurements.Known(tuple(every)), asked(random_problems.generate(1, seed + 1)[0])
    assume(other not in [one.problem for one in every])
    alike, expected = known.expect(other)
    assert len(alike) == min(count, measurements.ALIKE)
    taken = np.log([[one.behind(name) for name in expected] for one in every])
    problems = [one.problem for one in every]

    def covariance(some):
        near, linear = (
            pair([of(one) for one in some], [of(one) for one in problems], **more)
            for pair, of, more in (
                (pairs.laplacian_kernel, measurements.place, {"gamma": 1}),
                (pairs.linear_kernel, measurements.unfilled, {}),
            )
        )
        return near + measurements.TREND_VARIANCE * linear

    ridge = ridges.KernelRidge(alpha=measurements.NOISE_VARIANCE, kernel="precomputed")
    ridge.fit(covariance(problems), taken - taken.mean(axis=0))
    logarithms = ridge.predict(covariance([other]))[0] + taken.mean(axis=0)
    assert np.log(list(expected.values())) == pytest.approx(logarithms, abs=1e-9)
    torch = measurements.TORCH_SHARE if other.flops > measurements.MAX_SMALL_FLOPS else 1
    order = [late * (torch if name == "cpu.torch" else 1) for name, late in expected.items()]
    assert order == sorted(order)
    for one in every:
        assert known.expect(one.problem)[0] == (one,)


def test_a_problem_in_the_place_of_another_is_not_that_problem():
    """The strides differ in order and have the same product: only the problem itself may decide alone."""
    times = {"cpu.shift": 1.0, "cpu.fft": 1.5}
    one, other = (
        measurements.measured(entry([1, 8, 9, 9], [8, 8, 3, 3], times, stride=list(s), padding=1)) for s in ((1, 2), (2, 1))
    )
    assert measurements.Known((one, other)).expect(other.problem)[0] == (other,)
    assert measurements.Known((one,)).expect(other.problem)[1]["cpu.fft"] == pytest.approx(1.5)
    assert measurements.Known((one,)).expect(one.problem._replace(dtype="float64"))[0] == (one,)


def test_torch_is_left_only_for_implementations_expected_to_be_clearly_faster(table):
    near = entry([1, 64, 56, 56], [64, 64, 5, 5], {"cpu.shift": 100.0, "cpu.torch": 101.0})
    table({("avx9", 1): [near]})
    itself, other = impls.explain((1, 64, 56, 56), (64, 64, 5, 5)), impls.explain((1, 64, 60, 60), (64, 64, 5, 5))
    assert (itself.implementation.name, other.implementation.name) == ("cpu.shift", "cpu.torch")
    assert "the runner-up is cpu.shift, expected to take 0.99 times as long, too little less to leave torch for it" in str(
        other
    )
    small = entry([1, 64, 6, 6], [64, 64, 5, 5], {"cpu.shift": 100.0, "cpu.torch": 101.0})
    table({("avx9", 1): [small]})
    assert impls.explain((1, 64, 7, 6), (64, 64, 5, 5)).implementation.name == "cpu.shift"


@pytest.mark.parametrize("transform", ["cpu.fft", "cpu.cython_winograd", "cpu.opencv"])
def test_exact_leaves_transforms_out(table, transform):
    """OpenCV's among them, which is a library and transforms for large kernels alone."""
    table({("avx9", 1): [entry(LAYER["input"], LAYER["weight"], {transform: 1.0, "cpu.shift": 2.0}, padding=1)]})
    shapes = (1, 64, 56, 56), (64, 64, 3, 3)
    assert next(iter(impls.explain(*shapes, padding=1).expected)) == transform
    exact = impls.explain(*shapes, padding=1, exact=True)
    assert exact.implementation.name == "cpu.shift"
    assert transform not in exact.expected


def test_where_transforms_alone_were_fast_the_other_times_decide(table):
    """By rule it is torch."""
    own = entry(LAYER["input"], LAYER["weight"], {"cpu.fft": 1.0}, padding=1)
    other = entry([1, 64, 60, 60], [64, 64, 3, 3], {"cpu.fft": 1.0, "cpu.shift": 2.0}, padding=1)
    table({("avx9", 1): [own, other]})
    found = impls.explain(own["input"], own["weight"], padding=1, exact=True)
    assert found.implementation.name == "cpu.shift"
    assert [one.times for one in found.alike] == [own["us"], other["us"]]
    assert "nothing was measured" not in str(found)


@needs_compiled
@pytest.mark.parametrize("exact", [False, True])
def test_every_stored_problem_is_decided_by_stored_times(exact):
    for tables in measurements._all():
        with mock.patch.object(measurements, "nearest", lambda *_, tables=tables: tables):
            for one in tables.known.problems:
                found = choice.choose(one.problem, 1, exact)
                picked = found.implementation.name
                with case(tables.processor, one.problem):
                    assert found.measurements is tables
                    own = [name for name in one.times if choice.computes(name, one.problem, exact)]
                    assert picked == next((name for name in own if not isinstance(choice._load(name), str)), picked)
                    assert not exact or not choice.TRANSFORMS & {picked, found.implementation.family}


def test_the_runner_up_can_run_here(table, monkeypatch):
    table({("avx9", 1): [entry([1, 8, 32, 32], [8, 8, 3, 3], {"cpu.shift": 1.0, "cpu.fft": 2.0, "cpu.windows": 3.0})]})
    there = choice._load
    monkeypatch.setattr(choice, "_load", lambda name: "it is gone" if name == "cpu.fft" else there(name))
    found = impls.explain((1, 8, 32, 32), (8, 8, 3, 3))
    assert (found.implementation.name, found.runner_up) == ("cpu.shift", "cpu.windows")


def no_room(*_):
    raise MemoryError("no memory for patches")


@pytest.mark.parametrize("convolve", [impls.conv2d, impls.load("cpu.auto")], ids=["impls.conv2d", "cpu.auto"])
def test_an_implementation_that_runs_out_of_memory_leaves_it_to_the_next(table, monkeypatch, convolve):
    table({("avx9", 1): [entry([*X.shape], [*W.shape], {"im2col.strided": 1.0, "cpu.windows": 2.0, "cpu.shift": 3.0})]})
    monkeypatch.setattr(arguments, "thread_count", lambda: 1)
    monkeypatch.setattr("impls.conv2d.geometry.require_patches", no_room)
    assert impls.explain(X, W).implementation.name == "im2col.strided"
    assert np.array_equal(convolve(X, W), impls.load("cpu.shift")(X, W))
    monkeypatch.setattr(choice, "best_first", lambda *_: iter([no_room, no_room]))
    with pytest.raises(MemoryError, match="no memory for patches"):
        convolve(X, W)


def test_with_numpy_alone_an_implementation_needs_no_patches(table, monkeypatch):
    numpy = ("im2col.strided", "cpu.shift_matmul")
    there = choice._load
    monkeypatch.setattr(choice, "_load", lambda name: there(name) if name in numpy else "it is gone")
    for rule in rules.RULES:
        monkeypatch.setattr(rules, "kind", lambda *_, rule=rule: rule)
        found = impls.explain((1, 64, 56, 56), (64, 64, 7, 7))
        assert {found.implementation.name, *(other.name for other in found.others)} == {*numpy}


def test_implementations_that_cannot_compute_it_are_skipped(table):
    best = {"cpu.scipy_ndimage": 1.0, "cpu.shift": 2.0}  # the first has stride 1 alone
    table({("avx9", 1): [entry([1, 8, 32, 32], [8, 8, 3, 3], best)]})
    assert impls.explain((1, 8, 32, 32), (8, 8, 3, 3), stride=2).implementation.name == "cpu.shift"


@pytest.mark.parametrize(("threads", "nearest"), [(1, 1), (2, 1), (3, 4), (4, 4), (64, 4)])
def test_the_nearest_number_of_threads(table, monkeypatch, threads, nearest):
    by = {1: "cpu.shift", 4: "cpu.windows"}
    table({("avx9", count): [entry([1, 8, 32, 32], [8, 8, 3, 3], {name: 1.0})] for count, name in by.items()})
    monkeypatch.setattr(arguments, "thread_count", lambda: threads)
    assert impls.explain((1, 8, 32, 32), (8, 8, 3, 3)).implementation.name == by[nearest]


@pytest.mark.parametrize(
    ("there", "nearest"),
    [
        ([(HERE, 2, "01"), ("Maker 1 3", 1, "02"), ("Other 1 2", 1, "02")], HERE),  # its own, whatever else is nearer
        ([("Maker 9 9", 4, "01"), ("Other 1 2", 1, "02")], "Maker 9 9"),  # then its maker's
        ([("Makers 9 9", 1, "02"), ("Maker 3 3", 1, "01")], "Maker 3 3"),
        ([("Maker 3 3", 2, "02"), ("Maker 9 9", 1, "01")], "Maker 9 9"),  # then the number of threads
        ([("Maker 3 3", 1, "02"), ("Maker 9 9", 1, "01")], "Maker 3 3"),  # then the newest
        ([("Other 1 2", 1, "01")], "Other 1 2"),
    ],
)
@pytest.mark.parametrize("turn", [1, -1])
def test_the_table_of_this_processor_or_of_its_maker(table, monkeypatch, there, nearest, turn):
    monkeypatch.setattr(arguments, "thread_count", lambda: 1)
    layers = {("avx9", count, processor, date): [LAYER] for processor, count, date in there[::turn]}
    table({("neon", 1): [LAYER], **layers})
    found = impls.explain((1, 64, 56, 56), (64, 64, 3, 3), padding=1)
    assert found.measurements.processor == nearest
    assert ("measured on box, which has another processor (avx9, " in str(found)) == (nearest != HERE)


AMD = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: 9\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"processor\t: 0\n{AMD}\nprocessor\t: 1\nmodel\t\t: 3\n", "AuthenticAMD 25 17"),
        ("BogoMIPS\t: 50\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd40\n", "0x41 8 0xd40"),
        ("", "what Python says"),
        (None, "what Python says"),
    ],
)
def test_a_processor_by_what_linux_tells(monkeypatch, tmp_path, text, name):
    file = tmp_path / "cpuinfo"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(measurements, "CPU", file)
    monkeypatch.setattr("platform.processor", lambda: "what Python says")
    assert measurements.processor.__wrapped__() == name


def test_an_explanation_names_its_measurement(table):
    table({("avx9", 1): [LAYER, FILTER]})
    assert str(impls.explain((1, 48, 60, 60), (64, 48, 3, 3), padding=1)).splitlines() == [
        "cpu.shift for input 1x48x60x60, weight 64x48x3x3, padding 2x2 in all, float32",
        "the runner-up is cpu.fft, expected to take 1.23 times as long",
        "the measured problems most like it, the nearest first:",
        "  input 1x64x56x56, weight 64x64x3x3, padding 2x2 in all, float32: cpu.shift 10 us, cpu.fft 12.5 us",
        "  input 1x1x512x512, weight 1x1x3x3, padding 2x2 in all, float32: cpu.windows and not these",
        "measured on box (avx9, 1 thread), commit 01234567, 2026-11-21",
    ]
    assert str(impls.explain(LAYER["input"], LAYER["weight"], padding=1)).splitlines()[1:4] == [
        "the runner-up is cpu.fft, expected to take 1.25 times as long",
        "the measured problems most like it, the nearest first:",
        "  input 1x64x56x56, weight 64x64x3x3, padding 2x2 in all, float32: cpu.shift 10 us, cpu.fft 12.5 us",
    ]


def test_arrays_are_explained_like_their_shapes():
    assert str(impls.explain(X, W)) == str(impls.explain(X.shape, W.shape))
    assert "float64" in str(impls.explain(X.astype(float), W.astype(float)))
    assert "float64" in str(impls.explain(X.shape, W.shape, dtype=np.float64))
    with pytest.raises(TypeError, match="dtype must be float32 or float64"):
        impls.explain(X.astype("int8"), W.astype("int8"))
    with pytest.raises(ValueError, match="do not fit groups=5"):
        impls.explain(X, W, groups=5)


BIAS = np.ones(1, np.float32)


@pytest.mark.parametrize("shape", [3, "abc", [[1.0], [2.0]], (1, 1.5, 5, 5)])
def test_what_is_neither_an_array_nor_a_shape_is_refused(shape):
    for name, called in (("input", (shape, W)), ("weight", (X, shape)), ("bias", (X, W, shape))):
        with pytest.raises(TypeError, match=f"{name} must be an array, or its shape in integers, not "):
            impls.explain(*called)


@pytest.mark.parametrize(("microseconds", "text"), [(999.4, "999 us"), (999.7, "1 ms"), (1234, "1.23 ms")])
def test_a_time_has_three_digits(microseconds, text):
    assert choice._time(microseconds) == text


@pytest.mark.parametrize("arguments", [(None, 2, 1), (BIAS, 2, 1), (BIAS.shape, 2, 1)], ids=["none", "array", "shape"])
def test_an_explanation_takes_the_arguments_of_a_call(arguments):
    assert str(impls.explain(X, W, *arguments)) == str(impls.explain(X.shape, W.shape, stride=2, padding=1))


@pytest.mark.parametrize(
    "arguments", [(X, W.astype("f8")), (X, W, BIAS.astype("f8")), (X, W, np.ones(3, np.float32)), (X, W, None, 0), (X[0], W)]
)
def test_an_explanation_makes_the_errors_of_a_call(arguments):
    with pytest.raises((TypeError, ValueError)) as called:
        impls.conv2d(*arguments)
    with pytest.raises(called.type, match=re.escape(str(called.value))):
        impls.explain(*arguments)
