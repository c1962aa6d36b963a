"""One product that mixes every pixel's channels for each tap, rolled until its pixel lies where the output's does, and added.

2 N K H W (C/g) R S FLOPs over the padded H x W, whatever the stride, in R S matrix products; extra memory: the padded image
with its channels last, sums as large for each output channel, a product and a rolled one. What wraps round is cut off at
the end. A form of a post on writing a convolution in PyTorch; cpu.shift_matmul has slices in place of rolling.
"""

import numpy as np

from impls import checks
from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import add_bias, pad


@implementation(device="cpu", family="shift", summary="NumPy: a matrix product over channels for each tap, rolled and summed")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image = pad(input, padding)
    n, c, height, width = image.shape
    k, channels, *taps = weight.shape
    checks.require_memory((c + 3 * k) * image[:, 0].nbytes, "cpu.roll_matmul's whole images")
    # A pixel's channels lie in a row, group by group: (groups, N H W, C/groups) @ (groups, C/groups, K/groups).
    rows = image.reshape(n, groups, channels, height * width).transpose(1, 0, 3, 2).reshape(groups, -1, channels)
    factors = weight.reshape(groups, k // groups, channels, *taps).swapaxes(1, 2)
    sums = np.zeros((groups, n, height, width, k // groups), image.dtype)
    for r, s in np.ndindex(*taps):
        product = (rows @ factors[..., r, s]).reshape(sums.shape)
        sums += np.roll(product, (-r * dilation[0], -s * dilation[1]), axis=(2, 3))
    p, q = output_shape(input.shape, weight.shape, stride, padding, dilation)[2:]
    inside = sums[:, :, : stride[0] * (p - 1) + 1 : stride[0], : stride[1] * (q - 1) + 1 : stride[1]]
    return add_bias(np.ascontiguousarray(inside.transpose(1, 0, 4, 2, 3)).reshape(n, k, p, q), bias)
