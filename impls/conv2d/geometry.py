"""Small helpers for implementations that work on padded NumPy arrays."""

from __future__ import annotations

import math

import numpy as np

from impls import checks
from impls.checks import Pair
from impls.conv2d import arguments


def empty(input, weight, stride, padding, dilation, out):
    """An array for the output, arguments as decorated functions get them: `out` if it is given."""
    if out is not None:
        return out
    return np.empty(arguments.output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)


def pad(input: np.ndarray, padding: tuple[Pair, Pair]) -> np.ndarray:
    """Put zeros around the images of input (N, C, H, W); the array itself if there are none to put."""
    return np.pad(input, ((0, 0), (0, 0), *padding)) if np.any(padding) else input


def windows(input: np.ndarray, kernel: Pair, stride: Pair, dilation: Pair) -> np.ndarray:
    """View padded input (N, C, H, W) as its windows (N, C, P, Q, R, S), copying nothing."""
    spans = tuple(d * (size - 1) + 1 for size, d in zip(kernel, dilation, strict=True))
    view = np.lib.stride_tricks.sliding_window_view(input, spans, axis=(2, 3))
    return view[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def require_patches(input: np.ndarray, kernel: Pair, pixels: Pair) -> None:
    """Raise MemoryError if the patch matrix of all images, N C R S P Q elements, does not fit in memory."""
    n, c = input.shape[:2]
    count = n * c * math.prod(kernel) * math.prod(pixels) * input.itemsize
    checks.require_memory(count, f"the patch matrix of input {input.shape}")


def add_bias(output: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Add bias (K,) to every pixel of output (N, K, P, Q), in place."""
    if bias is not None:
        output += bias[:, None, None]
    return output


def by_definition(input, weight, bias, stride, padding, dilation, groups, *, out=None):
    """conv2d by windows and products in place, as the fallback for non-finite values.

    A transform spreads a NaN or infinity over outputs that do not see it, and may overflow where the sum does not.
    Arguments as decorated functions get them. Extra memory: the products of one output channel of one image.
    """
    view = windows(pad(input, padding), weight.shape[2:], stride, dilation)
    n, (k, channels) = len(view), weight.shape[:2]
    output = empty(input, weight, stride, padding, dilation, out)
    with np.errstate(invalid="ignore", over="ignore"):
        for i, j in np.ndindex(n, k):
            first = j // (k // groups) * channels
            np.einsum("cpqrs,crs->pq", view[i, first : first + channels], weight[j], out=output[i, j])
        return add_bias(output, bias)


def if_finite(output, input, weight, bias, stride, padding, dilation, groups):
    """The output of a transform, filled anew by the definition if not all of it is finite."""
    if np.isfinite(output).all():
        return output
    return by_definition(input, weight, bias, stride, padding, dilation, groups, out=output)
