"""The definition, as four nested Python loops for each pair of channels.

2 N K P Q (C/g) R S FLOPs; extra memory: the padded image. The ladder's first rung: what an interpreter costs.
The definition: https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv2d.html
"""

import numpy as np

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import add_bias, pad


@implementation(device="cpu", family="direct", summary="nested Python loops, one multiply-add at a time")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image = pad(input, padding)
    output = np.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    outputs, channels = len(weight) // groups, weight.shape[1]
    for n, k, p, q in np.ndindex(output.shape):
        first = k // outputs * channels
        total = input.dtype.type(0)
        for c, r, s in np.ndindex(weight.shape[1:]):
            y, x = p * stride[0] + r * dilation[0], q * stride[1] + s * dilation[1]
            total += image[n, first + c, y, x] * weight[k, c, r, s]
        output[n, k, p, q] = total
    return add_bias(output, bias)
