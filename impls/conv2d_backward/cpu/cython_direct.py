"""Both gradients in Cython, in vector registers, threaded with OpenMP.

4 N K P Q (C/g) R S FLOPs. The input's gradient is, at stride 1, a convolution with the weight turned round and its channels
changed over, by the kernel of conv2d's cpu.cython_direct, and otherwise by that of conv_transpose2d's. The weight's keeps
the sums of a tile of taps, one for each lane, in registers for all rows of an image; of strided images it sees every
stride-th column at a time, for which they are one; extra memory: a vector for each tap, at most 4 MB of them for each
thread, the padded image if it is narrow or strided, and what conv2d's kernel takes.
"""

import math

import numpy as np

import impls.conv2d.cpu._cython_direct as _cython_direct  # type: ignore[import-not-found]
import impls.conv2d_backward.cpu._cython_backward as _cython_backward  # type: ignore[import-not-found]
import impls.conv_transpose2d.cpu._cython_transpose as _cython_transpose  # type: ignore[import-not-found]
from impls.contract import implementation
from impls.conv2d.geometry import pad

WIDE = 256  # columns from which on the borders of an image take less time than a copy with its padding


@implementation(device="cpu", family="direct", summary="Cython: both gradients in vector registers, OpenMP")
def conv2d_backward(grad_output, input, weight, stride=1, padding=0, dilation=1, groups=1):
    """The gradients of conv2d's input (N, C, H, W), weight (K, C/groups, R, S) and bias, from that of its output."""
    grads = np.ascontiguousarray(grad_output)
    grad_input, grad_weight = np.empty(input.shape, input.dtype), np.zeros(weight.shape, weight.dtype)
    if len(input):
        _fill_input(grads, weight, grad_input, stride, (padding[0][0], padding[1][0]), dilation, groups)
        _fill_weight(grads, input, grad_weight, stride, padding, dilation, groups)
    return grad_input, grad_weight, grads.sum(axis=(2, 3)).sum(axis=0)


def _fill_input(grads, weight, grad_input, stride, before, dilation, groups):
    start = np.zeros(grad_input.shape[1], grad_input.dtype)
    k, channels, *taps = weight.shape
    beyond = [spread * (count - 1) - first for spread, count, first in zip(dilation, taps, before, strict=True)]
    # Beyond the gradient's borders a convolution multiplies zeros, which an infinite weight does not bear.
    if stride == (1, 1) and min(beyond) >= 0 and np.isfinite(weight).all():
        turned = weight.reshape(groups, k // groups, channels, *taps)[..., ::-1, ::-1].swapaxes(1, 2)
        turned = np.ascontiguousarray(turned).reshape(groups * channels, k // groups, *taps)
        _cython_direct.rows(grads, turned, start, grad_input, (1, 1), beyond, dilation, groups)
    else:
        _cython_transpose.rows(grads, np.ascontiguousarray(weight), start, grad_input, stride, before, dilation, groups)


def _fill_weight(grads, input, grad_weight, stride, padding, dilation, groups):
    wide = stride[1] == 1 and grads.shape[3] >= WIDE
    image, before = (input, (padding[0][0], padding[1][0])) if wide else (pad(input, padding), (0, 0))
    # Taps that lie a multiple of the stride apart see the same columns.
    step = stride[1] // math.gcd(stride[1], dilation[1])
    for first in range(min(step, grad_weight.shape[3])):
        columns = np.ascontiguousarray(image[..., first * dilation[1] :: stride[1]])
        taps = np.empty(grad_weight[..., first::step].shape, grad_weight.dtype)
        spread = dilation[0], dilation[1] * step // stride[1]
        _cython_backward.weight_rows(grads, columns, taps, stride[0], before, spread, groups)
        grad_weight[..., first::step] = taps
