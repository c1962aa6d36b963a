"""im2col by recursion over the axes, with its sub-results kept or made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from impls.im2col.arguments import output_pixels
from impls.im2col.cpu import naive


def peel(
    image: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, fill: Any, keep: Callable[..., Any] | None = None
) -> np.ndarray:
    """Peel off the first axis: each of its lines is im2col of one axis less, and what a tap sees of them stands side by side.

    One axis is left to cpu.naive. keep: makes a function that remembers, functools.cache, of the one that makes a line's
    matrix; without it a line is made again for every tap and pixel of its axis.
    """
    if image.ndim == 1:
        return naive.im2col.unchecked(image, kernel, stride, padding, dilation, fill)

    def line(place: int | None) -> np.ndarray:
        inner = np.full_like(image[0], fill) if place is None else image[place]
        return peel(inner, kernel[1:], stride[1:], padding[1:], dilation[1:], fill, keep)

    if keep:
        line = keep(line)
    pixels = output_pixels(image.shape, kernel, stride, padding, dilation)[0]

    def seen(tap: int) -> np.ndarray:
        places = (p * stride[0] + tap * dilation[0] - padding[0] for p in range(pixels))
        return np.concatenate([line(i if 0 <= i < len(image) else None) for i in places], axis=1)

    return np.concatenate([seen(tap) for tap in range(kernel[0])])
