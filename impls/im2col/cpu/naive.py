"""Element by element: for every tap and pixel the flat indices are unravelled by hand, the place is tested, copied or filled.

Of any rank, with a fill value, as a course page on profiling has it. No FLOPs, one step of Python for each element of the
matrix; no extra memory.
"""

import math

import numpy as np

from impls.contract import implementation
from impls.im2col.arguments import output_pixels


def _unravel(index, shape):
    """Turn a flat index into one index per axis, the last axis running fastest."""
    indices = []
    for size in reversed(shape):
        indices.append(index % size)
        index //= size
    return indices[::-1]


def _inside(place, shape):
    """Whether a place lies in the image."""
    return all(0 <= i < size for i, size in zip(place, shape, strict=True))


@implementation(device="cpu", family="elements", summary="Python: each element's index unravelled, tested and copied")
def im2col(image, kernel, stride=1, padding=0, dilation=1, fill=0):
    """Lay the windows of an image out as the columns of a matrix (taps, pixels)."""
    pixels = output_pixels(image.shape, kernel, stride, padding, dilation)
    columns = np.empty((math.prod(kernel), math.prod(pixels)), image.dtype)
    for tap, pixel in np.ndindex(columns.shape):
        axes = zip(_unravel(pixel, pixels), _unravel(tap, kernel), stride, padding, dilation, strict=True)
        place = tuple(p * step + t * d - pad for p, t, step, pad, d in axes)
        columns[tap, pixel] = image[place] if _inside(place, image.shape) else fill
    return columns
