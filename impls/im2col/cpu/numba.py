"""One jitted loop over the lines of the matrix, threaded: a line's place is unravelled once, its border left out of the copy.

No FLOPs; extra memory: a copy of an image that does not lie in one piece. Of any rank by one compiled function: the image is
flat, and what an axis has is a column of an array. The steps are those of cpu.naive, for a line at a time.
"""

import math

import numpy as np
from numba import njit, prange

from impls.contract import implementation
from impls.im2col.arguments import output_pixels


@njit(parallel=True, cache=True, nogil=True)
def _lay_out(image, columns, axes, fill):
    shape, kernel, stride, padding, dilation, pixels = axes
    taps, lines, width = columns.shape
    last = len(shape) - 1
    for i in prange(taps * lines):
        tap, pixel = i // lines, i % lines
        target = columns[tap, pixel]
        offset = tap % kernel[last] * dilation[last] - padding[last]
        tap //= kernel[last]
        inside, start, step = True, 0, shape[last]
        for axis in range(last - 1, -1, -1):
            place = pixel % pixels[axis] * stride[axis] + tap % kernel[axis] * dilation[axis] - padding[axis]
            pixel //= pixels[axis]
            tap //= kernel[axis]
            inside = inside and 0 <= place < shape[axis]
            start += place * step
            step *= shape[axis]
        # The pixels that see the image; left and right of them is padding.
        first = min(width, max(0, (stride[last] - 1 - offset) // stride[last]))
        stop = max(first, min(width, (shape[last] - 1 - offset) // stride[last] + 1))
        if not inside or first == stop:
            target[:] = fill
            continue
        target[:first] = fill
        target[stop:] = fill
        source = image[start + first * stride[last] + offset :: stride[last]]
        for q in range(stop - first):
            target[first + q] = source[q]


@implementation(device="cpu", family="loops", summary="Numba: jitted loops over the lines of the matrix, threaded")
def im2col(image, kernel, stride=1, padding=0, dilation=1, fill=0):
    """Lay the windows of an image out as the columns of a matrix (taps, pixels)."""
    pixels = output_pixels(image.shape, kernel, stride, padding, dilation)
    columns = np.empty((math.prod(kernel), math.prod(pixels[:-1]), pixels[-1]), image.dtype)
    axes = np.array([image.shape, kernel, stride, padding, dilation, pixels])
    _lay_out(np.ascontiguousarray(image).reshape(-1), columns, axes, fill)
    return columns.reshape(len(columns), -1)
