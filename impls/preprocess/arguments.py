"""Checks the arguments of preprocess; decode_jpeg checks those that both have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from impls import checks
from impls.decode_jpeg.arguments import Region, require_inside, require_jpegs, require_regions, require_sizes

# Of ImageNet's pixels from 0 to 1, red, green and blue: https://docs.pytorch.org/vision/stable/models.html
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MAX_SIZE = 4096  # pixels of a patch's side


def checker(arrays: str, limits: Mapping[str, Any], unchecked: Callable[..., Any] = checks.together) -> Callable[..., Any]:
    """Make the check for one implementation, which calls `unchecked` with preprocess's arguments in one form.

    The form: jpegs as a list of bytes, regions as a list of Region, weight contiguous in float32, mean and std as float32
    arrays.
    """
    if arrays != "numpy":
        raise ValueError(f'arrays must be "numpy": preprocess takes and returns NumPy arrays, not those of {arrays}')
    checks.require_limits(limits, "kernel", "dtype")

    def preprocess(
        jpegs: Sequence[bytes],
        regions: Any,
        weight: Any,
        threshold: float = 0.0,
        size: int = 128,
        mean: Sequence[float] = MEAN,
        std: Sequence[float] = STD,
    ) -> Any:
        images = require_jpegs(jpegs)
        kernel = _weight(weight)
        found = require_regions(regions, require_sizes(images))
        if limits and (reason := checks.outside(limits, {"kernel": kernel.shape[2:], "dtype": "float32"})):
            raise NotImplementedError(reason)
        below = _triple("std", std)
        if not below.all() or (below < 0).any():
            raise ValueError(f"std must be positive, not {tuple(std)}")
        return unchecked(images, found, kernel, _number("threshold", threshold), _size(size), _triple("mean", mean), below)

    return preprocess  # by this name, Python's own message about a missing argument names the operation


def unsupported(
    limits: Mapping[str, Any],
    image_shape: tuple[int, int],
    region_shape: tuple[int, int],
    kernel: tuple[int, int] = (3, 3),
    size: int = 128,
    dtype: Any = "float32",
) -> str | None:
    """Return which argument is outside `limits`, or None. Raises as a call would for unsupported arguments.

    image_shape, region_shape: height and width in pixels.
    """
    checks.dtype_name(dtype, ("float32",))
    _size(size)
    require_inside(0, Region(0, 0, *region_shape), image_shape)
    return checks.outside(limits, {"kernel": tuple(kernel), "dtype": "float32"})


def fit(region: Region, size: int) -> tuple[int, int]:
    """Height and width of the part of a patch that has the region's pixels."""
    longest = max(region.height, region.width)
    height, width = ((2 * side * size + longest) // (2 * longest) for side in (region.height, region.width))
    return max(1, height), max(1, width)


def _weight(weight: Any) -> np.ndarray:
    checks.require_arrays("numpy", weight=weight)
    if weight.dtype != np.float32:
        raise TypeError(f"weight must be float32, not {weight.dtype}")
    if weight.ndim != 4 or weight.shape[:2] != (1, 3) or not (weight.shape[2] % 2 and weight.shape[3] % 2):
        raise ValueError(f"weight must have shape (1, 3, R, S) with odd R and S, not {weight.shape}")
    return np.ascontiguousarray(weight)


def _size(size: Any) -> int:
    try:
        size = index(size)
    except TypeError:
        raise TypeError(f"size must be an integer, not {size!r}") from None
    if not 1 <= size <= MAX_SIZE:
        raise ValueError(f"size must be from 1 to {MAX_SIZE}, not {size}")
    return size


def _number(name: str, value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {value!r}") from None
    if not np.isfinite(found):
        raise ValueError(f"{name} must be finite, not {value!r}")
    return found


def _triple(name: str, values: Any) -> np.ndarray:
    if np.shape(values) != (3,):
        raise ValueError(f"{name} must be three numbers, of red, green and blue, not {values!r}")
    return np.array([_number(name, value) for value in values], np.float32)
