"""Checks the arguments of im2col and normalises them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from operator import index
from typing import Any, NamedTuple

import numpy as np

from impls import checks

Sizes = tuple[int, ...]
MAX_RANK = 16  # a view of windows has two axes for each of the image's, and NumPy 1 no more than 32


class Geometry(NamedTuple):
    """Shapes and settings, one number an axis."""

    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    pixels: Sizes


def checker(arrays: str, limits: Mapping[str, Any], unchecked: Callable[..., Any] = checks.together) -> Callable[..., Any]:
    """Make the check for one implementation, which calls `unchecked` with im2col's arguments in one form.

    The form: kernel, stride, padding and dilation as tuples with a number for each axis, fill as a number of image's dtype.
    """
    checks.require_limits(limits, "rank", "dtype")
    fits = checks.belongs(arrays)

    def im2col(
        image: Any, kernel: Any, stride: int | Sizes = 1, padding: int | Sizes = 0, dilation: int | Sizes = 1, fill: float = 0
    ) -> Any:
        if not fits(image):
            checks.require_arrays(arrays, image=image)
        dtype = checks.dtype_name(image.dtype)
        shape = tuple(image.shape)
        found = geometry(shape, kernel, stride, padding, dilation)
        value = _fill(fill, dtype)
        if limits and (reason := checks.outside(limits, {"rank": len(shape), "dtype": dtype})):
            raise NotImplementedError(reason)
        if checks.asks(arrays, count := elements(shape, found), dtype):
            checks.require_memory(count * checks.ITEMSIZE[dtype], f"im2col of image {shape} and kernel {found.kernel}")
        (image,) = checks.aligned(arrays, image)
        return unchecked(image, found.kernel, found.stride, found.padding, found.dilation, value)

    return im2col  # by this name, Python's own message about a missing argument names the operation


def unsupported(
    limits: Mapping[str, Any],
    image_shape: Sizes,
    kernel: Any,
    stride: int | Sizes = 1,
    padding: int | Sizes = 0,
    dilation: int | Sizes = 1,
    fill: float = 0,
    dtype: Any = "float32",
) -> str | None:
    """Return which argument is outside `limits`, or None. Raises as a call would for unsupported arguments."""
    dtype = checks.dtype_name(dtype)
    geometry(tuple(image_shape), kernel, stride, padding, dilation)
    _fill(fill, dtype)
    return checks.outside(limits, {"rank": len(image_shape), "dtype": dtype})


def geometry(shape: Sizes, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Geometry:
    """Check shapes and settings against each other. Raises TypeError or ValueError."""
    if not 1 <= len(shape) <= MAX_RANK:
        raise ValueError(f"image must have 1 to {MAX_RANK} axes, not shape {shape}")
    if min(shape) < 1 or max(shape) > checks.MAX_INT32:
        raise ValueError(f"image must have from 1 to {checks.MAX_INT32} elements along each axis, not shape {shape}")
    kernels, strides, dilations = (
        _each_axis(name, value, len(shape), 1)
        for name, value in {"kernel": kernel, "stride": stride, "dilation": dilation}.items()
    )
    pads = _each_axis("padding", padding, len(shape), 0)
    pixels = output_pixels(shape, kernels, strides, pads, dilations)
    if min(pixels) < 1:
        spans = tuple(d * (taps - 1) + 1 for taps, d in zip(kernels, dilations, strict=True))
        raise ValueError(
            f"kernel {kernels} with dilation={dilations} covers {spans}, more than image {shape} with padding={pads} has"
        )
    return Geometry(kernels, strides, pads, dilations, pixels)


def output_pixels(shape: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    """How many windows there are along each axis, from arguments in their one form."""
    axes = zip(shape, kernel, stride, padding, dilation, strict=True)
    return tuple((size + 2 * pad - d * (taps - 1) - 1) // step + 1 for size, taps, step, pad, d in axes)


def elements(shape: Sizes, found: Geometry) -> int:
    """The elements of the padded image and of the matrix."""
    padded = math.prod(size + 2 * pad for size, pad in zip(shape, found.padding, strict=True))
    return padded + math.prod(found.kernel) * math.prod(found.pixels)


def _each_axis(name: str, value: Any, rank: int, minimum: int) -> Sizes:
    """One number for each axis. Raises TypeError or ValueError that names the argument."""
    try:
        found = tuple(index(one) for one in value) if isinstance(value, (tuple, list)) else (index(value),) * rank
    except TypeError:
        raise TypeError(f"{name} must be an integer or one for each axis, not {value!r}") from None
    if len(found) != rank:
        raise ValueError(f"{name} must be an integer or one for each of the image's {rank} axes, not {value!r}")
    if min(found) < minimum or max(found) > checks.MAX_INT32:
        raise ValueError(f"{name} must be from {minimum} to {checks.MAX_INT32}, not {value!r}")
    return found


def _fill(fill: Any, dtype: str) -> Any:
    """The value as a number of that dtype. Raises TypeError or ValueError."""
    if isinstance(fill, (bool, np.bool_)) or not isinstance(fill, Real):
        raise TypeError(f"fill must be a number, not {fill!r}")
    try:
        value = float(fill)
    except OverflowError:  # an integer, or a fraction of integers, has no largest
        raise ValueError(f"fill must be a number that {dtype} can hold; this one is too large") from None
    if math.isfinite(value) and abs(value) > float(np.finfo(dtype).max):
        raise ValueError(f"fill must be a number that {dtype} can hold, not {fill!r}")
    return np.dtype(dtype).type(value)
