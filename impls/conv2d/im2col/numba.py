"""A patch matrix filled by jitted loops, a thread for every tap, then one matrix product an image.

2 N K P Q (C/g) R S FLOPs; extra memory: the patch matrix of one image, C R S P Q elements, used again for the next.
im2col: Chellapilla, Puri and Simard 2006, as in im2col.strided.
"""

import numpy as np
from numba import njit, prange

from impls import checks
from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import add_bias


@njit(parallel=True, cache=True, nogil=True)
def _patches(image, columns, kernel, stride, pad, dilation):
    _, in_height, in_width = image.shape
    height, width = columns.shape[1:]
    for row in prange(len(columns)):
        s = row % kernel[1]
        r = row // kernel[1] % kernel[0]
        c = row // (kernel[0] * kernel[1])
        offset = s * dilation[1] - pad[1]
        # The pixels that lie in the image; left and right of them is padding.
        start = min(width, max(0, (stride[1] - 1 - offset) // stride[1]))
        stop = max(start, min(width, (in_width - 1 - offset) // stride[1] + 1))
        for p in range(height):
            y = p * stride[0] + r * dilation[0] - pad[0]
            target = columns[row, p]
            if y < 0 or y >= in_height or stop == start:
                target[:] = 0
                continue
            target[:start] = 0
            target[stop:] = 0
            source = image[c, y, start * stride[1] + offset :: stride[1]]
            for q in range(stop - start):
                target[start + q] = source[q]


@implementation(device="cpu", family="im2col", summary="Numba: a patch matrix by jitted loops, then one matrix product")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = np.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    _, k, p, q = output.shape
    rows = input.shape[1] * weight.shape[2] * weight.shape[3]
    checks.require_memory(rows * p * q * input.itemsize, "im2col.numba's patch matrix")
    columns = np.empty((rows, p, q), input.dtype)
    matrix = np.ascontiguousarray(weight).reshape(groups, k // groups, -1)
    before = padding[0][0], padding[1][0]
    for image, result in zip(np.ascontiguousarray(input), output, strict=True):
        _patches(image, columns, weight.shape[2:], stride, before, dilation)
        np.matmul(matrix, columns.reshape(groups, -1, p * q), out=result.reshape(groups, -1, p * q))
    return add_bias(output, bias)
