"""The CuPy implementations without a GPU: their host code on NumPy, their kernels as C++."""

import itertools

import numpy as np
import pytest
from cases import case
from gpu_problems import DTYPES, LABELS, SETTINGS, judge, lying_anyhow, outside, whole_numbers
from gpu_stand_ins import Array, Place, cupy_on_numpy, on_numpy, replaced

import impls
from benchmarks.workloads import inputs
from benchmarks.workloads.problems import Problem
from impls import checks
from impls.contract import declaration

NAMES = [name for name in impls.names(device="cuda") if declaration(name)["arrays"] == "cupy" and "numba" not in name]
EXACT = [name for name in NAMES if declaration(name)["family"] not in ("fft", "winograd")]


@pytest.fixture(scope="module")
def load():
    """impls.load over the stand-ins: every file once."""
    with replaced(cupy_on_numpy()):
        loaded = {name: impls.load(name) for name in NAMES}
    return loaded.__getitem__


def test_the_names():
    ours = {"gpu.cupy_direct", "gpu.cupy_depthwise", "gpu.cupy_winograd"}
    assert {*ours, "gpu.cupy_fft", "gpu.cupy_ndimage", "gpu.cupy_shift", "im2col.cupy"} == set(NAMES)


# A kernel is compiled for every problem: in either dtype it is a proof, and else in one after the other.
both = pytest.mark.parametrize("both", [False, pytest.param(True, marks=pytest.mark.proof)])


def in_turn(cases, both):
    """Each case with both dtypes, or with one: (case, dtype)."""
    return itertools.product(cases, DTYPES) if both else zip(cases, itertools.cycle(DTYPES), strict=False)


@pytest.mark.slow
@both
@pytest.mark.parametrize("name", NAMES)
def test_problems(name, both, load):
    function, problems = load(name), [Problem.parse(label, dtype=dtype) for label, dtype in in_turn(LABELS, both)]
    within = [problem for problem in problems if not outside(declaration(name), problem)]
    assert within
    for problem in within:
        with case(problem.label, problem.dtype):
            judge(problem, function.family, lambda *arrays, problem=problem: on_numpy(function, *arrays, **problem.arguments))


@pytest.mark.slow
@both
@pytest.mark.parametrize("name", NAMES)
def test_bias_and_memory_in_any_order(name, both, load):
    function, called = load(name), 0
    for settings, dtype in in_turn(SETTINGS, both):
        input, weight, bias = whole_numbers(dtype, function.limits)
        if function.unsupported(input.shape, weight.shape, **settings):
            continue
        for start in (bias, None):
            expected = impls.load("cpu.loops")(input, weight, start, **settings)
            for turned, taps in itertools.product(lying_anyhow(input), lying_anyhow(weight)):
                start = None if start is None else start[::-1].copy()[::-1]
                with case(settings, dtype, turned.strides, taps.strides, start is None):
                    output = on_numpy(function, turned, taps, start, **settings)
                    assert output.dtype == dtype
                    assert output.flags.c_contiguous
                    if name in EXACT:
                        assert np.array_equal(output, expected)
                    else:
                        assert np.allclose(output, expected, rtol=0, atol=1e-2 if dtype == "float32" else 1e-10)
                called += 1
    assert called


@pytest.mark.parametrize("name", NAMES)
def test_the_arguments_are_left_alone(name, load):
    arrays = whole_numbers("float32", load(name).limits)
    copies = [array.copy() for array in arrays]
    on_numpy(load(name), *arrays, padding=1)
    assert all(map(np.array_equal, arrays, copies))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", NAMES)
def test_numbers_that_are_not_finite_stay_where_they_belong(name, bad, load):
    input, weight, bias = whole_numbers("float32", load(name).limits)
    weight[2] = 0  # zero times infinity is not a number
    input[1, -1, 3, 4] = bad
    with np.errstate(invalid="ignore"):
        output = on_numpy(load(name), input, weight, bias, padding=1)
        expected = impls.load("cpu.loops")(input, weight, bias, padding=1)
    assert np.array_equal(np.isfinite(output), np.isfinite(expected))
    assert np.isfinite(expected[0]).all()
    assert 0 < np.isnan(expected).sum() < expected[1].size
    assert np.allclose(output, expected, rtol=0, atol=0 if name in EXACT else 1e-2, equal_nan=True)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in EXACT])
def test_what_overflows_in_the_transform_alone_is_no_infinity(name, load):
    input = np.full((2, 1, 16, 16), 3e37, "float32")  # 12 of them are infinite in float32, 9 of them are not
    input[1] = 1
    weight = np.ones((1, 1, 3, 3), "float32")
    with np.errstate(over="ignore", invalid="ignore"):
        output = on_numpy(load(name), input, weight)
    assert np.allclose(output[0], 27e37)
    assert np.allclose(output[1], 9)


@pytest.mark.parametrize("name", NAMES)
def test_stand_in_refuses_what_cupy_refuses(name, load):
    input, weight, _ = whole_numbers("float32", load(name).limits)
    with pytest.raises(TypeError, match=r"^input must be a CuPy array, not ndarray: the implementation's to_device"):
        load(name)(input, weight)


@pytest.mark.parametrize("which", ["input", "weight", "bias"])
@pytest.mark.parametrize("name", NAMES)
def test_an_array_on_another_device_is_refused_before_a_kernel_reads_it(name, which, load):
    arrays = dict(zip(("input", "weight", "bias"), whole_numbers("float32", load(name).limits), strict=True))
    arrays = {one: array.view(Array) for one, array in arrays.items()}
    arrays[which].device = Place(1)
    said = rf"^{which} is on device 1, and the current one is 0: .* `with cupy\.cuda\.Device\(1\):`$"
    with pytest.raises(ValueError, match=said):
        load(name)(**arrays)


def test_stand_in_refuses_numpy_in_the_middle():
    cupy = cupy_on_numpy()["cupy"]
    array = cupy.asarray(np.ones(3))
    for wrong in (lambda: array + np.ones(3), lambda: cupy.multiply(array, np.ones(3)), lambda: np.pad(array, 1)):
        with pytest.raises((AssertionError, TypeError)):
            wrong()
    assert type(array[0] * 2) is type(array.sum()) is type(array)


@pytest.mark.parametrize("operation", ["conv2d", "conv_transpose2d", "conv2d_backward"])
def test_a_device_is_not_judged_by_the_memory_of_its_host(operation, monkeypatch):
    monkeypatch.setattr(checks, "UNASKED", 0)
    monkeypatch.setattr(checks, "free_memory", lambda: 0)
    problem = Problem.parse("n1c2h5w6k2r3s3")
    arrays = inputs.make(problem, operation)
    with replaced(cupy_on_numpy()):
        device = impls.load("gpu.cupy_direct", operation)
    on_numpy(device, *arrays)
    with pytest.raises(MemoryError, match=f"^{operation} of input .* and 0 bytes of memory are free"):
        impls.load("cpu.shift", operation)(*arrays)
