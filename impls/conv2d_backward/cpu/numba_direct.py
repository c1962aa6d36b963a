"""Both gradients row by row in Numba, vectorised along the row, threaded over what is independent.

4 N K P Q (C/g) R S FLOPs; extra memory: a row for each thread. The input's gradient is the transposed convolution of the
output's, by the kernel of conv_transpose2d's cpu.numba_direct (Shi et al., arXiv:1609.07009). A row of a kernel is summed by
one thread over all rows of the images.
"""

import numpy as np
from numba import njit, prange

from impls.contract import implementation
from impls.conv_transpose2d.cpu import numba_direct


@njit(parallel=True, cache=True, nogil=True, fastmath={"contract", "reassoc"})  # reassoc: sums of a row in vectors
def _weight(grad_output, input, grad_weight, stride, pad, dilation, groups):
    n_outputs, channels, taps_y, taps_x = grad_weight.shape
    n_images, _, height, width = grad_output.shape
    in_height, in_width = input.shape[2:]
    outputs = n_outputs // groups
    for row in prange(n_outputs * channels * taps_y):
        r = row % taps_y
        c = row // taps_y % channels
        k = row // (taps_y * channels)
        target = grad_weight[k, c, r]
        target[:] = 0
        for n in range(n_images):
            for p in range(height):
                y = p * stride[0] + r * dilation[0] - pad[0]
                if y < 0 or y >= in_height:
                    continue
                source = input[n, k // outputs * channels + c, y]
                for s in range(taps_x):
                    offset = s * dilation[1] - pad[1]
                    # The outputs for which 0 <= q * stride + offset < width of the input.
                    start = max(0, (stride[1] - 1 - offset) // stride[1])
                    stop = max(start, min(width, (in_width - 1 - offset) // stride[1] + 1))
                    grads = grad_output[n, k, p, start:stop]
                    total = target[s]
                    if stride[1] == 1:
                        pixels = source[start + offset : stop + offset]
                        for q in range(len(grads)):
                            total += grads[q] * pixels[q]
                    elif stop > start:
                        spread = source[start * stride[1] + offset :: stride[1]]
                        for q in range(len(grads)):
                            total += grads[q] * spread[q]
                    target[s] = total


@implementation(device="cpu", family="direct", summary="Numba: both gradients, one row at a time, vectorised, threaded")
def conv2d_backward(grad_output, input, weight, stride=1, padding=0, dilation=1, groups=1):
    """The gradients of conv2d's input (N, C, H, W), weight (K, C/groups, R, S) and bias, from that of its output."""
    grads, before = np.ascontiguousarray(grad_output), (padding[0][0], padding[1][0])
    grad_input, grad_weight = np.empty(input.shape, input.dtype), np.empty(weight.shape, weight.dtype)
    start = np.zeros(input.shape[1], input.dtype)
    numba_direct.rows(grads, np.ascontiguousarray(weight), start, grad_input, stride, before, dilation, groups)
    _weight(grads, np.ascontiguousarray(input), grad_weight, stride, before, dilation, groups)
    return grad_input, grad_weight, grads.sum(axis=(0, 2, 3))
