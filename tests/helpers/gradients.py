"""Transposed convolutions and gradients: problems, arrays, and results by their definition."""

import math
import warnings
from types import SimpleNamespace

import numpy as np
import torch
from convolutions import UNIT, calls
from hypothesis import strategies as st
from torch.nn import functional

from benchmarks.workloads import oracle

TRANSPOSE, BACKWARD = "conv_transpose2d", "conv2d_backward"


def transposed(input, weight, bias=False, dtype="float32", **settings):
    outputs = weight[1] * settings.get("groups", 1)
    shapes = input, weight, (outputs,) if bias else None
    return SimpleNamespace(operation=TRANSPOSE, shapes=shapes, dtype=dtype, settings=settings)


def backward(input, weight, dtype="float32", **settings):
    grad = by_torch(BACKWARD, [np.zeros(shape) for shape in (input, weight)], settings, forward=True)
    return SimpleNamespace(operation=BACKWARD, shapes=(grad.shape, input, weight), dtype=dtype, settings=settings)


def data(what, whole, seed=0):
    """The arrays of a call: small whole numbers, or fractions in [-1, 1]."""
    random = np.random.default_rng(seed)

    def fill(shape):
        return random.integers(-8, 9, shape) if whole else random.uniform(-1, 1, shape)

    return [None if shape is None else fill(shape).astype(what.dtype) for shape in what.shapes]


def by_torch(operation, arrays, settings, forward=False):
    """torch's own answers in float64, a list; whole numbers stay exact in it. forward: conv2d alone."""
    tensors = [None if array is None else torch.from_numpy(np.array(array, "float64", order="C")) for array in arrays]
    plain = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    if operation == TRANSPOSE:
        return [functional.conv_transpose2d(*tensors, **plain).numpy()]
    *grad, input, weight = tensors
    bias = torch.zeros(len(weight), dtype=torch.float64)
    for tensor in (input, weight, bias):
        tensor.requires_grad_()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using padding='same' with even kernel")
        output = functional.conv2d(input, weight, bias, **plain)
    return output if forward else [part.numpy() for part in torch.autograd.grad(output, (input, weight, bias), *grad)]


def by_definition(what, arrays):
    """The same from the definition alone: one product after the other, each index worked out."""
    stride, dilation = (np.broadcast_to(what.settings.get(key, 1), 2) for key in ("stride", "dilation"))
    parts = [np.zeros_like(part) for part in by_torch(what.operation, arrays, what.settings)]
    # A transposed convolution's input lies where conv2d has its output, and its output where conv2d has its input.
    small, weight = arrays[0], arrays[1 if what.operation == TRANSPOSE else 2]
    outputs, channels = len(weight) // what.settings.get("groups", 1), weight.shape[1]
    for n, k, p, q in np.ndindex(small.shape):
        if what.operation == BACKWARD:
            parts[2][k] += small[n, k, p, q]
        for c, r, s in np.ndindex(weight.shape[1:]):
            large = n, k // outputs * channels + c, *((p, q) * stride + (r, s) * dilation)
            parts[0][large] += small[n, k, p, q] * weight[k, c, r, s]
            if what.operation == BACKWARD:
                parts[1][k, c, r, s] += small[n, k, p, q] * arrays[1][large]
    return parts


def terms(what):
    """How many products each result sums."""
    groups = what.settings.get("groups", 1)
    if what.operation == TRANSPOSE:
        _, (c, _, *taps), _ = what.shapes
        return [c // groups * math.prod(taps)]
    (n, k, p, q), _, (_, _, *taps) = what.shapes
    return [k // groups * math.prod(taps), n * p * q, n * p * q]


def results(output):
    return output if isinstance(output, tuple) else (output,)


def check(function, what, arrays, whole):
    """Call and compare with torch, each result within its rounding."""
    given = [None if array is None else array.copy() for array in arrays]
    parts = results(function(*arrays, **what.settings))
    sizes = by_torch(what.operation, [None if array is None else np.abs(array) for array in arrays], what.settings)
    for part, expected, size, count in zip(
        parts, by_torch(what.operation, arrays, what.settings), sizes, terms(what), strict=True
    ):
        assert type(part) is np.ndarray
        assert (part.shape, part.dtype) == (expected.shape, what.dtype)
        assert part.flags.writeable
        assert not any(np.shares_memory(part, array) for array in arrays if array is not None)
        if whole and function.family != "library":
            assert np.array_equal(part, expected)
        l2, factor = oracle.bounds(SimpleNamespace(dtype=what.dtype, taps=count), function.family)
        error = np.abs(part - expected)
        assert np.linalg.norm(error) <= l2 * np.linalg.norm(size)
        assert np.all(error <= (factor + 1) * UNIT[what.dtype] * size)
    for array, before in zip(arrays, given, strict=True):
        assert array is before is None or np.array_equal(array, before)


CASES = {
    "plain": transposed((1, 2, 5, 6), (2, 3, 3, 3)),
    "one number": transposed((1, 1, 1, 1), (1, 1, 1, 1)),
    "one pixel, large kernel": transposed((1, 2, 1, 1), (2, 3, 5, 4), bias=True),
    "pointwise": transposed((2, 5, 6, 7), (5, 4, 1, 1), bias=True),
    "pointwise, strided, more": transposed((1, 3, 4, 5), (3, 2, 1, 1), stride=3, output_padding=2),
    "generator": transposed((2, 4, 4, 4), (4, 3, 4, 4), stride=2, padding=1),
    "up-convolution": transposed((1, 4, 5, 7), (4, 2, 2, 2), stride=2),
    "doubling": transposed((1, 2, 5, 4), (2, 2, 3, 3), stride=2, padding=1, output_padding=1, bias=True),
    "stride larger than kernel": transposed((1, 2, 3, 4), (2, 2, 2, 2), stride=5, output_padding=(4, 0)),
    "stride larger than output": transposed((1, 2, 1, 1), (2, 2, 2, 3), stride=(9, 8)),
    "stride huge": transposed((1, 2, 1, 1), (2, 2, 2, 3), stride=2**31 - 1),
    "dilation huge": transposed((1, 2, 3, 4), (2, 2, 1, 1), dilation=2**31 - 1),
    "everything cut off but one": transposed((1, 1, 3, 3), (1, 1, 3, 3), padding=2),
    "more padding than input": transposed((1, 1, 1, 1), (1, 1, 9, 11), padding=(4, 5)),
    "output_padding beyond every pixel": transposed((1, 1, 2, 2), (1, 1, 1, 1), dilation=4, output_padding=3, bias=True),
    "stride and dilation": transposed((1, 2, 5, 4), (2, 2, 3, 2), stride=2, dilation=3, padding=(1, 2)),
    "stride divides dilation": transposed((1, 1, 5, 4), (1, 1, 3, 3), stride=2, dilation=2, padding=1),
    "lists": transposed((1, 2, 4, 5), (2, 2, 3, 3), stride=[2, 1], padding=[1, 2], output_padding=[1, 0], dilation=[1, 2]),
    "one column": transposed((1, 2, 9, 1), (2, 2, 4, 1), stride=(2, 1)),
    "depthwise": transposed((2, 4, 5, 5), (4, 1, 3, 3), groups=4, stride=2, padding=1),
    "depthwise, multiplied": transposed((1, 3, 5, 5), (3, 2, 3, 3), groups=3, bias=True),
    "two groups": transposed((2, 4, 4, 5), (4, 3, 3, 3), groups=2, padding=1, bias=True),
    "many channels": transposed((1, 37, 3, 3), (37, 5, 3, 3), padding=1),
    "no image": transposed((0, 2, 5, 5), (2, 3, 3, 3), bias=True, padding=1),
    "no image, grouped": transposed((0, 4, 5, 5), (4, 2, 3, 3), groups=2, stride=2),
    "no image, depthwise": transposed((0, 35, 5, 5), (35, 1, 3, 3), groups=35, stride=2, output_padding=1),
    "gradient: plain": backward((1, 2, 7, 9), (3, 2, 3, 3)),
    "gradient: one number": backward((1, 1, 1, 1), (1, 1, 1, 1)),
    "gradient: pointwise": backward((2, 5, 6, 7), (4, 5, 1, 1)),
    "gradient: pointwise, strided, padded": backward((1, 3, 7, 8), (2, 3, 1, 1), stride=2, padding=2),
    "gradient: kernel as large as the image": backward((2, 3, 5, 4), (2, 3, 5, 4)),
    "gradient: kernel larger than the image": backward((1, 2, 2, 3), (2, 2, 5, 6), padding=2),
    "gradient: kernel larger, dilated": backward((1, 2, 3, 3), (2, 2, 3, 3), padding=3, dilation=4),
    "gradient: windows that see no pixel": backward((1, 1, 2, 2), (2, 1, 2, 2), padding=6, dilation=5),
    "gradient: pixels no window sees": backward((1, 2, 11, 13), (2, 2, 2, 2), stride=5),
    "gradient: stride larger than image": backward((1, 2, 4, 5), (2, 2, 3, 3), stride=(9, 8), padding=1),
    "gradient: stride huge": backward((1, 2, 4, 5), (2, 2, 3, 3), stride=2**31 - 1),
    "gradient: stride and dilation": backward((1, 2, 12, 11), (2, 2, 3, 2), stride=2, dilation=3, padding=(1, 2)),
    "gradient: valid": backward((1, 2, 6, 5), (2, 2, 2, 3), padding="valid", stride=2),
    "gradient: same": backward((1, 2, 6, 5), (2, 2, 3, 5), padding="same"),
    "gradient: same, even kernel": backward((1, 2, 6, 5), (2, 2, 2, 4), padding="same"),
    "gradient: same, even, dilated": backward((1, 2, 6, 5), (2, 2, 2, 4), padding="same", dilation=(2, 3)),
    "gradient: same, kernel larger": backward((1, 2, 2, 3), (2, 2, 6, 7), padding="same"),
    "gradient: wide rows": backward((1, 1, 2, 201), (1, 1, 2, 33), padding=(0, 16)),
    "gradient: depthwise": backward((2, 4, 6, 6), (4, 1, 3, 3), groups=4, padding=1),
    "gradient: depthwise, multiplied": backward((1, 3, 6, 6), (6, 1, 3, 3), groups=3),
    "gradient: groups that narrow": backward((1, 6, 9, 9), (2, 3, 3, 3), groups=2, stride=2, padding=1, dilation=2),
    "gradient: many channels": backward((1, 37, 3, 3), (5, 37, 3, 3), padding=1),
    "gradient: many images": backward((67, 1, 5, 5), (2, 1, 3, 3)),
    "gradient: no image": backward((0, 2, 5, 5), (3, 2, 3, 3), padding=1),
    "gradient: no image, depthwise": backward((0, 35, 5, 5), (35, 1, 3, 3), groups=35, stride=2),
    "gradient: no image, grouped": backward((0, 4, 5, 5), (4, 2, 3, 3), groups=2, padding="same"),
}


ANYHOW = {
    TRANSPOSE: [
        transposed((2, 4, 5, 6), (4, 3, 3, 2), bias=True, padding=1),
        transposed((2, 4, 5, 6), (4, 2, 3, 3), bias=True, dtype="float64", stride=2, padding=1, dilation=2, groups=2),
        transposed((1, 1, 5, 6), (1, 1, 1, 1)),
    ],
    BACKWARD: [
        backward((2, 4, 5, 6), (4, 4, 3, 2), padding=1),
        backward((2, 4, 5, 6), (4, 2, 3, 3), dtype="float64", stride=2, padding=(1, 2), dilation=2, groups=2),
        backward((1, 1, 5, 6), (1, 1, 2, 2), padding="same"),
    ],
}


@st.composite
def problems(draw, operation):
    """Any call of the operation with a small answer, within what torch can do."""
    if operation == BACKWARD:
        what = draw(calls({}))
        return backward(what.input, what.weight, what.dtype, **what.arguments)

    def pair(numbers):
        equal = numbers[:1] * 2 == numbers
        return draw(st.sampled_from((numbers, list(numbers), *numbers[: int(equal)])))

    sizes, kernel, stride, dilation = (
        draw(st.tuples(*[st.integers(1, most)] * 2)) for most in (6, 4, draw(st.integers(1, 4)), draw(st.integers(1, 3)))
    )
    axes = list(zip(sizes, kernel, stride, dilation, strict=True))
    more = tuple(draw(st.integers(0, max(step, d) - 1)) for _, _, step, d in axes)
    whole = [(size - 1) * step + d * (taps - 1) + 1 + extra for (size, taps, step, d), extra in zip(axes, more, strict=True)]
    padding = tuple(draw(st.integers(0, min(4, (length - 1) // 2))) for length in whole)
    groups, channels, outputs = (draw(st.integers(1, 3)) for _ in range(3))
    return transposed(
        (draw(st.sampled_from((1, 2, 3, 0))), groups * channels, *sizes),
        (groups * channels, outputs, *kernel),
        draw(st.booleans()),
        draw(st.sampled_from(sorted(UNIT))),
        stride=pair(stride),
        padding=pair(padding),
        output_padding=pair(more),
        groups=groups,
        dilation=pair(dilation),
    )


PLAIN = {
    TRANSPOSE: [
        transposed((2, 4, 3, 4), (4, 1, 3, 2), groups=2),
        transposed((1, 2, 2, 9), (2, 2, 2, 3), stride=(2, 3), dilation=2),
        transposed((1, 3, 2, 20), (3, 1, 2, 3)),
    ],
    BACKWARD: [
        backward((2, 4, 4, 5), (4, 2, 3, 2), groups=2),
        backward((1, 2, 9, 20), (2, 2, 2, 3), stride=(2, 3), dilation=2),
        backward((1, 1, 3, 40), (2, 1, 2, 3)),
    ],
}
