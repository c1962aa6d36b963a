"""Small helpers for implementations that work on CuPy arrays: for padded ones, as geometry.py has, and for raw kernels."""

from __future__ import annotations

import functools
import math
from typing import Any

import cupy
from cupy.lib.stride_tricks import as_strided

from impls.checks import Pair

WIDEST = 16  # bytes that a thread reads or writes at once
REGISTERS = 160  # of a thread's 255, for its sums, its weights and a row of pixels ...
OTHERS = 27  # ... and for everything else
MULTIPROCESSOR = 1 << 16  # registers that the threads of its blocks share


def pad(input: cupy.ndarray, padding: tuple[Pair, Pair]) -> cupy.ndarray:
    """Put zeros around the images of input (N, C, H, W); the array itself if there are none to put."""
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
    """conv2d of padded images by their patches, as the fallback for non-finite values."""
    view = windows(image, weight.shape[2:], stride, dilation)
    n, channels, p, q, r, s = view.shape
    view = view.reshape(n, groups, channels // groups, p, q, r, s)
    factors = weight.reshape(groups, -1, *weight.shape[1:])
    return cupy.einsum("ngcpqrs,gkcrs->ngkpq", view, factors).reshape(n, len(weight), p, q)


@functools.lru_cache(maxsize=1024)
def raw_kernel(source: str, name: str, dtype: str, **constants: Any) -> cupy.RawKernel:
    """A kernel for elements T with constants defined, one for each combination; compiled when it is first called."""
    head = [f"typedef {'float' if dtype == 'float32' else 'double'} T;"]
    return cupy.RawKernel("\n".join([*head, *(f"#define {key} {value}" for key, value in constants.items()), source]), name)


@functools.cache
def multiprocessors() -> int:
    """The number of multiprocessors of the current device."""
    return int(cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["multiProcessorCount"])


def at_once(array: cupy.ndarray) -> int:
    """How many elements may be read or written at once where a contiguous array begins, and after any multiple of that."""
    return math.gcd(WIDEST // array.itemsize, array.data.ptr // array.itemsize)


def or_null(array: cupy.ndarray | None) -> Any:
    """An array for a kernel, or the null pointer."""
    return cupy.uintp(0) if array is None else cupy.ascontiguousarray(array)


def even(count: int, most: int) -> int:
    """The size of each of the fewest parts, at most so large, that a count falls into evenly."""
    return -(-count // -(-count // most))
