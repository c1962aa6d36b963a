"""Sliding windows and one contraction over channels and taps.

2 N K P Q (C/g) R S FLOPs; extra memory: the padded image and the windows, N C P Q R S elements, which the contraction
copies before it multiplies.
https://numpy.org/doc/stable/reference/generated/numpy.lib.stride_tricks.sliding_window_view.html
"""

import numpy as np

from impls.contract import implementation
from impls.conv2d import geometry


@implementation(device="cpu", family="windows", summary="NumPy: sliding_window_view and one matrix product")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    windows = geometry.windows(geometry.pad(input, padding), weight.shape[2:], stride, dilation)
    n, _, p, q = windows.shape[:4]
    geometry.require_patches(input, weight.shape[2:], (p, q))
    output = np.empty((n, len(weight), p, q), input.dtype)
    outputs, channels = len(weight) // groups, weight.shape[1]
    for group in range(groups):
        of, to = slice(group * channels, (group + 1) * channels), slice(group * outputs, (group + 1) * outputs)
        # Weight first: the result is (K/groups, N, P, Q), whose images are contiguous. Not np.dot or np.tensordot, which take
        # a product of one row for a scaled vector and lose what is not finite where the scale is zero.
        columns = windows[:, of].transpose(1, 4, 5, 0, 2, 3).reshape(weight[0].size, -1)
        products = weight[to].reshape(outputs, -1) @ columns
        output[:, to] = products.reshape(outputs, n, p, q).swapaxes(0, 1)
    return geometry.add_bias(output, bias)
