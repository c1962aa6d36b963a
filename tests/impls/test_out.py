"""out=, an array for the output: of implementations, of packed weights and of the drop-in; and what is wrong with one."""

import itertools

import drop_in
import numpy as np
import pytest
from cases import case
from choices import W, X

import impls
from impls.conv2d import arguments

IMAGES = np.random.default_rng(1).random((2, 8, 10, 12), np.float32)
KERNEL, BIAS = np.random.default_rng(2).random((4, 8, 3, 3), np.float32), np.arange(8, dtype=np.float32)
DEPTHWISE = KERNEL.reshape(32, 1, 3, 3)[:8]


def marked(name):
    """Numba compiles for seconds, a form of cpu.numba_direct for each case, and torch's compiler for a minute."""
    marks = [pytest.mark.slow] * ("numba" in name)
    if name in ("cpu.numba_direct", "cpu.torch_compile"):
        marks = [pytest.mark.proof]
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", map(marked, drop_in.NAMES))
def test_the_output_is_written_into_an_array(name):
    found = drop_in.load(name)
    for dtype, bias, settings in itertools.product(
        ["f4", "f8"], [None, BIAS], [{}, {"padding": 1}, {"groups": 2}, {"groups": 8}]
    ):
        weight = {2: KERNEL[:, :4], 8: DEPTHWISE}.get(settings.get("groups"), KERNEL)
        arrays = [one if one is None else one[: len(weight)].astype(dtype) for one in (IMAGES, weight, bias)]
        if found.unsupported(*(one.shape for one in arrays[:2]), dtype=str(arrays[0].dtype), **settings):
            continue
        with case(dtype, bias is None, settings):
            expected = found(*arrays, **settings)
            out = np.full_like(expected, np.nan, order="C")
            assert found(*arrays, **settings, out=out) is out
            np.testing.assert_array_equal(out, expected)
            if found.prepare:
                convolve = found.prepare(*arrays[1:], **settings)
                out[...] = np.nan
                assert convolve(arrays[0], out=out) is out
                np.testing.assert_array_equal(out, convolve(arrays[0]))


@pytest.mark.parametrize("name", ["cpu.cython_direct", "cpu.cython_packed", "cpu.cython_winograd"])
def test_kernels_fill_the_output_that_they_get(name):
    found = drop_in.load(name)
    out = np.empty((2, 4, 8, 10), np.float32)
    form = IMAGES, KERNEL, None, (1, 1), ((0, 0), (0, 0)), (1, 1), 1
    assert found.unchecked(*form, out=out) is out


def test_values_that_are_not_finite_are_written_as_well():
    """Where Winograd's kernel leaves the output to the definition."""
    found = drop_in.load("cpu.cython_winograd")
    images = IMAGES.copy()
    images[0, 0, 3, 4] = np.nan
    out = np.empty((2, 4, 8, 10), np.float32)
    assert found(images, KERNEL, out=out) is out
    assert np.isnan(out).sum() == 4 * 9


GOOD = np.empty((1, 1, 1, 1), np.float32)
LOCKED = GOOD.copy()
LOCKED.flags.writeable = False
UNALIGNED = np.frombuffer(bytearray(5), np.uint8)[1:].view(np.float32).reshape(1, 1, 1, 1)
WRONG = [
    (np.empty((1, 1, 1, 2), np.float32), ValueError, r"out must have the output's shape \(1, 1, 1, 1\), not \(1, 1, 1, 2\)"),
    (GOOD[0], ValueError, "out must have the output's shape"),
    (GOOD.astype("f8"), TypeError, "out must have the arrays' dtype float32, not float64"),
    ([[[[0.0]]]], TypeError, "out must be a NumPy array, not list"),
    (np.ma.zeros((1, 1, 1, 1), np.float32), TypeError, "out must be a NumPy array, not Masked"),
    (LOCKED, ValueError, "out must be writable, aligned and contiguous in C's order"),
    (UNALIGNED, ValueError, "out must be writable, aligned and contiguous in C's order"),
    (X[:, :1, :1, :1], ValueError, "out and input must not share memory"),
    (W[:, :1, :1, :1], ValueError, "out and weight must not share memory"),
]


@pytest.mark.parametrize(
    "call", [impls.conv2d, impls.load("cpu.shift"), drop_in.in_python], ids=["drop-in", "shift", "Python"]
)
@pytest.mark.parametrize(("out", "error", "said"), WRONG)
def test_an_array_that_the_output_cannot_be_written_into(call, out, error, said):
    with pytest.raises(error, match=said):
        call(X, W, out=out)


def test_an_output_in_another_order():
    with pytest.raises(ValueError, match="contiguous in C's order"):
        impls.conv2d(IMAGES, KERNEL, out=np.empty((2, 4, 8, 10), np.float32, order="F"))


def test_the_bias_is_no_place_for_the_output():
    bias = np.ones(1, np.float32)
    with pytest.raises(ValueError, match="out and bias must not share memory"):
        impls.conv2d(X, W, bias, out=bias.reshape(1, 1, 1, 1))


def test_where_memory_runs_out_the_next_implementation_writes_it():
    def none(*_, out):
        raise MemoryError

    checked = arguments.checker("numpy", {}, impls.load("cpu.cython_direct").unchecked, lambda *_: none)
    out = np.empty((2, 4, 8, 10), np.float32)
    assert checked(IMAGES, KERNEL, out=out) is out
    np.testing.assert_allclose(out, impls.load("cpu.shift")(IMAGES, KERNEL), rtol=1e-4)
