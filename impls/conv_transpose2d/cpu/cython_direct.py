"""Every output row gathered from the input rows that reach it, in Cython, threaded over output rows with OpenMP.

2 N C H W (K/g) R S FLOPs; extra memory: a row for each thread. The same idea as cpu.numba_direct, compiled ahead of time.
"""

import numpy as np

import impls.conv_transpose2d.cpu._cython_transpose as _cython_transpose  # type: ignore[import-not-found]
from impls.contract import implementation
from impls.conv_transpose2d.arguments import output_shape


@implementation(
    device="cpu", family="direct", summary="Cython: output rows gathered for each phase of the stride, vectorised, OpenMP"
)
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Lay the kernels of weight (C, K/groups, R, S), scaled by the pixels of input (N, C, H, W), on the output and add."""
    shape = output_shape(input.shape, weight.shape, stride, padding, output_padding, groups, dilation)
    output = np.empty(shape, input.dtype)
    if len(input):
        start = np.zeros(shape[1], input.dtype) if bias is None else np.ascontiguousarray(bias)
        arrays = np.ascontiguousarray(input), np.ascontiguousarray(weight)
        _cython_transpose.rows(*arrays, start, output, stride, padding, dilation, groups)
    return output
