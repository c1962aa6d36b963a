"""Both gradients row by row in Cython, vectorised along the row, threaded with OpenMP over what is independent.

4 N K P Q (C/g) R S FLOPs; extra memory: a row for each thread. The input's gradient comes from the kernel of
conv_transpose2d's cpu.cython_direct. The same idea as cpu.numba_direct, compiled ahead of time.
"""

import numpy as np

import impls.conv2d_backward.cpu._cython_backward as _cython_backward  # type: ignore[import-not-found]
import impls.conv_transpose2d.cpu._cython_transpose as _cython_transpose  # type: ignore[import-not-found]
from impls.contract import implementation


@implementation(device="cpu", family="direct", summary="Cython: both gradients row by row, vectorised, OpenMP")
def conv2d_backward(grad_output, input, weight, stride=1, padding=0, dilation=1, groups=1):
    """The gradients of conv2d's input (N, C, H, W), weight (K, C/groups, R, S) and bias, from that of its output."""
    grads, before = np.ascontiguousarray(grad_output), (padding[0][0], padding[1][0])
    grad_input, grad_weight = np.empty(input.shape, input.dtype), np.zeros(weight.shape, weight.dtype)
    if len(input):
        start = np.zeros(input.shape[1], input.dtype)
        _cython_transpose.rows(grads, np.ascontiguousarray(weight), start, grad_input, stride, before, dilation, groups)
        _cython_backward.weight_rows(grads, np.ascontiguousarray(input), grad_weight, stride, before, dilation, groups)
    return grad_input, grad_weight, grads.sum(axis=(0, 2, 3))
