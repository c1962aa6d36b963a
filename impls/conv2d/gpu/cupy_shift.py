"""Scaled, shifted images summed: one multiply and one add over a whole image for every tap.

2 N K P Q (C/g) R S FLOPs in N K (C/g) R S passes over memory, two kernel launches for each; extra memory: the padded
image and one of products. cpu.shift on the device.
"""

import cupy
import numpy as np

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.cupy_arrays import pad
from impls.conv2d.devices import require_cupy

require_cupy("gpu.cupy_shift")


@implementation(device="cuda", family="shift", summary="CuPy: scaled, shifted images summed", arrays="cupy")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image = pad(input, padding)
    output = cupy.zeros(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    height, width = (stride[axis] * (output.shape[2 + axis] - 1) + 1 for axis in (0, 1))
    product = cupy.empty(output[:, 0].shape, input.dtype)
    outputs, channels = len(weight) // groups, weight.shape[1]
    for k, c, r, s in np.ndindex(weight.shape):
        top, left = r * dilation[0], s * dilation[1]
        source = image[:, k // outputs * channels + c, top : top + height : stride[0], left : left + width : stride[1]]
        cupy.multiply(source, weight[k, c, r, s], out=product)
        output[:, k] += product
    if bias is not None:
        output += bias[:, None, None]
    return output
