"""Weights packed once: prepare() gives what a call gives, and the same errors for the same mistakes."""

import copy as copying

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packages import EINSUM, python

import impls
from impls.contract import implementation, wrap

SUMS = impls.load("cpu.shift").unchecked
X, W = np.arange(50, dtype="float32").reshape(1, 2, 5, 5), np.arange(36, dtype="float32").reshape(2, 2, 3, 3)


def packing(limits=None):
    """An implementation that can pack its weights, and the list of arguments it was asked to pack."""
    asked = []

    @implementation(device="cpu", family="direct", summary="sums", limits=limits)
    def conv2d(*arguments):
        return SUMS(*arguments)

    def prepare(weight, *arguments):
        asked.append((weight, *arguments))
        packed = weight.copy()
        return lambda input: SUMS(input, packed, *arguments)

    return wrap("mine.packing", conv2d, prepare), asked


@st.composite
def problems(draw):
    """Input, weight and keyword arguments that fit each other."""
    groups, channels, outputs = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    taps, dilation = draw(st.tuples(st.integers(1, 3), st.integers(1, 3))), draw(st.integers(1, 2))
    stride = draw(st.sampled_from([1, 2, (1, 2)]))
    padding = draw(st.sampled_from([0, 1, (2, 0), "valid", *["same"] * (stride == 1)]))
    dtype = draw(st.sampled_from(["float32", "float64"]))
    numbers = np.random.default_rng(0)
    input = numbers.random((draw(st.integers(0, 2)), groups * channels, 7, 6)).astype(dtype)
    weight = numbers.random((groups * outputs, channels, *taps)).astype(dtype)
    bias = numbers.random(len(weight)).astype(dtype) if draw(st.booleans()) else None
    return input, weight, {"bias": bias, "stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


@given(problems())
@settings(max_examples=60, deadline=None)
def test_a_packed_weight_gives_what_a_call_gives(problem):
    input, weight, arguments = problem
    mine, asked = packing()
    convolve = mine.prepare(weight, **arguments)
    np.testing.assert_array_equal(convolve(input), mine(input, weight, **arguments))
    np.testing.assert_array_equal(convolve(input[:0]), mine(input[:0], weight, **arguments))
    ((packed, bias, stride, padding, dilation, groups),) = asked  # once, and in one form
    assert np.array_equal(packed, weight)
    assert packed is not weight
    assert (bias is None) if arguments["bias"] is None else np.array_equal(bias, arguments["bias"])
    assert [type(value) for value in (*stride, *dilation, *padding[0], *padding[1], groups)] == [int] * 9


@pytest.mark.parametrize("name", ["cpu.cython_packed", "cpu.cython_winograd", None])
def test_a_weight_and_a_bias_that_change_later_change_nothing(name):
    function = impls.load(name) if name else packing()[0]
    weight, bias = W.copy(), np.ones(2, "float32")
    convolve = function.prepare(weight, bias, padding="same")
    expected = convolve(X)
    weight[:], bias[:] = 0, np.nan
    np.testing.assert_array_equal(convolve(X), expected)
    np.testing.assert_array_equal(copying.deepcopy(convolve)(X), expected)


@pytest.mark.parametrize(
    ("weight", "arguments"),
    [
        (W.tolist(), {}),
        (W[0], {}),
        (W.astype(int), {}),
        (W[:, :, :0], {}),
        (W, {"bias": np.ones(3, "float32")}),
        (W, {"bias": [1, 2]}),
        (W, {"stride": 0}),
        (W, {"stride": "2"}),
        (W, {"padding": -1}),
        (W, {"padding": "full"}),
        (W, {"padding": "same", "stride": 2}),
        (W, {"dilation": 0}),
        (W, {"dilation": -3}),
        (W, {"dilation": (1, 2, 3)}),
        (W, {"dilation": "x"}),
        (W, {"groups": 0}),
        (W, {"groups": 1.5}),
        (W, {"groups": "1"}),
    ],
    ids=lambda value: " ".join(map(str, value.items())) if isinstance(value, dict) else str(np.shape(value)),
)
def test_a_mistake_is_told_when_the_weight_is_packed_in_the_words_of_a_call(weight, arguments):
    mine, asked = packing()
    with pytest.raises((TypeError, ValueError)) as called:
        mine(X.astype(getattr(weight, "dtype", X.dtype)), weight, **arguments)
    with pytest.raises(called.type) as packed:
        mine.prepare(weight, **arguments)
    assert str(packed.value) == str(called.value)
    assert asked == []


def test_channels_that_do_not_fit_the_groups():
    mine, _ = packing()
    with pytest.raises(ValueError, match=r"weight \(2, 2, 3, 3\) do not fit groups=3"):
        mine.prepare(W, groups=3)


def test_what_is_outside_the_limits_is_not_packed():
    mine, asked = packing({"stride": 1})
    with pytest.raises(NotImplementedError, match="only stride=1 is supported"):
        mine.prepare(W, stride=2)
    assert asked == []


@pytest.mark.parametrize(
    "input", [X[0], X[:, :1], X.astype("float64"), X[:, :, :2], X.tolist()], ids=lambda x: str(np.shape(x))
)
def test_a_mistake_in_the_input_is_that_of_a_call(input):
    mine, _ = packing()
    with pytest.raises((TypeError, ValueError)) as called:
        mine(input, W)
    with pytest.raises(called.type) as packed:
        mine.prepare(W)(input)
    assert str(packed.value) == str(called.value)


PREPARE = '''

def prepare(weight, bias, stride, padding, dilation, groups):
    """Pack nothing."""
    packed = weight.copy()
    return lambda input: conv2d.unchecked(input, packed, bias, stride, padding, dilation, groups)
'''


def test_a_file_that_packs_and_one_that_does_not(copy):
    (copy / "conv2d/cpu/einsum.py").write_text(EINSUM)
    (copy / "conv2d/cpu/packing.py").write_text(EINSUM + PREPARE)
    found = python(
        """
        import impls
        import numpy as np
        x, w = np.arange(100.0).reshape(1, 2, 5, 10), np.arange(36.0).reshape(2, 2, 3, 3)
        plain, packed = impls.load("cpu.einsum"), impls.load("cpu.packing").prepare(w, stride=2)
        print(json.dumps([plain.prepare, np.array_equal(packed(x), plain(x, w, stride=2))]))
        """,
        copy.parent,
    )
    assert found == [None, True]
