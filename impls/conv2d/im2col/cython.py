"""A patch matrix filled by compiled loops, a thread for every tap, then one matrix product an image.

2 N K P Q (C/g) R S FLOPs; extra memory: the patch matrix of one image, C R S P Q elements, used again for the next. The
same idea as im2col.numba, compiled ahead of time.
"""

import numpy as np

import impls.conv2d.im2col._cython as _cython  # type: ignore[import-not-found]
from impls import checks
from impls.contract import implementation
from impls.conv2d.geometry import add_bias, empty


@implementation(device="cpu", family="im2col", summary="Cython: a patch matrix by compiled loops, then one matrix product")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = empty(input, weight, stride, padding, dilation, out)
    _, k, p, q = output.shape
    rows = input.shape[1] * weight.shape[2] * weight.shape[3]
    checks.require_memory(rows * p * q * input.itemsize, "im2col.cython's patch matrix")
    columns = np.empty((rows, p, q), input.dtype)
    matrix = np.ascontiguousarray(weight).reshape(groups, k // groups, -1)
    before = padding[0][0], padding[1][0]
    for image, result in zip(np.ascontiguousarray(input), output, strict=True):
        _cython.patches(image, columns, weight.shape[2:], stride, before, dilation)
        np.matmul(matrix, columns.reshape(groups, -1, p * q), out=result.reshape(groups, -1, p * q))
    return add_bias(output, bias)
