"""Scaled, shifted images summed: one multiply and one add over a whole image for every tap.

2 N K P Q (C/g) R S FLOPs in N K (C/g) R S passes over memory; extra memory: the padded image and one of products. From
a post on writing a convolution in PyTorch, which found that nine shifted images beat four loops.
"""

import numpy as np

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import add_bias, pad


@implementation(device="cpu", family="shift", summary="NumPy: scaled, shifted images summed")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image = pad(input, padding)
    output = np.zeros(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    height, width = (stride[axis] * (output.shape[2 + axis] - 1) + 1 for axis in (0, 1))
    product = np.empty(output[:, 0].shape, input.dtype)
    outputs, channels = len(weight) // groups, weight.shape[1]
    for k, c, r, s in np.ndindex(weight.shape):
        top, left = r * dilation[0], s * dilation[1]
        source = image[:, k // outputs * channels + c, top : top + height : stride[0], left : left + width : stride[1]]
        np.multiply(source, weight[k, c, r, s], out=product)
        output[:, k] += product
    return add_bias(output, bias)
