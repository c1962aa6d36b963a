"""The same call means the same to every implementation: errors, empty batches, inputs left as they were."""

import contextlib
import itertools
import warnings

import numpy as np
import pytest
import torch
from calls import arrays, call, ones, outcome
from cases import case
from drop_in import DROP_INS, NAMES, load
from sweeps import each, swept

import impls

pytestmark = pytest.mark.usefixtures("compiled_once")
COMPILED_FOR_EACH = ("cpu.torch_compile", "cpu.numba_direct")  # compile for seconds for each case: tried among the proofs


@pytest.fixture(scope="module")
def available():
    """Every CPU implementation that loads here, and the drop-ins, by name."""
    found = {}
    for name in NAMES:
        with contextlib.suppress(pytest.skip.Exception):
            found[name] = load(name)
    return found


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.proof)], ids=["quick", "torch_compile too"])
def called(request, available):
    """Those that take good calls too; torch.compile compiles for seconds for each, and does so among the proofs."""
    return {name: function for name, function in available.items() if request.param or name != "cpu.torch_compile"}


X, W, B = ones(1, 4, 5, 6), ones(6, 4, 3, 3), ones(6)
BIG = X.astype(">f4")
SHAPES = ("input", "(1, 4, 5, 6)", "weight")

# name: (call, error, what its text contains)
BAD = {
    # What an array is
    "input a list": (call(X.tolist(), W), TypeError, ["input must be a NumPy array, not list: numpy.asarray(input) is one"]),
    "input a tensor": (call(torch.ones(X.shape), W), TypeError, ["NumPy array, not Tensor: input.numpy(force=True) is one"]),
    "weight a parameter": (call(X, torch.nn.Conv2d(4, 6, 3).weight), TypeError, ["weight.numpy(force=True) is one"]),
    "bias a half tensor": (call(X, W, torch.ones(6, dtype=torch.bfloat16)), TypeError, ["bias.numpy(force=True) is one"]),
    "input None": (call(None, W), TypeError, ["input must be a NumPy array, not NoneType"]),
    "input a number": (call(1.0, W), TypeError, ["input must be a NumPy array, not float"]),
    "input a NumPy number": (call(np.float32(1), W), TypeError, ["input must be a NumPy array, not float32"]),
    "input a memoryview": (call(memoryview(X), W), TypeError, ["input must be a NumPy array, not memoryview"]),
    "input a masked array": (call(np.ma.masked_array(X), W), TypeError, ["not MaskedArray: input.filled(0) is one"]),
    "weight a list": (call(X, W.tolist()), TypeError, ["weight must be a NumPy array, not list"]),
    "weight None": (call(X, None), TypeError, ["weight must be a NumPy array, not NoneType"]),
    "bias a list": (call(X, W, [1.0] * 6), TypeError, ["bias must be a NumPy array, not list"]),
    "bias a number": (call(X, W, 0), TypeError, ["bias must be a NumPy array, not int"]),
    "bias False": (call(X, W, False), TypeError, ["bias must be a NumPy array, not bool"]),
    # dtype
    **{
        f"dtype {dtype}": (
            call(X.astype(dtype), W.astype(dtype)),
            TypeError,
            ["dtype must be float32 or float64", f"{dtype}: convert to one of them"],
        )
        for dtype in ("int32", "int64", "uint8", "float16", "complex64", "bool", "object", ">f4", ">f8")
    },
    "dtype longdouble": (
        call(X.astype("g"), W.astype("g")),
        TypeError,
        ["dtype must be float32 or float64", "float128"],
    ),
    "mixed f4 f8": (call(X, W.astype("f8")), TypeError, ["one dtype, not input float32, weight float64"]),
    "mixed f8 f4": (call(X.astype("f8"), W), TypeError, ["one dtype, not input float64, weight float32"]),
    "mixed bias": (
        call(X, W, B.astype("f8")),
        TypeError,
        ["one dtype, not input float32, weight float32, bias float64"],
    ),
    "mixed int": (call(X, W.astype("i4")), TypeError, ["one dtype, not input float32, weight int32: convert to one"]),
    "mixed byte order": (call(BIG, W), TypeError, ["one dtype, not input >f4, weight float32"]),
    # Number of dimensions
    "input 0-d": (call(np.array(1, "f4"), W), ValueError, ["input must have shape (N, C, H, W), not ()"]),
    "input 2-d": (
        call(X[0, 0], W),
        ValueError,
        ["input must have shape (N, C, H, W), not (5, 6): input[None, None] is a batch"],
    ),
    "input 3-d": (
        call(X[0], W),
        ValueError,
        ["input must have shape (N, C, H, W), not (4, 5, 6): input[None] is a batch of one image"],
    ),
    "input 5-d": (call(X[None], W), ValueError, ["input must have shape (N, C, H, W), not (1, 1, 4, 5, 6)"]),
    "weight 2-d": (call(X, W[0, 0]), ValueError, ["weight must have shape (K, C/groups, R, S), not (3, 3)"]),
    "weight 3-d": (call(X, W[0]), ValueError, ["weight must have shape (K, C/groups, R, S), not (4, 3, 3)"]),
    "weight 5-d": (call(X, W[None]), ValueError, ["weight must have shape (K, C/groups, R, S), not (1, 6, 4, 3, 3)"]),
    # Bias
    **{
        f"bias {shape}": (call(X, W, ones(*shape)), ValueError, ["bias must have shape (6,)", f"not {shape}"])
        for shape in ((), (0,), (1,), (4,), (5,), (7,), (6, 1), (1, 6), (1, 6, 1, 1))
    },
    # Channels and groups
    "channels too few": (call(X, ones(6, 3, 3, 3)), ValueError, [*SHAPES, "(6, 3, 3, 3)", "groups=1"]),
    "channels too many": (call(X, ones(6, 8, 3, 3)), ValueError, [*SHAPES, "(6, 8, 3, 3)", "groups=1"]),
    "channels not split": (call(X, W, groups=2), ValueError, [*SHAPES, "(6, 4, 3, 3)", "groups=2"]),
    "C not a multiple": (call(X, ones(6, 1, 3, 3), groups=3), ValueError, [*SHAPES, "groups=3", "C=4"]),
    "K not a multiple": (call(X, ones(6, 1, 3, 3), groups=4), ValueError, [*SHAPES, "groups=4", "K=6"]),
    "groups more than C": (call(X, ones(8, 1, 3, 3), groups=8), ValueError, [*SHAPES, "(8, 1, 3, 3)", "groups=8"]),
    **{
        f"groups {value!r}": (
            call(X, W, groups=value),
            ValueError if isinstance(value, int) else TypeError,
            [f"groups must be a positive integer, not {value!r}"],
        )
        for value in (0, -1, 1.5, "2", None, (1, 1))
    },
    # Sizes beyond 32 bits
    "input too wide": (
        call(np.broadcast_to(X[:, :, :, :1], (1, 4, 5, 2**31)), W),
        ValueError,
        ["no side of more than 2147483647 pixels", "(1, 4, 5, 2147483648)"],
    ),
    "input too high": (call(np.broadcast_to(X[:, :, :1], (1, 4, 2**40, 6)), W), ValueError, ["2147483647 pixels"]),
    # Sizes of zero, but for the batch
    **{
        f"input {shape}": (call(ones(*shape), W, padding=3), ValueError, ["input", f"not shape {shape}"])
        for shape in ((1, 0, 5, 6), (1, 4, 0, 6), (1, 4, 5, 0), (0, 4, 0, 6), (0, 0, 0, 0))
    },
    **{
        f"weight {shape}": (call(X, ones(*shape)), ValueError, ["weight", f"not shape {shape}"])
        for shape in ((0, 4, 3, 3), (6, 0, 3, 3), (6, 4, 0, 3), (6, 4, 3, 0))
    },
    # Kernels larger than the padded input
    "kernel too high": (call(X, ones(6, 4, 6, 3)), ValueError, [*SHAPES, "(6, 4, 6, 3)", "6x3", "padding=0"]),
    "kernel too wide": (call(X, ones(6, 4, 3, 7)), ValueError, [*SHAPES, "(6, 4, 3, 7)", "3x7", "padding=0"]),
    "kernel too high, padded": (call(X, ones(6, 4, 8, 3), padding=1), ValueError, [*SHAPES, "8x3", "padding=1"]),
    "kernel too wide, padded": (call(X, ones(6, 4, 3, 9), padding=(4, 1)), ValueError, [*SHAPES, "padding=(4, 1)"]),
    "kernel too high, dilated": (call(X, W, dilation=(3, 1)), ValueError, [*SHAPES, "dilation=(3, 1)", "7x3"]),
    "kernel too wide, dilated": (call(X, W, dilation=[1, 3]), ValueError, [*SHAPES, "dilation=(1, 3)", "3x7"]),
    "kernel too high, valid": (call(X, ones(6, 4, 6, 3), padding="valid"), ValueError, [*SHAPES, "padding=valid"]),
    "kernel too high, strided": (call(X, ones(6, 4, 6, 3), stride=2), ValueError, [*SHAPES, "6x3"]),
    "kernel too high, no image": (call(X[:0], ones(6, 4, 6, 3)), ValueError, ["(0, 4, 5, 6)", "6x3"]),
    # Padding
    **{
        f"padding {value!r}": (call(X, W, padding=value), ValueError, [f"padding must be at least 0, not {shown}"])
        for value, shown in ((-1, "-1"), ((0, -1), "(0, -1)"), ([-2, 0], "(-2, 0)"))
    },
    **{
        f"padding {value!r}": (
            call(X, W, padding=value),
            ValueError,
            ["padding must be an integer, a pair,", f"not {value!r}"],
        )
        for value in ("SAME", "full", "", "same ", "1")
    },
    **{
        f'padding "same", stride {value}': (
            call(X, W, padding="same", stride=value),
            ValueError,
            ['padding="same" needs stride=1', f"not stride={shown}"],
        )
        for value, shown in ((2, "(2, 2)"), ((1, 2), "(1, 2)"), ([3, 1], "(3, 1)"))
    },
    # Stride and dilation
    **{
        f"{name} {value!r}": (call(X, W, **{name: value}), ValueError, [f"{name} must be at least 1, not {shown}"])
        for name in ("stride", "dilation")
        for value, shown in ((0, "0"), (-1, "-1"), ((1, 0), "(1, 0)"), ([0, 1], "(0, 1)"))
    },
    # What a number and a pair are
    **{
        f"{name} {value!r}": (call(X, W, **{name: value}), ValueError, [f"{name} must be an integer or a pair", "not "])
        for name in ("stride", "padding", "dilation")
        for value in ((), (1,), (1, 1, 1), [1], [1, 1, 1, 1])
    },
    **{
        f"{name} {value!r}": (call(X, W, **{name: value}), TypeError, [f"{name} must be an integer or a pair", "not "])
        for name in ("stride", "padding", "dilation")
        for value in (1.5, None, 1j, b"same", (1, 1.5), ("1", 1), ((1, 1), (1, 1)), range(2))
    },
    **{
        f"{name} '2'": (call(X, W, **{name: "2"}), TypeError, [f"{name} must be an integer or a pair", "not '2'"])
        for name in ("stride", "dilation")
    },
}
OF_THE_CALL = {
    "nothing": (call(), TypeError, ["'input'", "'weight'"]),
    "no weight": (call(X), TypeError, ["'weight'"]),
    "misspelt": (call(X, W, strides=2), TypeError, ["'strides'"]),
    "too many": (call(X, W, None, 1, 0, 1, 1, 1), TypeError, ["arguments"]),
    "twice": (call(X, W, input=X), TypeError, ["'input'"]),
}
BAD |= OF_THE_CALL


def test_the_same_mistake_gives_the_same_error(available):
    for bad, (what, error, parts) in BAD.items():
        outcomes = {name: outcome(function, *what.arrays, **what.settings) for name, function in available.items()}
        expected = outcomes["cpu.loops"]
        with case(bad):
            if bad in OF_THE_CALL:  # in Python's own words, by which a method has one argument more than a function
                for name in DROP_INS:
                    kind, text = outcomes.pop(name)
                    assert kind is error
                    assert all(part in text for part in parts)
            assert outcomes == dict.fromkeys(outcomes, expected)
            assert expected[0] is error
            for part in parts:
                assert part in expected[1]


def test_unsupported_gives_the_same_error_as_the_call(available):
    judged = {bad: what for bad, (what, error, _) in BAD.items() if error is ValueError and "bias" not in bad}
    assert judged
    for (bad, what), (name, function) in itertools.product(judged.items(), available.items()):
        shapes = [array.shape for array in what.arrays]
        with case(bad, name):
            called = outcome(function, *what.arrays, **what.settings)
            assert outcome(function.unsupported, *shapes, **what.settings) == called


def test_a_mistake_comes_before_a_limit(available):
    for name, function in available.items():
        with case(name):
            with pytest.raises(ValueError, match="more than input"):
                function(X, ones(6, 4, 9, 9), stride=3)
            with pytest.raises(ValueError, match="bias must have shape"):
                function(X, W, ones(2), stride=2, dilation=2)


@pytest.mark.parametrize("name", ["stride", "padding", "dilation", "groups"])
def test_a_good_call_does_not_excuse_a_bad_one(name, called):
    good = {"padding": 0}.get(name, 1)
    for implementation, function in called.items():
        with case(implementation):
            function(X, W, **{name: good})
            with pytest.raises((TypeError, ValueError), match=f"^{name} must be"):
                function(X, W, **{name: float(good)})


@pytest.mark.parametrize("name", ["stride", "padding", "dilation", "groups"])
def test_errors_name_the_argument_whatever_it_is(name):
    for value in ({1: 1}, {1}, [[1], [1]], bytearray(b"same"), np.array(["1"])):
        with pytest.raises((TypeError, ValueError), match=f"^{name} must be"):
            impls.load("cpu.loops")(X, W, **{name: value})


@pytest.mark.parametrize(
    "settings",
    [
        {"stride": np.int64(1), "padding": np.uint8(2), "dilation": (np.int8(1), 1)},
        {"stride": [1, 1], "padding": [1, 2], "dilation": [1, 1]},
        {"padding": True},
        {"padding": (False, True)},
        {"padding": 0, "groups": np.array(1)},
        {"groups": True},
    ],
    ids=str,
)
def test_unusual_values_mean_the_same_everywhere(settings, called):
    outcomes = {name: outcome(function, X, W, **settings) for name, function in called.items()}
    assert outcomes == dict.fromkeys(outcomes, outcomes["cpu.loops"])


@pytest.mark.parametrize("name", ["stride", "dilation"])
def test_numbers_too_large_mean_the_same_everywhere(name, available):
    weight = ones(6, 4, 1, 1)
    outcomes = {
        key: outcome(function, X, weight, **{name: 2**70})
        for key, function in available.items()
        if name not in function.limits
    }
    assert outcomes == dict.fromkeys(outcomes, outcomes["cpu.loops"])


def test_groups_may_be_a_numpy_integer():
    weight = ones(6, 2, 3, 3)
    loops = impls.load("cpu.loops")
    assert np.array_equal(loops(X, weight, groups=np.int64(2)), loops(X, weight, groups=2))


# Good calls

ORDER = ("stride", "padding", "dilation", "groups")
SETTINGS = {
    "plain": {},
    "stride": {"stride": (2, 3)},
    "padding": {"padding": (2, 1)},
    "same": {"padding": "same"},
    "dilation": {"dilation": 2, "padding": 2},
    "groups": {"groups": 2},
    "all": {"stride": 2, "padding": 3, "dilation": (2, 1), "groups": 2},
}


def supported(function, which, dtype="float32"):
    """The arrays of each of the settings that an implementation supports: [(word, settings, arrays)]."""
    made = [(word, SETTINGS[word], arrays(SETTINGS[word], dtype)) for word in which]
    found = [
        (word, settings, given)
        for word, settings, given in made
        if not function.unsupported(*(array.shape for array in given[:2]), **settings)
    ]
    if not found:
        pytest.skip("a kernel of 3x2 is beyond its limits")
    return found


@swept(SETTINGS, proofs=COMPILED_FOR_EACH)
def test_an_empty_batch_gives_an_empty_output(name, which):
    function = load(name)
    for dtype in ("float32", "float64"):
        for word, settings, (input, weight, bias) in supported(function, which, dtype):
            whole = function(input, weight, bias, **settings)
            for nothing in (input[:0], input[::-1][:0], np.empty((0, *input.shape[1:]), dtype, "F")):
                for start in (bias, None):
                    output = function(nothing, weight, start, **settings)
                    with case(word, dtype, nothing.strides, start is None):
                        assert output.shape == (0, *whole.shape[1:])
                        assert output.dtype == dtype


@swept(SETTINGS, proofs=COMPILED_FOR_EACH)
def test_inputs_are_only_read(name, which):
    function = load(name)
    for word, settings, given in supported(function, which):
        before = [array.copy() for array in given]
        with case(word), warnings.catch_warnings():
            warnings.simplefilter("error")
            output = function(*given, **settings)
            for array in given:
                array.flags.writeable = False
            again = function(*given, **settings)
            assert type(output) is type(again) is np.ndarray
            assert output.dtype == again.dtype == "float32"
            assert output.flags.writeable
            assert np.array_equal(output, again)
            for array, old in zip(given, before, strict=True):
                assert np.array_equal(array, old)
                assert not np.shares_memory(output, array)


@each(proofs=COMPILED_FOR_EACH)
def test_a_pointwise_identity_is_still_a_new_array(name):
    function, input = load(name), np.arange(12, dtype="float64").reshape(1, 1, 3, 4)
    if reason := function.unsupported(input.shape, (1, 1, 1, 1)):
        pytest.skip(reason)
    output = function(input, np.ones((1, 1, 1, 1)))
    assert np.array_equal(np.rint(output), input)
    output[:] = -1
    assert input[0, 0, 0, 1] == 1


@swept(SETTINGS, proofs=COMPILED_FOR_EACH)
def test_positions_and_keywords_are_one(name, which):
    function = load(name)
    for word, settings, (input, weight, bias) in supported(function, which, "float64"):
        values = [{"stride": 1, "padding": 0, "dilation": 1, "groups": 1, **settings}[key] for key in ORDER]
        keywords = function(weight=weight, input=input, bias=bias, **settings)
        with case(word):
            assert np.array_equal(function(input, weight, bias, *values), keywords)
            assert np.array_equal(function(input, weight, None, *values) + bias[:, None, None], keywords)


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_numpys_texts_are_texts(padding, available):
    text = np.str_(padding)
    assert np.array_equal(impls.conv2d(X, W, padding=text), impls.conv2d(X, W, padding=padding))
    assert str(impls.explain(X, W, padding=text)) == str(impls.explain(X, W, padding=padding))
    for name, function in available.items():
        with case(name):
            assert function.unsupported(X.shape, W.shape, padding=text) == function.unsupported(
                X.shape, W.shape, padding=padding
            )
