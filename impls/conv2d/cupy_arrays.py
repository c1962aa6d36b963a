"""Small helpers for implementations that work on padded CuPy arrays, as geometry.py has them for NumPy's."""

from __future__ import annotations

import cupy
from cupy.lib.stride_tricks import as_strided

from impls.checks import Pair


def pad(input: cupy.ndarray, padding: tuple[Pair, Pair]) -> cupy.ndarray:
    """Put zeros around the images of input (N, C, H, W); the array itself where there are none to put."""
    return cupy.pad(input, ((0, 0), (0, 0), *padding)) if any(map(any, padding)) else input


def windows(image: cupy.ndarray, kernel: Pair, stride: Pair, dilation: Pair) -> cupy.ndarray:
    """View padded images (N, C, H, W) as their windows (N, C, P, Q, R, S), copying nothing."""
    # Not by CuPy's sliding_window_view, which waits for the device to check each of the window's sizes.
    sizes = tuple(
        (length - d * (taps - 1) - 1) // t + 1
        for length, taps, t, d in zip(image.shape[2:], kernel, stride, dilation, strict=True)
    )
    steps = image.strides[2:]
    apart = (t * step for t, step in zip(stride, steps, strict=True))
    within = (d * step for d, step in zip(dilation, steps, strict=True))
    return as_strided(image, (*image.shape[:2], *sizes, *kernel), (*image.strides[:2], *apart, *within))


def by_definition(image: cupy.ndarray, weight: cupy.ndarray, stride: Pair, dilation: Pair, groups: int) -> cupy.ndarray:
    """conv2d of padded images by their patches, for whoever meets numbers that his algorithm cannot carry."""
    view = windows(image, weight.shape[2:], stride, dilation)
    n, channels, p, q, r, s = view.shape
    view = view.reshape(n, groups, channels // groups, p, q, r, s)
    factors = weight.reshape(groups, -1, *weight.shape[1:])
    return cupy.einsum("ngcpqrs,gkcrs->ngkpq", view, factors).reshape(n, len(weight), p, q)
