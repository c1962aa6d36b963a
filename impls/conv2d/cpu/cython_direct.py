"""Direct convolution row by row in Cython, threaded over output rows with OpenMP.

2 N K P Q (C/g) R S FLOPs, no extra memory: padding is skipped, not copied. The same idea as cpu.numba_direct, compiled
ahead of time.
"""

import numpy as np

import impls.conv2d.cpu._cython_direct as _cython_direct  # type: ignore[import-not-found]
from impls.contract import implementation
from impls.conv2d.arguments import output_shape


@implementation(device="cpu", family="direct", summary="Cython: rows in cache, vectorised along the row, OpenMP")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = np.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    before = padding[0][0], padding[1][0]
    if len(input):
        start = np.zeros(len(weight), input.dtype) if bias is None else np.ascontiguousarray(bias)
        arrays = np.ascontiguousarray(input), np.ascontiguousarray(weight)
        _cython_direct.rows(*arrays, start, output, stride, before, dilation, groups)
    return output
