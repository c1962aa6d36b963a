"""A patch matrix as a strided view, copied once, then one matrix product.

2 N K P Q (C/g) R S FLOPs; extra memory: the padded image and the patch matrix, N C R S P Q elements. im2col:
Chellapilla, Puri and Simard, High Performance Convolutional Neural Networks for Document Processing, 2006.
"""

import numpy as np

from impls.contract import implementation
from impls.conv2d import geometry


@implementation(
    device="cpu", family="im2col", summary="NumPy: a strided view copied to a patch matrix, then one matrix product"
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    windows = geometry.windows(geometry.pad(input, padding), weight.shape[2:], stride, dilation)
    n, _, p, q = windows.shape[:4]
    geometry.require_patches(input, weight.shape[2:], (p, q))
    k = len(weight)
    taps = weight[0].size
    # (N, C, P, Q, R, S) to (N, groups, C/groups R S, P Q): here the patches are copied.
    columns = windows.transpose(0, 1, 4, 5, 2, 3).reshape(n, groups, taps, p * q)
    output = weight.reshape(groups, k // groups, taps) @ columns
    return geometry.add_bias(np.ascontiguousarray(output).reshape(n, k, p, q), bias)
