"""The one place where the arguments of preprocess are checked, and where it is said what is wrong with a JPEG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any, NamedTuple

import numpy as np

from impls import checks
from impls.preprocess.jpeg import BadImage, shape

# Of ImageNet's pixels from 0 to 1, red, green and blue: https://docs.pytorch.org/vision/stable/models.html
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MAX_SIZE = 4096  # pixels of a patch's side


class Region(NamedTuple):
    """A rectangle of an image, in pixels."""

    top: int
    left: int
    height: int
    width: int


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
        images = _jpegs(jpegs)
        kernel = _weight(weight)
        found = _regions(regions, images)
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
    """Say in words which argument is outside `limits`, or None. Raises as a call would for arguments nobody supports.

    image_shape, region_shape: height and width in pixels.
    """
    checks.dtype_name(dtype, ("float32",))
    _size(size)
    _require_inside(0, Region(0, 0, *region_shape), image_shape)
    return checks.outside(limits, {"kernel": tuple(kernel), "dtype": "float32"})


def fit(region: Region, size: int) -> tuple[int, int]:
    """Height and width of the part of a patch that has the region's pixels."""
    longest = max(region.height, region.width)
    height, width = ((2 * side * size + longest) // (2 * longest) for side in (region.height, region.width))
    return max(1, height), max(1, width)


def _jpegs(jpegs: Any) -> list[bytes]:
    if isinstance(jpegs, (bytes, bytearray, str)) or not isinstance(jpegs, Sequence):
        raise TypeError(f"jpegs must be a list of bytes, not {type(jpegs).__name__}")
    if not len(jpegs):
        raise ValueError("jpegs is empty; a batch has at least one image")
    for i, jpeg in enumerate(jpegs):
        if not isinstance(jpeg, (bytes, bytearray)):
            raise TypeError(f"jpegs[{i}] must be the bytes of a JPEG, not {type(jpeg).__name__}")
    return [bytes(jpeg) for jpeg in jpegs]


def _regions(regions: Any, jpegs: list[bytes]) -> list[Region]:
    try:
        found = [Region(*map(index, region)) for region in regions]
    except TypeError:
        raise TypeError("regions must be rows of four integers: top, left, height, width") from None
    if len(found) != len(jpegs):
        raise ValueError(f"regions must have a row for each of the {len(jpegs)} images, not {len(found)}")
    for i, (region, jpeg) in enumerate(zip(found, jpegs, strict=True)):
        try:
            _require_inside(i, region, shape(jpeg))
        except BadImage as error:
            raise BadImage(f"jpegs[{i}] {error}") from None
    return found


def _require_inside(i: int, region: Region, image: tuple[int, int]) -> None:
    if min(region.height, region.width) < 1:
        raise ValueError(f"regions[{i}] must hold at least one pixel, not {region.height} x {region.width}")
    bottom, right = region.top + region.height, region.left + region.width
    if min(region.top, region.left) < 0 or bottom > image[0] or right > image[1]:
        raise ValueError(
            f"regions[{i}], rows {region.top} to {bottom} and columns {region.left} to {right}, lies outside its image of "
            f"{image[0]} x {image[1]} pixels"
        )


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
