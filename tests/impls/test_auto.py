"""The pick of cpu.auto: by measured problems, weighted by similarity, or by rule; explain() shows it."""

import math
import re

import numpy as np
import pytest
from auto_tables import HERE, LAYER, entry
from cases import case
from choices import W, X, asked, needs_compiled
from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st

import impls
from benchmarks.workloads import random_problems
from impls.conv2d import arguments, choice, measurements, rules

FILTER = entry([1, 1, 512, 512], [1, 1, 3, 3], {"cpu.windows": 1.0}, padding=1)


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
    table({"avx9": [LAYER, FILTER]})
    found = impls.explain(*shapes, **settings)
    assert (found.by, found.implementation.name) == ("shipped", name)
    assert runner_up in (None, found.runner_up)


@examples(max_examples=30)
@given(st.integers(0, 1000), st.integers(1, 40), st.randoms(use_true_random=False))
def test_neighbours_count_by_the_third_power_of_their_distance(seed, count, chance):
    """Against the definition, problem by problem; what was measured itself decides alone, and what is unknown has no say."""
    names = ("cpu.torch", "cpu.shift", "cpu.fft")
    drawn = [asked(one) for one in random_problems.generate(count, seed)]
    logs = [[0.0, *(chance.choice([math.nan, chance.uniform(-1, 1)]) for _ in names[1:])] for _ in drawn]
    table = measurements.Table(names, tuple(drawn), np.array(logs), "")
    other = asked(random_problems.generate(1, seed + 1)[0])
    assume(other not in drawn)
    apart = [sum(map(abs, np.subtract(measurements.place(one), measurements.place(other)))) for one in drawn]
    nearest = sorted(range(count), key=apart.__getitem__)[: measurements.NEAREST]
    means = {}
    for j, name in enumerate(names):
        known = [(logs[i][j], (apart[i] + measurements.MIN_DISTANCE) ** -3) for i in nearest if not math.isnan(logs[i][j])]
        if known:
            means[name] = sum(log * weight for log, weight in known) / sum(weight for _, weight in known)
    expected, order = table.expect(other)
    assert order == nearest
    assert list(expected.values()) == sorted(expected.values())
    least = min(means.values())
    assert expected == pytest.approx({name: math.exp(mean - least) for name, mean in means.items()})
    for i, one in enumerate(drawn):
        assert table.expect(one) == (pytest.approx(table.ratios(i)), [i])
        assert table.expect(one._replace(dtype="float64"))[1] == [i]


def test_a_problem_in_the_place_of_another_is_not_that_problem(table):
    """The paddings differ: only the problem itself may decide alone."""
    unpadded = entry([1, 8, 9, 9], [8, 8, 3, 3], {"cpu.shift": 1.0})
    padded = entry([1, 8, 7, 7], [8, 8, 3, 3], {"cpu.fft": 1.0}, padding=1)
    table({"avx9": [unpadded, padded]})
    known = measurements.table("avx9")
    assert known.expect(measurements.problem((1, 8, 7, 7), (8, 8, 3, 3), padding=1))[1] == [1]
    assert len(known.expect(measurements.problem((1, 8, 8, 9), (8, 8, 3, 3), padding=(0, 0)))[1]) == 2


@pytest.mark.parametrize("transform", ["cpu.fft", "cpu.cython_winograd", "cpu.opencv"])
def test_exact_leaves_transforms_out(table, transform):
    """OpenCV's among them, which is a library and transforms for large kernels alone."""
    table({"avx9": [[LAYER[0], {transform: 1.0, "cpu.shift": 2.0}]]})
    shapes = (1, 64, 56, 56), (64, 64, 3, 3)
    assert next(iter(impls.explain(*shapes, padding=1).expected)) == transform
    exact = impls.explain(*shapes, padding=1, exact=True)
    assert exact.implementation.name == "cpu.shift"
    assert transform not in exact.expected


def test_torch_has_a_time_where_transforms_alone_were_fast(table):
    table({"avx9": [[LAYER[0], {"cpu.fft": 1.0}]]})
    found = impls.explain((1, 64, 56, 56), (64, 64, 3, 3), padding=1, exact=True)
    assert (found.by, found.implementation.name) == ("shipped", "cpu.torch")


@needs_compiled
@pytest.mark.parametrize("exact", [False, True])
def test_every_measured_problem_is_decided_by_its_own_times(monkeypatch, exact):
    for processor in ("AuthenticAMD 25 1", "AuthenticAMD 25 17", "GenuineIntel 6 167"):
        monkeypatch.setattr(measurements, "processor", lambda processor=processor: processor)
        measurements.table.cache_clear()
        instructions = "avx2" if processor.endswith(" 1") else "avx512"
        monkeypatch.setattr(choice, "instruction_set", lambda instructions=instructions: instructions)
        known = measurements.table(instructions)
        for i, one in enumerate(known.problems[::3]):
            found = choice.choose(one, 1, exact, "shipped")
            own = [name for name in known.ratios(3 * i) if choice.computes(name, one, exact)]
            with case(processor, one):
                assert found.implementation.name == next(name for name in own if not isinstance(choice._load(name), str))
    measurements.table.cache_clear()


def test_the_table_that_comes_with_the_package_is_small():
    assert measurements.FILE.stat().st_size < 60_000
    assert measurements.FILE.parent.joinpath("auto.json").read_text(encoding="utf-8").count("\n") < 450


def test_the_runner_up_can_run_here(table, monkeypatch):
    table({"avx9": [entry([1, 8, 32, 32], [8, 8, 3, 3], {"cpu.shift": 1.0, "cpu.fft": 2.0, "cpu.windows": 2.5})]})
    there = choice._load
    monkeypatch.setattr(choice, "_load", lambda name: "it is gone" if name == "cpu.fft" else there(name))
    found = impls.explain((1, 8, 32, 32), (8, 8, 3, 3))
    assert (found.implementation.name, found.runner_up) == ("cpu.shift", "cpu.windows")


def no_room(*_):
    raise MemoryError("no memory for patches")


@pytest.mark.parametrize("convolve", [impls.conv2d, impls.load("cpu.auto")], ids=["impls.conv2d", "cpu.auto"])
def test_an_implementation_that_runs_out_of_memory_leaves_it_to_the_next(table, monkeypatch, convolve):
    table({"avx9": [entry([*X.shape], [*W.shape], {"im2col.strided": 1.0, "cpu.windows": 2.0, "cpu.shift": 2.5})]})
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
        monkeypatch.setattr(rules, "rule", lambda *_, rule=rule: rule)
        found = impls.explain((1, 64, 56, 56), (64, 64, 7, 7))
        assert {found.implementation.name, *(other.name for other in found.others)} == {*numpy}


def test_implementations_that_cannot_compute_it_are_skipped(table):
    best = {"cpu.scipy_ndimage": 1.0, "cpu.shift": 2.0}  # the first has stride 1 alone
    table({"avx9": [entry([1, 8, 32, 32], [8, 8, 3, 3], best)]})
    assert impls.explain((1, 8, 32, 32), (8, 8, 3, 3), stride=2).implementation.name == "cpu.shift"


@pytest.mark.parametrize(
    ("there", "name", "said"),
    [
        ({"avx9": "cpu.shift", ("avx9", "Maker 9 9"): "cpu.fft"}, "cpu.shift", "measured on box, "),  # its own
        ({("neon", HERE): "cpu.shift", ("avx9", "Maker 9 9"): "cpu.fft"}, "cpu.fft", "measured on other processors: box, "),
    ],
)
def test_the_table_of_this_processor_or_those_of_its_instruction_set(table, there, name, said):
    table({key: [[LAYER[0], {one: 1.0}]] for key, one in there.items()})
    found = impls.explain((1, 64, 56, 56), (64, 64, 3, 3), padding=1)
    assert found.implementation.name == name
    assert f"\n{said}" in str(found)


def test_what_a_processor_could_not_compute_is_known_from_others(table):
    own, other = {"cpu.shift": 1.0, "cpu.torch": 2.0, "cpu.fft": None}, {"cpu.shift": 2.0, "cpu.fft": 1.0}
    table({"avx9": [[LAYER[0], own]], ("avx9", "Maker 9 9"): [[LAYER[0], other]]})
    assert impls.explain((1, 64, 56, 56), (64, 64, 3, 3), padding=1).implementation.name == "cpu.fft"


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
    table({"avx9": [LAYER, FILTER]})
    assert str(impls.explain((1, 48, 60, 60), (64, 48, 3, 3), padding=1)).splitlines() == [
        "cpu.shift for input 1x48x60x60, weight 64x48x3x3, padding 2x2 in all, float32",
        "the runner-up is cpu.fft, expected to take 1.25 times as long",
        "the measured problems most like it, the nearest first, and the times over the fastest's:",
        "  input 1x64x56x56, weight 64x64x3x3, padding 2x2 in all, float32: cpu.shift 1, cpu.fft 1.25, cpu.torch 3",
        "  input 1x1x512x512, weight 1x1x3x3, padding 2x2 in all, float32: cpu.windows 1, cpu.torch 3, cpu.shift 3",
        "measured on box, commit 01234567, 2026-11-21",
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
    assert choice._time(microseconds * 1e-6) == text


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
