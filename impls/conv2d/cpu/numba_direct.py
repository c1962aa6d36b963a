"""Direct convolution row by row in Numba, threaded over output rows.

2 N K P Q (C/g) R S FLOPs, no extra memory: padding is skipped, not copied (direct convolution without packing: Zhang,
Franchetti and Low, arXiv 1809.10170). An output row stays in the L1 cache while every tap's row is added to it; the
innermost loop runs along the row, so that it compiles to vector instructions.
"""

import numpy as np
from numba import njit, prange

from impls.contract import implementation
from impls.conv2d.arguments import output_shape


@njit(parallel=True, cache=True, nogil=True, fastmath={"contract"})
def _rows(input, weight, bias, output, stride, pad, dilation, groups):
    n_images, n_outputs, height, width = output.shape
    _, channels, taps_y, taps_x = weight.shape
    in_height, in_width = input.shape[2:]
    outputs = n_outputs // groups
    for row in prange(n_images * n_outputs * height):
        p = row % height
        k = row // height % n_outputs
        n = row // (height * n_outputs)
        target = output[n, k, p]
        target[:] = bias[k]
        for c in range(channels):
            for r in range(taps_y):
                y = p * stride[0] + r * dilation[0] - pad[0]
                if y < 0 or y >= in_height:
                    continue
                source = input[n, k // outputs * channels + c, y]
                for s in range(taps_x):
                    factor = weight[k, c, r, s]
                    offset = s * dilation[1] - pad[1]
                    # The pixels for which 0 <= q * stride + offset < width of the input. As slices: an index that starts
                    # at zero spares Numba its test for negative ones, without which nothing is vectorised.
                    start = max(0, (stride[1] - 1 - offset) // stride[1])
                    stop = max(start, min(width, (in_width - 1 - offset) // stride[1] + 1))
                    pixels = target[start:stop]
                    if stride[1] == 1:
                        shifted = source[start + offset : stop + offset]
                        for q in range(len(pixels)):
                            pixels[q] += factor * shifted[q]
                    elif stop > start:
                        spread = source[start * stride[1] + offset :: stride[1]]
                        for q in range(len(pixels)):
                            pixels[q] += factor * spread[q]


@implementation(device="cpu", family="direct", summary="Numba: rows in cache, vectorised along the row, threaded")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = np.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    before = padding[0][0], padding[1][0]
    start = np.zeros(len(weight), input.dtype) if bias is None else np.ascontiguousarray(bias)
    arrays = np.ascontiguousarray(input), np.ascontiguousarray(weight)
    _rows(*arrays, start, output, stride, before, dilation, groups)
    return output
