"""Convolutions: problems, arrays in any memory layout, and how an output is checked against torch."""

import math
import warnings
from types import SimpleNamespace

import numpy as np
import torch
from hypothesis import strategies as st
from torch.nn import functional

from benchmarks.workloads import oracle
from benchmarks.workloads.problems import Problem

INEXACT = {"library", "winograd", "fft", "auto"}  # families that round whole numbers, or may


UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}


def call(input, weight, bias=False, dtype="float32", **arguments):
    """One call without its data: shapes, whether there is a bias, dtype, and the other arguments."""
    return SimpleNamespace(input=input, weight=weight, bias=bias, dtype=dtype, arguments=arguments)


def data(what, whole, seed=0):
    """Input, weight and bias (or None) of a call: small whole numbers, or fractions in [-1, 1]."""
    random = np.random.default_rng(seed)

    def fill(shape):
        values = random.integers(-8, 9, shape) if whole else random.uniform(-1, 1, shape)
        return values.astype(what.dtype)

    return fill(what.input), fill(what.weight), fill(what.weight[:1]) if what.bias else None


def by_torch(input, weight, bias, arguments):
    """torch's own answer in float64; whole numbers stay exact in it."""
    tensors = [None if array is None else torch.from_numpy(array.astype("float64")) for array in (input, weight, bias)]
    plain = {key: tuple(value) if isinstance(value, list) else value for key, value in arguments.items()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using padding='same' with even kernel")
        return functional.conv2d(*tensors, **plain).numpy()


def check(function, what, arrays, whole):
    """Call and compare with torch and, where it knows such a problem, with the oracle: was it asked?"""
    input, weight, bias = arrays
    output = function(input, weight, bias, **what.arguments)
    expected = by_torch(input, weight, bias, what.arguments)
    assert type(output) is np.ndarray
    assert (output.shape, output.dtype) == (expected.shape, what.dtype)
    if whole and function.family not in INEXACT:
        assert np.array_equal(output, expected)
    # Higham's bound for each output, and the oracle's for the norm; taken of |input| |weight|, since sums that
    # cancel look inexact.
    taps = math.prod(what.weight[1:])
    sizes = by_torch(*(None if array is None else np.abs(array) for array in arrays), what.arguments)
    l2, factor = oracle.bounds(SimpleNamespace(dtype=what.dtype, taps=taps), function.family)
    error = np.abs(output - expected)
    norm = np.linalg.norm(sizes)
    reach = 0.0
    if function.family in ("fft", *oracle.TILED):  # every pixel has a part in the rounding, also one that no window sees
        reach = np.linalg.norm(input) * np.abs(weight).sum(axis=(1, 2, 3)).max()
        norm = max(norm, reach)
    assert np.linalg.norm(error) <= l2 * norm
    if math.isfinite(factor):
        assert np.all(error <= (factor + 1) * UNIT[what.dtype] * oracle.shared(function.family, sizes, reach))
    problem = as_problem(what)
    # Of a handful of outputs that are no whole numbers all may cancel.
    if problem is not None and (whole or problem.outputs >= 64):
        assert problem.output_shape == output.shape
        oracle.compare(problem, function.family, oracle.reference(problem, input, weight), output)
        return True
    return False


def as_problem(what):
    """The call as a problem, or None where problems cannot say it: a bias, "same", strides that differ."""
    arguments = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, **what.arguments}
    if arguments["padding"] == "valid":
        arguments["padding"] = 0
    stride, padding, dilation = (
        tuple(value) if isinstance(value, tuple | list) else (value, value)
        for value in (arguments[key] for key in ("stride", "padding", "dilation"))
    )
    if what.bias or padding[0] == "same" or len({*stride}) > 1 or len({*dilation}) > 1:
        return None
    n, c, h, w = what.input
    k, _, r, s = what.weight
    more = {"stride": stride[0], "padding": padding, "dilation": dilation[0], "groups": arguments["groups"]}
    return Problem(n, c, h, w, k, r, s, **more, dtype=what.dtype)


def field(array):
    """A field of a record: strides that are no multiple of the item's size."""
    records = np.zeros(array.shape, [("value", array.dtype), ("rest", "u1", 3)])
    records["value"] = array
    return records["value"]


def shifted(array):
    """An address that is no multiple of the item's size."""
    memory = np.zeros(array.nbytes + 1, "u1")
    copy = memory[1:].view(array.dtype).reshape(array.shape)
    copy[:] = array
    return copy


def spread(array, order=None, steps=None):
    """The same values with axes in another order in memory and every step-th element used; NaN lies between them."""
    order, steps = order or tuple(range(array.ndim)), steps or (1,) * array.ndim
    memory = np.full([array.shape[axis] * abs(steps[axis]) for axis in order], np.nan, array.dtype)
    view = memory[tuple(slice(None, None, steps[axis]) for axis in order)].transpose(np.argsort(order))
    view[:] = array
    return view


def repeated(array, axes):
    """The array's first numbers along some axes in place of the others, by strides of zero; axes: a bool for each."""
    first = tuple(slice(1) if zero else slice(None) for zero in axes[: array.ndim])
    return np.broadcast_to(array[first], array.shape)


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "channels last": lambda array: spread(array, (0, 2, 3, 1)[: array.ndim] if array.ndim == 4 else (0,)),
    "transposed images": lambda array: array.swapaxes(-1, -2).copy().swapaxes(-1, -2) if array.ndim == 4 else array,
    "batch last": lambda array: spread(array, (1, 2, 3, 0) if array.ndim == 4 else (0,)),
    "every second": lambda array: spread(array, steps=(2,) * array.ndim),
    "backwards": lambda array: spread(array, steps=(-1,) * array.ndim),
    "every third, backwards": lambda array: spread(array, steps=(-3,) * array.ndim),
    "backwards along sides of one": lambda array: array[tuple(slice(None, None, -1 if n == 1 else 1) for n in array.shape)],
    "upside down": lambda array: array[..., ::-1].copy()[..., ::-1],
    "inside a frame": lambda array: np.pad(array, 1, constant_values=np.nan)[(slice(1, -1),) * array.ndim],
    "read-only": lambda array: (array.flags.__setattr__("writeable", False), array)[1],
    "read-only, backwards": lambda array: np.broadcast_to(spread(array, steps=(-2,) * array.ndim), array.shape),
    "unaligned": shifted,
    "field of a record": field,
}


@st.composite
def calls(draw, limits):
    """Any call whose answer is small enough for Python loops, within an implementation's limits."""

    def pair(least, most):
        number = st.integers(least, most)
        return st.one_of(number, st.tuples(number, number), st.tuples(number, number).map(list))

    def among(argument, strategy):
        only = limits.get(argument)
        return draw(strategy if only is None else st.sampled_from(sorted(only)) if isinstance(only, set) else st.just(only))

    def sides(only):
        return st.tuples(*[st.integers(1, 4) if only is None else st.sampled_from(sorted(only))] * 2)

    groups = among("groups", st.integers(1, 3))
    stride = among("stride", pair(1, 4) if draw(st.booleans()) else st.sampled_from((1, (1, 1))))
    dilation = among("dilation", pair(1, 3) if draw(st.booleans()) else st.just(1))
    if apart := limits.get("dilation/stride"):
        fitting = [(step, far) for step in range(1, 5) for far in range(1, 4) if far / step in apart]
        stride, dilation = zip(*(draw(st.sampled_from(fitting)) for _ in range(2)), strict=True)
    kernel = draw(sides(only) if isinstance(only := limits.get("kernel"), set | None) else st.just(only))
    words = ("valid", "same", "same") if stride in (1, (1, 1)) else ("valid",)
    padding = draw(pair(0, 4) if draw(st.booleans()) else st.sampled_from(words))
    steps = dilation if isinstance(dilation, tuple | list) else (dilation, dilation)
    spans = [step * (taps - 1) + 1 for step, taps in zip(steps, kernel, strict=True)]
    if padding == "same":
        least = 1, 1
    else:
        pads = {"valid": (0, 0)}.get(padding, padding) if isinstance(padding, str) else padding
        pads = pads if isinstance(pads, tuple | list) else (pads, pads)
        least = [max(1, span - 2 * pad) for span, pad in zip(spans, pads, strict=True)]
    size = [low + draw(st.integers(0, 6)) for low in least]
    channels, outputs = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    return call(
        (draw(st.sampled_from((1, 2, 3, 0))), groups * channels, *size),
        (groups * outputs, channels, *kernel),
        bias=draw(st.booleans()),
        dtype=among("dtype", st.sampled_from(sorted(UNIT))),
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )


def layouts(dimensions):
    """Arguments for spread(): any order of the axes, any small steps."""
    steps = st.tuples(*[st.sampled_from((1, 1, 2, -1, -2))] * dimensions)
    return st.tuples(st.permutations(range(dimensions)).map(tuple), steps)
