"""The same call means the same to every implementation of conv_transpose2d and conv2d_backward: errors, inputs left alone."""

import warnings

import numpy as np
import pytest
from calls import call, ones, outcome

import impls

TRANSPOSE, BACKWARD = "conv_transpose2d", "conv2d_backward"
EVERY = [(operation, name) for operation in (TRANSPOSE, BACKWARD) for name in impls.names(operation, "cpu")]
each = pytest.mark.parametrize(("operation", "name"), EVERY, ids=map(" ".join, EVERY))


@pytest.fixture(scope="module")
def available():
    """Every CPU implementation that loads here, by operation and name."""
    found = {TRANSPOSE: {}, BACKWARD: {}}
    for operation, name in EVERY:
        try:
            found[operation][name] = impls.load(name, operation)
        except impls.Unavailable:
            continue
    return found


def load(operation, name):
    try:
        return impls.load(name, operation)
    except impls.Unavailable as reason:
        pytest.skip(str(reason))


X, W, B = ones(1, 6, 3, 4), ones(6, 4, 3, 3), ones(4)
J, G = ones(1, 4, 5, 6), ones(1, 6, 3, 4)  # conv2d's input and its output's gradient, for the same weight
SHAPES = ("input (1, 6, 3, 4)", "weight")


def both(name, value, error, text):
    """The same mistake in either operation."""
    return {
        f"transposed, {name} {value!r}": (TRANSPOSE, call(X, W, **{name: value}), error, [text]),
        f"gradient, {name} {value!r}": (BACKWARD, call(G, J, W, **{name: value}), error, [text]),
    }


# name: (operation, call, error, what its text contains)
BAD = {
    # What an array is
    "input a list": (TRANSPOSE, call(X.tolist(), W), TypeError, ["input must be a NumPy array, not list"]),
    "weight None": (TRANSPOSE, call(X, None), TypeError, ["weight must be a NumPy array, not NoneType"]),
    "bias a number": (TRANSPOSE, call(X, W, 0), TypeError, ["bias must be a NumPy array, not int"]),
    "gradient a list": (BACKWARD, call(G.tolist(), J, W), TypeError, ["grad_output must be a NumPy array, not list"]),
    "gradient None": (BACKWARD, call(None, J, W), TypeError, ["grad_output must be a NumPy array, not NoneType"]),
    "gradient's input None": (BACKWARD, call(G, None, W), TypeError, ["input must be a NumPy array, not NoneType"]),
    "gradient's weight None": (BACKWARD, call(G, J, None), TypeError, ["weight must be a NumPy array, not NoneType"]),
    # dtype
    "dtype int32": (
        TRANSPOSE,
        call(X.astype("i4"), W.astype("i4")),
        TypeError,
        ["dtype must be float32 or float64", "int32"],
    ),
    "dtype big-endian": (TRANSPOSE, call(X.astype(">f4"), W.astype(">f4")), TypeError, ["native byte order, not >f4"]),
    "dtype of gradients": (BACKWARD, call(*(a.astype("f2") for a in (G, J, W))), TypeError, ["dtype must be", "float16"]),
    "mixed": (TRANSPOSE, call(X, W.astype("f8")), TypeError, ["one dtype, not input float32, weight float64"]),
    "mixed bias": (TRANSPOSE, call(X, W, B.astype("f8")), TypeError, ["one dtype, not", "bias float64"]),
    "mixed gradient": (
        *(BACKWARD, call(G.astype("f8"), J, W), TypeError),
        ["grad_output, input and weight must have one dtype, not grad_output float64, input float32, weight float32"],
    ),
    "mixed gradient's weight": (BACKWARD, call(G, J, W.astype("f8")), TypeError, ["one dtype, not", "weight float64"]),
    # Shapes
    "input 3-d": (TRANSPOSE, call(X[0], W), ValueError, ["input must have shape (N, C, H, W), not (6, 3, 4)"]),
    "weight 3-d": (TRANSPOSE, call(X, W[0]), ValueError, ["weight must have shape (C, K/groups, R, S), not (4, 3, 3)"]),
    "input of nothing": (TRANSPOSE, call(X[:, :, :0], W), ValueError, ["input must have no", "not shape (1, 6, 0, 4)"]),
    "weight of nothing": (TRANSPOSE, call(X, W[:, :0]), ValueError, ["weight must have no", "not shape (6, 0, 3, 3)"]),
    "channels": (TRANSPOSE, call(X, W[:5]), ValueError, [*SHAPES, "(5, 4, 3, 3)", "C=6", "groups=1"]),
    "channels not split": (TRANSPOSE, call(X, W, groups=4), ValueError, [*SHAPES, "(6, 4, 3, 3)", "C=6", "groups=4"]),
    "bias too long": (TRANSPOSE, call(X, W, ones(6)), ValueError, ["bias must have shape (4,)", "not (6,)"]),
    "bias of one group": (TRANSPOSE, call(X, W, B, groups=2), ValueError, ["bias must have shape (8,)", "not (4,)"]),
    "gradient of another shape": (
        *(BACKWARD, call(G[:, :, :2], J, W), ValueError),
        [
            "grad_output must have the shape of conv2d's output, (1, 6, 3, 4)",
            "(1, 4, 5, 6)",
            "(6, 4, 3, 3)",
            "not (1, 6, 2, 4)",
        ],
    ),
    "gradient of another stride": (
        BACKWARD,
        call(G, J, W, stride=2),
        ValueError,
        ["output, (1, 6, 2, 2)", "not (1, 6, 3, 4)"],
    ),
    "gradient flat": (BACKWARD, call(G[0], J, W), ValueError, ["grad_output must have the shape", "not (6, 3, 4)"]),
    "gradient of no image": (BACKWARD, call(G[:0], J, W), ValueError, ["(1, 6, 3, 4)", "not (0, 6, 3, 4)"]),
    "gradient's input 3-d": (BACKWARD, call(G, J[0], W), ValueError, ["input must have shape (N, C, H, W)", "(4, 5, 6)"]),
    "gradient's groups": (BACKWARD, call(G, J, W, groups=2), ValueError, ["input (1, 4, 5, 6) and weight (6, 4, 3, 3)"]),
    "gradient's kernel": (BACKWARD, call(G, J[:, :, :2], W), ValueError, ["covers 3x3 pixels", "input (1, 4, 2, 6)"]),
    # What is left of the output
    "padding leaves nothing": (
        TRANSPOSE,
        call(X, W, padding=3),
        ValueError,
        ["padding=3 leaves", "-1x0", *SHAPES, "(6, 4, 3, 3)"],
    ),
    "padding leaves no column": (
        TRANSPOSE,
        call(X, W, padding=(0, 3)),
        ValueError,
        ["padding=(0, 3) leaves", "5x0", *SHAPES],
    ),
    # output_padding
    "more than the stride": (
        *(TRANSPOSE, call(X, W, output_padding=1), ValueError),
        ["output_padding must be smaller than stride or dilation, not 1 with stride=(1, 1) and dilation=(1, 1)"],
    ),
    "more on one axis": (
        *(TRANSPOSE, call(X, W, stride=(3, 2), output_padding=2), ValueError),
        ["output_padding must be smaller", "not 2 with stride=(3, 2)"],
    ),
    "output_padding -1": (
        TRANSPOSE,
        call(X, W, output_padding=-1),
        ValueError,
        ["output_padding must be at least 0, not -1"],
    ),
    "output_padding 0.5": (
        TRANSPOSE,
        call(X, W, output_padding=0.5),
        TypeError,
        ["output_padding must be an integer", "not 0.5"],
    ),
    # Padding in words
    **{
        f"padding {word}": (TRANSPOSE, call(X, W, padding=word), TypeError, ["padding must be an integer or a pair", word])
        for word in ("same", "valid", "full")
    },
    "gradient, padding full": (BACKWARD, call(G, J, W, padding="full"), ValueError, ['"valid" or "same", not \'full\'']),
    "gradient, same": (BACKWARD, call(G, J, W, padding="same", stride=2), ValueError, ['padding="same" needs stride=1']),
    # Numbers
    **both("stride", 0, ValueError, "stride must be at least 1, not 0"),
    **both("stride", (1, 1, 1), ValueError, "stride must be an integer or a pair of integers, not (1, 1, 1)"),
    **both("stride", "2", TypeError, "stride must be an integer or a pair of integers, not '2'"),
    **both("stride", 2**31, ValueError, "stride must be at most"),
    **both("dilation", [1, 0], ValueError, "dilation must be at least 1, not (1, 0)"),
    **both("dilation", 1.5, TypeError, "dilation must be an integer or a pair of integers, not 1.5"),
    **both("padding", -1, ValueError, "padding must be at least 0, not -1"),
    **both("padding", None, TypeError, "padding must be an integer or a pair of integers, not None"),
    **both("groups", 0, ValueError, "groups must be a positive integer, not 0"),
    **both("groups", (1, 1), TypeError, "groups must be a positive integer, not (1, 1)"),
    # The call itself
    "nothing": (TRANSPOSE, call(), TypeError, ["conv_transpose2d()", "'input'", "'weight'"]),
    "no weight": (BACKWARD, call(G, J), TypeError, ["conv2d_backward()", "'weight'"]),
    "misspelt": (TRANSPOSE, call(X, W, strides=2), TypeError, ["'strides'"]),
    "a bias for the gradient": (BACKWARD, call(G, J, W, bias=B), TypeError, ["'bias'"]),
}


@pytest.mark.parametrize("bad", BAD)
def test_the_same_mistake_gives_the_same_error(bad, available):
    operation, what, error, parts = BAD[bad]
    outcomes = [outcome(function, *what.arrays, **what.settings) for function in available[operation].values()]
    assert len(set(outcomes)) == 1
    assert outcomes[0][0] is error
    for part in parts:
        assert part in outcomes[0][1]


SHAPED = [bad for bad, (_, _, error, _) in BAD.items() if error is ValueError and "bias" not in bad]


@pytest.mark.parametrize("bad", SHAPED)
def test_unsupported_gives_the_same_error_as_the_call(bad, available):
    operation, what, *_ = BAD[bad]
    shapes = [array.shape for array in what.arrays]
    for function in available[operation].values():
        called = outcome(function, *what.arrays, **what.settings)
        assert outcome(function.unsupported, *shapes, **what.settings) == called


@each
def test_everything_is_supported(operation, name):
    shapes = (X.shape, W.shape) if operation == TRANSPOSE else (G.shape, J.shape, W.shape)
    assert load(operation, name).unsupported(*shapes, dtype="float64") is None
    with pytest.raises(TypeError, match="dtype must be float32 or float64 in native byte order, not float16"):
        load(operation, name).unsupported(*shapes, dtype="float16")


def limited(operation, limits):
    """An implementation with limits, which returns the arguments it is called with."""

    def function(*arguments):
        return arguments

    function.__name__ = operation
    return impls.wrap(
        "mine.own", impls.contract.implementation(device="cpu", family="f", summary="s", limits=limits)(function)
    )


def test_arguments_arrive_in_one_form():
    transpose, gradients = (limited(operation, {}) for operation in (TRANSPOSE, BACKWARD))
    assert transpose(X, W, B, [2, 3], True, (1, np.int64(2)), np.int8(1))[2:] == (B, (2, 3), (1, 1), (1, 2), 1, (1, 1))
    assert transpose(X, W, groups=2, dilation=2)[2:] == (None, (1, 1), (0, 0), (0, 0), 2, (2, 2))
    grad = ones(1, 6, 5, 6)
    assert gradients(grad, J, W, padding="same")[3:] == ((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    assert gradients(ones(1, 6, 4, 7), J, ones(6, 4, 2, 2), padding=[0, 1])[3:] == ((1, 1), ((0, 0), (1, 1)), (1, 1), 1)


def test_limits_refuse_before_any_work():
    for limits, settings in (
        ({"stride": 1}, {"stride": 2}),
        ({"output_padding": 0}, {"stride": 2, "output_padding": 1}),
        ({"kernel": (2, 2)}, {}),
        ({"dilation": 1}, {"dilation": (1, 2)}),
        ({"groups": 1}, {"groups": 2}),
        ({"dtype": "float64"}, {}),
    ):
        function = limited(TRANSPOSE, limits)
        reason = function.unsupported(X.shape, W.shape, **settings)
        assert reason.startswith(f"{next(iter(limits))}=")
        assert reason.endswith(" is supported")
        with pytest.raises(NotImplementedError) as refused:
            function(X, W, **settings)
        assert str(refused.value) == reason
    with pytest.raises(NotImplementedError, match=r"^stride=\(2, 2\): only stride=1 is supported$"):
        limited(BACKWARD, {"stride": 1})(ones(1, 6, 2, 2), J, W, stride=2)
    for operation in (TRANSPOSE, BACKWARD):
        with pytest.raises(ValueError, match=r"limits may name kernel, stride, .*, not padding"):
            limited(operation, {"padding": 0})


@each
def test_what_does_not_fit_in_memory_is_refused(operation, name, monkeypatch):
    monkeypatch.setattr(impls.checks, "free_memory", lambda: 10**9)
    one = np.broadcast_to(np.float32(1), (1, 1, 20_000, 20_000))
    tap = ones(1, 1, 1, 1)
    arrays, settings = ((one[:, :, :2, :2], tap), {"stride": 20_000}) if operation == TRANSPOSE else ((one, one, tap), {})
    with pytest.raises(MemoryError, match=rf"^{operation} of input .* and weight \(1, 1, 1, 1\) would take .* bytes"):
        load(operation, name)(*arrays, **settings)
    # The weight counts as well.
    one = np.broadcast_to(np.float32(1), (1, 20_000, 1, 1))
    wide = np.broadcast_to(np.float32(1), (20_000, 20_000, 1, 1))
    with pytest.raises(MemoryError, match=rf"^{operation} of input .* would take .* bytes"):
        load(operation, name)(*((one, wide) if operation == TRANSPOSE else (one, one, wide)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "name"),
    [pytest.param(*one, marks=[pytest.mark.proof] * (one[1] == "cpu.numba_direct")) for one in EVERY],  # compiles for each
    ids=map(" ".join, EVERY),
)
def test_inputs_are_only_read(operation, name):
    function = load(operation, name)
    random = np.random.default_rng(7)
    given = [
        random.integers(-4, 5, array.shape).astype("f4") for array in ((X, W, B) if operation == TRANSPOSE else (G, J, W))
    ]
    before = [array.copy() for array in given]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = function(*given)
        for array in given:
            array.flags.writeable = False
        again = function(*given)
    assert type(first) is type(again) is (np.ndarray if operation == TRANSPOSE else tuple)
    for part, same in zip(*([output] if operation == TRANSPOSE else output for output in (first, again)), strict=True):
        assert part.flags.writeable
        assert np.array_equal(part, same)
        assert not any(np.shares_memory(part, array) for array in given)
    for array, old in zip(given, before, strict=True):
        assert np.array_equal(array, old)


@pytest.mark.parametrize("name", impls.names(TRANSPOSE, "cpu"))
def test_positions_are_torchs(name):
    """groups before dilation, unlike conv2d."""
    function = load(TRANSPOSE, name)
    keywords = function(weight=W, input=X, bias=B, stride=2, padding=1, output_padding=1, groups=1, dilation=3)
    assert np.array_equal(function(X, W, B, 2, 1, 1, 1, 3), keywords)


@pytest.mark.parametrize("name", impls.names(BACKWARD, "cpu"))
def test_positions_are_conv2ds(name):
    function, grad = load(BACKWARD, name), ones(1, 6, 2, 2)
    keywords = function(weight=W[:, :2], input=J, grad_output=grad, stride=2, padding=1, dilation=2, groups=2)
    for part, same in zip(function(grad, J, W[:, :2], 2, 1, 2, 2), keywords, strict=True):
        assert np.array_equal(part, same)
