"""Two passes in Numba: from the region's bytes to the normalised patch, and from the patch to the mask; threaded over rows.

6 R S + 30 FLOPs a pixel of a patch. The response is never stored for more than a row, nor any other array between the steps;
extra memory: the decoded image, a patch and its marks. Loop fusion, the idea of adam_step's cpu.numba. OpenCV decodes.
"""

import numpy as np
from numba import njit, prange

from impls.contract import implementation
from impls.decode_jpeg.opencv_images import decode
from impls.preprocess.arguments import fit


# Numba does not check indices: each kernel holds the sizes that it is given against its arrays before its parallel loop.
@njit(cache=True, nogil=True)
def _require_inside(top, left, height, width, rows, columns):
    """Raise ValueError if a rectangle is empty or does not lie inside rows x columns."""
    if height < 1 or width < 1 or top < 0 or left < 0 or top + height > rows or left + width > columns:
        raise ValueError("a region, or a part of a patch, does not lie inside its array")


@njit(cache=True, nogil=True)
def _require_channels(*found):
    for channels in found:
        if channels != 3:
            raise ValueError("three channels are wanted")


@njit(parallel=True, cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _prepare(pixels, top, left, height, width, factor, offset, patch, rows, columns):
    """patch[c, y, x] = x * factor[c] - offset[c] of the region's pixels, resized to rows x columns."""
    _require_inside(top, left, height, width, pixels.shape[0], pixels.shape[1])
    _require_inside(0, 0, rows, columns, patch.shape[1], patch.shape[2])
    _require_channels(pixels.shape[2], patch.shape[0], len(factor), len(offset))
    one, half = np.float32(1), 0.5
    for y in prange(rows):
        place = min(max((y + half) * height / rows - half, 0.0), height - 1.0)
        above = int(place)
        below = min(above + 1, height - 1)
        down = np.float32(place - above)
        for x in range(columns):
            place = min(max((x + half) * width / columns - half, 0.0), width - 1.0)
            before = int(place)
            behind = min(before + 1, width - 1)
            along = np.float32(place - before)
            for c in range(3):
                first = pixels[top + above, left + before, c] * (one - down) + pixels[top + below, left + before, c] * down
                second = pixels[top + above, left + behind, c] * (one - down) + pixels[top + below, left + behind, c] * down
                patch[c, y, x] = (first * (one - along) + second * along) * factor[c] - offset[c]


@njit(parallel=True, cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _mark(patch, weight, threshold, marks):
    """marks[y, x] = 255 where the response is above the threshold; the patch has a border of zeros around it."""
    rows, columns = marks.shape
    taps_y, taps_x = weight.shape[1:]
    _require_inside(0, 0, taps_y, taps_x, patch.shape[1], patch.shape[2])
    _require_inside(0, 0, rows, columns, patch.shape[1] - taps_y + 1, patch.shape[2] - taps_x + 1)
    _require_channels(patch.shape[0], weight.shape[0])
    for y in prange(rows):
        sums = np.zeros(columns, np.float32)
        for c in range(3):
            for r in range(taps_y):
                for s in range(taps_x):
                    tap = weight[c, r, s]
                    line = patch[c, y + r, s : s + columns]
                    for x in range(columns):
                        sums[x] += tap * line[x]
        for x in range(columns):
            marks[y, x] = 255 if sums[x] > threshold else 0


@njit(parallel=True, cache=True, nogil=True)
def _paste(marks, mask, top, left, height, width):
    rows, columns = marks.shape
    _require_inside(top, left, height, width, mask.shape[0], mask.shape[1])
    _require_inside(0, 0, 1, 1, rows, columns)
    for y in prange(height):
        line = marks[(2 * y + 1) * rows // (2 * height)]
        for x in range(width):
            mask[top + y, left + x] = line[(2 * x + 1) * columns // (2 * width)]


@implementation(device="cpu", family="fused", summary="Numba: one pass for the patch, one for the mask, threaded")
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
    inside = patch[:, high : high + size, wide : wide + size]
    _prepare(pixels, *region, factor, mean / std, inside, *fit(region, size))
    return patch


def finish(patch, weight, threshold, region, size, shape):
    """The mask of an image of this shape: convolved, compared and pasted."""
    mask = np.zeros(shape, np.uint8)
    marks = np.empty(fit(region, size), np.uint8)
    _mark(patch, weight[0], np.float32(threshold), marks)
    _paste(marks, mask, *region)
    return mask
