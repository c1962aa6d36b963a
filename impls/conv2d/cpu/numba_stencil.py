"""Numba's stencil: the sum around one pixel is written once, and Numba makes the loops over the image.

2 N K P Q (C/g) R S FLOPs; extra memory: the padded image and one image of results. The kernel's size is part of the
compiled code, so that its loops can be unrolled: every new size compiles for half a second, and nothing is kept on
disk. A stencil has no stride. https://numba.readthedocs.io/en/stable/user/stencil.html
"""

import functools

import numpy as np
from numba import njit, stencil

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import add_bias, pad


@functools.lru_cache(maxsize=256)
def _compiled(taps_y, taps_x):
    @stencil(neighborhood=((0, taps_y - 1), (0, taps_x - 1)), standard_indexing=("weight",))
    def window(image, weight):
        total = image[0, 0] * weight[0, 0]
        for s in range(1, taps_x):
            total += image[0, s] * weight[0, s]
        for r in range(1, taps_y):
            for s in range(taps_x):
                total += image[r, s] * weight[r, s]
        return total

    @njit(parallel=True, nogil=True)
    def correlate(image, weight):
        return window(image, weight)

    return correlate


@implementation(
    device="cpu", family="direct", summary="Numba: one stencil per filter size", limits={"stride": 1, "dilation": 1}
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = np.zeros(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    image = np.ascontiguousarray(pad(input, padding))
    taps = np.ascontiguousarray(weight)
    _, k, p, q = output.shape
    channels = weight.shape[1]
    correlate = _compiled(*weight.shape[2:])
    # Image by image: the loop over them in Numba as well would compile for three seconds instead of half a second.
    for n, j, c in np.ndindex(len(input), k, channels):
        output[n, j] += correlate(image[n, j // (k // groups) * channels + c], taps[j, c])[:p, :q]
    return add_bias(output, bias)
