"""Scaled, shifted images summed: one multiply-add over a whole image for every tap.

2 N K P Q (C/g) R S FLOPs in N K (C/g) R S passes over memory, one kernel launch for each; extra memory: the padded image.
cpu.shift on the device.
"""

import numpy as np
from torch.nn import functional

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.devices import require_torch

require_torch("gpu.torch_shift")


@implementation(device="cuda", family="shift", summary="torch: scaled, shifted images summed", arrays="torch")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image = functional.pad(input, (*padding[1], *padding[0]))
    output = input.new_zeros(output_shape(input.shape, weight.shape, stride, padding, dilation))
    height, width = (stride[axis] * (output.shape[2 + axis] - 1) + 1 for axis in (0, 1))
    outputs, channels = len(weight) // groups, weight.shape[1]
    for k, c, r, s in np.ndindex(*weight.shape):
        top, left = r * dilation[0], s * dilation[1]
        source = image[:, k // outputs * channels + c, top : top + height : stride[0], left : left + width : stride[1]]
        output[:, k].addcmul_(source, weight[k, c, r, s])
    if bias is not None:
        output += bias[:, None, None]
    return output
