"""Two passes in Cython, in vectors and threaded over rows: from the region's bytes to the patch, and from there to the mask.

6 R S + 30 FLOPs a pixel of a patch. What is interpolated between, and by how much, is worked out once for a row and once for
all columns; extra memory: the decoded image, a patch and its marks. The idea of cpu.numba_fused, compiled ahead of time.
OpenCV decodes.
"""

import numpy as np

import impls.preprocess.cpu._cython_preprocess as _cython_preprocess  # type: ignore[import-not-found]
from impls.contract import implementation
from impls.preprocess.arguments import fit
from impls.preprocess.opencv_images import decode


@implementation(device="cpu", family="fused", summary="Cython: one pass to the patch, one to the mask, threaded")
def preprocess(jpegs, regions, weight, threshold=0.0, size=128, mean=None, std=None):
    """N JPEGs to N masks (H, W)."""
    masks = []
    for i, region in enumerate(regions):
        pixels = decode(jpegs, i)
        patch = to_patch(pixels, region, size, mean, std, weight.shape[2:])
        masks.append(finish(patch, weight, threshold, region, size, pixels.shape[:2]))
    return masks


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
