"""Decodes a list of images one by one, by one thread or several, for every implementation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from impls.decode_jpeg.arguments import Region
from impls.read_batch.batch import in_threads


def each(read: Callable[[int], np.ndarray], count: int, workers: int) -> list[np.ndarray]:
    """The results of read(i) for each image; where several fail, the error of the first is raised."""
    found = [np.empty(0, np.uint8)] * count

    def some(begin: int, stop: int) -> None:
        for i in range(begin, stop):
            found[i] = read(i)

    in_threads(some, 0, count, workers)
    return found


def cropped(pixels: np.ndarray, region: Region) -> np.ndarray:
    """A region's pixels in memory of their own, so that the whole image's is given back."""
    top, left, height, width = region
    if (height, width) == pixels.shape[:2] and pixels.flags.writeable:
        return pixels
    return pixels[top : top + height, left : left + width].copy()
