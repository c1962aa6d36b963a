"""From a region's pixels to a patch and from there to the mask, in Cython, for implementations that differ in decoding."""

from __future__ import annotations

import numpy as np

import impls.preprocess.cpu._cython_preprocess as _cython_preprocess  # type: ignore[import-not-found]
from impls.preprocess.arguments import fit


def to_patch(pixels, region, size, mean, std, kernel):
    """The region as a normalised patch (3, size, size), with the zeros around it that the kernel will see."""
    high, wide = (taps // 2 for taps in kernel)
    patch = np.zeros((3, size + 2 * high, size + 2 * wide), np.float32)
    factor = (1 / (255 * std.astype(np.float64))).astype(np.float32)
    _cython_preprocess.prepare(pixels, region, factor, mean / std, patch, (high, wide), fit(region, size))
    return patch


def finish(patch, weight, threshold, region, size, shape):
    """The mask of an image of this shape: convolved, compared and pasted."""
    mask = np.zeros(shape, np.uint8)
    marks = np.empty(fit(region, size), np.uint8)
    _cython_preprocess.mark(patch, weight[0], threshold, marks)
    _cython_preprocess.paste(marks, mask, region)
    return mask
