"""One product that mixes the channels of the whole image for every tap, then a slice of it added in place.

2 N K H W (C/g) R S FLOPs over the padded H x W, whatever the stride; extra memory: the padded image and one product of
K such images. The fastest form of a post on writing a convolution in PyTorch; here for any kernel size and stride.
"""

import numpy as np

from impls import checks
from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import add_bias, pad


@implementation(
    device="cpu", family="shift", summary="NumPy: a matrix product over channels for each tap, shifted and summed"
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image = pad(input, padding)
    output = np.zeros(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    height, width = (stride[axis] * (output.shape[2 + axis] - 1) + 1 for axis in (0, 1))
    k, channels, taps_y, taps_x = weight.shape
    product_bytes = k * image[0, 0].size * image.itemsize if len(image) else 0
    checks.require_memory(image.nbytes + output.nbytes + product_bytes, "cpu.shift_matmul's padded image and product")
    # One image at a time, its channels as rows: (groups, K/groups, C/groups) @ (groups, C/groups, H W).
    factors = weight.reshape(groups, k // groups, channels, taps_y, taps_x)
    for source, target in zip(image, output, strict=True):
        rows = source.reshape(groups, channels, -1)
        for r, s in np.ndindex(taps_y, taps_x):
            product = (factors[..., r, s] @ rows).reshape(k, *image.shape[2:])
            top, left = r * dilation[0], s * dilation[1]
            target += product[:, top : top + height : stride[0], left : left + width : stride[1]]
    return add_bias(output, bias)
