"""Pointers instead of copies: for every output pixel and tap the place of the input pixel, whose channels lie side by side.

Indirect convolution, Dukhan, arXiv 1907.02129, as in XNNPACK. 2 N K P Q (C/g) R S FLOPs; extra memory: P Q R S indices,
the images in channels-last order with one pixel of zeros, which padding points to, and the weights in the order in
which they are read.
"""

import numpy as np
from numba import njit, prange

from impls import checks
from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import add_bias

PIXELS = 4  # whose sums stay in the L1 cache while a row of weights is read once for all of them


@njit(parallel=True, cache=True, nogil=True, fastmath={"contract"})
def _multiply(images, places, weight, output):
    n_images, _, groups, channels = images.shape
    pixels, taps = places.shape
    outputs = weight.shape[3]
    blocks = (pixels + PIXELS - 1) // PIXELS
    for task in prange(n_images * groups * blocks):
        first = task % blocks * PIXELS
        g = task // blocks % groups
        n = task // (blocks * groups)
        count = min(PIXELS, pixels - first)
        sums = np.zeros((PIXELS, outputs), output.dtype)
        for tap in range(taps):
            for c in range(channels):
                row = weight[g, tap, c]
                for i in range(count):
                    factor = images[n, places[first + i, tap], g, c]
                    total = sums[i]
                    for k in range(outputs):
                        total[k] += factor * row[k]
        for k in range(outputs):
            for i in range(count):
                output[n, g, k, first + i] = sums[i, k]


@implementation(device="cpu", family="im2col", summary="Numba: pointers to pixels instead of a patch matrix")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    shape = output_shape(input.shape, weight.shape, stride, padding, dilation)
    n, c, height, width = input.shape
    k, channels, taps_y, taps_x = weight.shape
    _, _, p, q = shape
    checks.require_memory(p * q * taps_y * taps_x * 8 + input.nbytes, "im2col.indirect's places")
    y, x = (
        np.arange(size)[:, None] * step + np.arange(taps) * d - before
        for size, step, taps, d, (before, _) in zip((p, q), stride, (taps_y, taps_x), dilation, padding, strict=True)
    )
    inside = ((y >= 0) & (y < height))[:, None, :, None] & ((x >= 0) & (x < width))[:, None]
    places = np.where(inside, y[:, None, :, None] * width + x[:, None], height * width).reshape(p * q, -1)
    images = np.zeros((n, height * width + 1, groups, c // groups), input.dtype)
    images[:, :-1] = input.transpose(0, 2, 3, 1).reshape(n, height * width, groups, channels)
    taps = weight.reshape(groups, k // groups, channels, -1).transpose(0, 3, 2, 1)
    output = np.empty((n, groups, k // groups, p * q), input.dtype)
    _multiply(images, places, np.ascontiguousarray(taps), output)
    return add_bias(output.reshape(shape), bias)
