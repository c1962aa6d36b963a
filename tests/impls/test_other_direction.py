"""conv_transpose2d and conv2d_backward give the right answer, whatever the problem and however the arrays lie in memory."""

import contextlib
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cases import case
from convolutions import LAYOUTS, UNIT, layouts, repeated, spread
from gradients import (
    ANYHOW,
    BACKWARD,
    CASES,
    PLAIN,
    TRANSPOSE,
    backward,
    by_definition,
    by_torch,
    check,
    data,
    problems,
    results,
    transposed,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import READ_ONLY, tried

import impls

EVERY = [(operation, name) for operation in (TRANSPOSE, BACKWARD) for name in impls.names(operation, "cpu")]
each = pytest.mark.parametrize(("operation", "name"), EVERY, ids=map(" ".join, EVERY))
# Read-only arrays, for which Numba compiles anew.
each_read_only = pytest.mark.parametrize(
    ("operation", "name"),
    [pytest.param(*one, id=" ".join(one), marks=[pytest.mark.proof] * ("numba" in one[1])) for one in EVERY],
)


def load(operation, name):
    try:
        return impls.load(name, operation)
    except impls.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Compile what is compiled at the first call, outside of the examples, whose torch needs no second thread."""
    for dtype in UNIT:
        one = np.ones((1, 1, 1, 1), dtype)
        for operation, name in EVERY:
            with contextlib.suppress(impls.Unavailable):
                impls.load(name, operation)(*[one] * (2 if operation == TRANSPOSE else 3))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# Named cases


@each
def test_named_cases(operation, name):
    function = load(operation, name)
    named = {word: what for word, what in CASES.items() if what.operation == operation}
    for (word, what), dtype, whole in itertools.product(named.items(), UNIT, (True, False)):
        what.dtype = dtype
        with case(word, dtype):
            check(function, what, data(what, whole), whole)


# Memory


WRITEABLE = tuple(layout for layout in LAYOUTS if layout not in READ_ONLY)
SWEPT = [
    pytest.param(*pair, which, id=f"{' '.join(pair)} {words}", marks=[pytest.mark.proof] * (not tried(pair[1], which[0])))
    for pair in EVERY
    for words, which in {"writeable": WRITEABLE, "read-only": READ_ONLY}.items()
]


@pytest.mark.parametrize(("operation", "name", "which"), SWEPT)
def test_layouts(operation, name, which):
    function = load(operation, name)
    for what, layout in itertools.product(ANYHOW[operation], which):
        arrays = [None if array is None else LAYOUTS[layout](array) for array in data(what, whole=True)]
        with case(layout, vars(what)):
            check(function, what, arrays, whole=True)


@each
def test_repeated_memory(operation, name):
    for what in ANYHOW[operation]:
        number = np.dtype(what.dtype).type(3)
        same = [None if shape is None else np.broadcast_to(number, shape) for shape in what.shapes]
        check(load(operation, name), what, same, whole=True)


@each_read_only
def test_strides_of_zero(operation, name):
    what = ANYHOW[operation][0]
    arrays = data(what, whole=True)
    for axes in itertools.product((False, True), repeat=4):
        with case(axes):
            same = [None if array is None else repeated(array, axes) for array in arrays]
            check(load(operation, name), what, same, whole=True)


@each
def test_nothing_is_left_from_before(operation, name):
    """An unwritten result shows the old content of its memory: here the NaN of freed arrays of its size."""
    what = ANYHOW[operation][1]
    arrays = data(what, whole=True)
    for _ in range(10):
        rubbish = [np.full(part.shape, np.nan) for part in by_torch(operation, arrays, what.settings) for _ in range(3)]
        del rubbish
        check(load(operation, name), what, arrays, whole=True)


# Generated cases


@pytest.mark.parametrize("many", [False, pytest.param(True, marks=[pytest.mark.proof, pytest.mark.timeout(3600)])])
@each
def test_generated_cases(operation, name, many):
    function = load(operation, name)

    @settings(max_examples=1200 if many else 40, deadline=None)
    @given(
        what=problems(operation),
        layout=st.tuples(layouts(4), layouts(4), layouts(1 if operation == TRANSPOSE else 4)),
        whole=st.booleans(),
        seed=st.integers(0, 2**16),
    )
    def agrees(what, layout, whole, seed):
        arrays = data(what, whole, seed)
        arrays = [None if array is None else spread(array, *how) for array, how in zip(arrays, layout, strict=True)]
        check(function, what, arrays, whole)

    agrees()


@pytest.mark.parametrize("dtype", UNIT)
@each
def test_long_sums_stay_within_the_bounds(operation, name, dtype):
    what = {
        TRANSPOSE: transposed((1, 512, 4, 4), (512, 8, 4, 4), dtype=dtype, stride=2, padding=1),
        BACKWARD: backward((3, 2, 80, 90), (300, 2, 2, 3), dtype=dtype, padding=1),
    }[operation]
    check(load(operation, name), what, data(what, whole=False), whole=False)


# What the two have to do with each other and with conv2d

# Numba compiles for seconds for every other problem.
EXACT = ("cpu.shift", "cpu.cython_direct", "cpu.torch", pytest.param("cpu.numba_direct", marks=pytest.mark.proof))


@pytest.mark.parametrize("name", impls.names(TRANSPOSE, "cpu"))
@pytest.mark.parametrize("forward", EXACT)
def test_conv_transpose2d_is_the_adjoint_of_conv2d(forward, name):
    convolve, transpose = impls.load(forward), load(TRANSPOSE, name)

    @settings(max_examples=25, deadline=None)
    @given(what=problems(TRANSPOSE), seed=st.integers(0, 2**16))
    def adjoint(what, seed):
        what.dtype = "float64"
        y, weight, _ = data(what, True, seed)
        image = transpose(y, weight, **what.settings)
        x = np.random.default_rng(seed).integers(-8, 9, image.shape).astype("float64")
        plain = {key: value for key, value in what.settings.items() if key != "output_padding"}
        # A row or column that output_padding adds may be enough for another window: y has none there.
        seen = convolve(x, weight, **plain)[:, :, : y.shape[2], : y.shape[3]]
        assert np.vdot(seen, y) == np.vdot(x, image)

    adjoint()


@pytest.mark.parametrize("name", impls.names(BACKWARD, "cpu"))
@pytest.mark.parametrize("transpose", impls.names(TRANSPOSE, "cpu"))
def test_the_gradient_of_the_input_is_that_adjoint(transpose, name):
    adjoint, gradients = impls.load(transpose, TRANSPOSE), load(BACKWARD, name)

    @settings(max_examples=25, deadline=None)
    @given(what=problems(TRANSPOSE), seed=st.integers(0, 2**16))
    def same(what, seed):
        what.dtype = "float64"
        y, weight, _ = data(what, True, seed)
        image = adjoint(y, weight, **what.settings)
        plain = {key: value for key, value in what.settings.items() if key != "output_padding"}
        grad = np.zeros(impls.load("cpu.shift")(image, weight, **plain).shape)
        grad[:, :, : y.shape[2], : y.shape[3]] = y
        assert np.array_equal(gradients(grad, np.ones_like(image), weight, **plain)[0], image)

    same()


# Numbers that are none


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("dtype", UNIT)
@each
def test_nan_and_infinity_reach_what_they_enter_and_nothing_else(operation, name, dtype):
    function = load(operation, name)
    for plain in PLAIN[operation]:
        what = SimpleNamespace(**{**vars(plain), "dtype": dtype})
        clean = data(what, whole=True)
        for seed in range(9):
            random = np.random.default_rng(seed)
            arrays = [None if array is None else array.copy() for array in clean]
            array = arrays[seed % 2 if operation == TRANSPOSE else seed % 3]
            value = (np.nan, np.inf, -np.inf)[seed // 3]
            array.reshape(-1)[random.integers(0, array.size, 1 + seed % 2)] = value
            parts, expected = results(function(*arrays, **what.settings)), by_definition(what, arrays)
            for part, right in zip(parts, expected, strict=True):
                assert np.array_equal(part, right, equal_nan=True)


def test_the_definition_agrees_with_torch():
    for operation, cases in PLAIN.items():
        for what in cases:
            arrays = data(what, whole=True)
            for part, right in zip(by_definition(what, arrays), by_torch(operation, arrays, what.settings), strict=True):
                assert np.array_equal(part, right)
