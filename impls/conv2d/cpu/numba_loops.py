"""The definition's nested loops, jitted and nothing else: no threads, no care for vectors or caches.

2 N K P Q (C/g) R S FLOPs; extra memory: the padded image. What a just-in-time compiler gives for one decorator.
https://numba.readthedocs.io/en/stable/user/5minguide.html
"""

import numpy as np
from numba import njit

from impls.contract import implementation
from impls.conv2d.geometry import add_bias, empty, pad


@njit(cache=True, nogil=True)
def _loops(image, weight, output, stride, dilation, groups):
    images, outputs, height, width = output.shape
    _, channels, taps_y, taps_x = weight.shape
    for n in range(images):
        for k in range(outputs):
            first = k // (outputs // groups) * channels
            for p in range(height):
                for q in range(width):
                    total = output.dtype.type(0)
                    for c in range(channels):
                        for r in range(taps_y):
                            for s in range(taps_x):
                                y, x = p * stride[0] + r * dilation[0], q * stride[1] + s * dilation[1]
                                total += image[n, first + c, y, x] * weight[k, c, r, s]
                    output[n, k, p, q] = total


@implementation(device="cpu", family="direct", summary="Numba: the nested loops, jitted")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = empty(input, weight, stride, padding, dilation, out)
    image = np.ascontiguousarray(pad(input, padding))
    _loops(image, np.ascontiguousarray(weight), output, stride, dilation, groups)
    return add_bias(output, bias)
