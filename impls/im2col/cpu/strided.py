"""A strided view of all windows, copied once into the matrix.

No FLOPs, no step of Python for an element; extra memory: the padded image.
https://numpy.org/doc/stable/reference/generated/numpy.lib.stride_tricks.sliding_window_view.html
"""

import math

import numpy as np

from impls.contract import implementation


@implementation(device="cpu", family="windows", summary="NumPy: a strided view of the windows, copied once")
def im2col(image, kernel, stride=1, padding=0, dilation=1, fill=0):
    """Lay the windows of an image out as the columns of a matrix (taps, pixels)."""
    if any(padding):
        image = np.pad(image, [(pad, pad) for pad in padding], constant_values=fill)
    spans = tuple(d * (taps - 1) + 1 for taps, d in zip(kernel, dilation, strict=True))
    view = np.lib.stride_tricks.sliding_window_view(image, spans)
    view = view[(*(slice(None, None, step) for step in stride), *(slice(None, None, d) for d in dilation))]
    rank = len(kernel)
    columns = np.empty((*kernel, *view.shape[:rank]), image.dtype)
    columns[...] = view.transpose(*range(rank, 2 * rank), *range(rank))
    return columns.reshape(math.prod(kernel), -1)
