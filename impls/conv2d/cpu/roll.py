"""Scaled whole images, each rolled until its tap's pixel lies where the output's does, and summed.

2 N K H W (C/g) R S FLOPs over the padded H x W, whatever the stride, in N K (C/g) R S passes over memory, and as many to
roll; extra memory: the padded image, sums as large for each output channel, a scaled image and a rolled one. What wraps
round is cut off at the end. A form of a post on writing a convolution in PyTorch; cpu.shift has slices in place of rolling.
"""

import numpy as np

from impls import checks
from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import add_bias, pad


@implementation(device="cpu", family="shift", summary="NumPy: scaled images rolled and summed")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image = pad(input, padding)
    outputs, channels = len(weight) // groups, weight.shape[1]
    checks.require_memory((image.shape[1] + len(weight) + 2) * image[:, 0].nbytes, "cpu.roll's whole images")
    sums = np.zeros((len(image), len(weight), *image.shape[2:]), image.dtype)
    for k, c, r, s in np.ndindex(weight.shape):
        scaled = weight[k, c, r, s] * image[:, k // outputs * channels + c]
        sums[:, k] += np.roll(scaled, (-r * dilation[0], -s * dilation[1]), axis=(1, 2))
    p, q = output_shape(input.shape, weight.shape, stride, padding, dilation)[2:]
    inside = sums[:, :, : stride[0] * (p - 1) + 1 : stride[0], : stride[1] * (q - 1) + 1 : stride[1]]
    return add_bias(inside.copy(), bias)
