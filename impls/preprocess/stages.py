"""Cropping, resizing, marking and pasting in array functions, for the implementations that are made of them.

xp: the library whose arrays they are, NumPy or CuPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from impls.preprocess.arguments import Region


def crop(pixels: Any, region: Region) -> Any:
    """The region's pixels, a view."""
    top, left, height, width = region
    return pixels[top : top + height, left : left + width]


def resize(xp: Any, pixels: Any, height: int, width: int) -> Any:
    """Bilinear, in float32: pixels (H, W, 3) to (height, width, 3), first down the columns, then along the rows."""
    before, after, share = _neighbours(xp, pixels.shape[0], height)
    rows = pixels[before] * (1 - share)[:, None, None] + pixels[after] * share[:, None, None]
    before, after, share = _neighbours(xp, pixels.shape[1], width)
    return rows[:, before] * (1 - share)[:, None] + rows[:, after] * share[:, None]


def mark(response: Any, threshold: float) -> Any:
    """255 where a response is above the threshold, 0 elsewhere."""
    return (response > threshold).astype(np.uint8) * np.uint8(255)


def paste(marks: np.ndarray, region: Region, shape: tuple[int, int]) -> np.ndarray:
    """The mask of an image of this shape: each of the region's pixels like the mark (h, w) that lies nearest."""
    mask = np.zeros(shape, np.uint8)
    rows, columns = (
        (2 * np.arange(side) + 1) * count // (2 * side) for count, side in zip(marks.shape, region[2:], strict=True)
    )
    crop(mask, region)[:] = marks[rows[:, None], columns]
    return mask


def _neighbours(xp: Any, size: int, wanted: int) -> tuple[Any, Any, Any]:
    """For each of the wanted places the pixels before and behind it, and how far it is from the first to the second."""
    place = (xp.arange(wanted) + 0.5) * (size / wanted) - 0.5
    place = xp.clip(place, 0, size - 1)
    before = place.astype(np.int64)
    return before, xp.minimum(before + 1, size - 1), (place - before).astype(np.float32)
