"""One product that mixes the channels of all images for every tap, then a slice of it added in place.

2 N K H W (C/g) R S FLOPs over the padded H x W, whatever the stride; extra memory: the padded image and one product of
N K such images. The fastest form of a post on writing a convolution in PyTorch; here for any kernel size and stride.
TensorFloat-32 is off.
"""

import numpy as np
import torch
from torch.nn import functional

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.devices import require_torch

require_torch("gpu.torch_shift_matmul")


@implementation(
    device="cuda", family="shift", summary="torch: one channel-mixing product a tap, then a slice", arrays="torch"
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image = functional.pad(input, (*padding[1], *padding[0]))
    output = input.new_zeros(output_shape(input.shape, weight.shape, stride, padding, dilation))
    height, width = (stride[axis] * (output.shape[2 + axis] - 1) + 1 for axis in (0, 1))
    n, k = output.shape[:2]
    channels, taps_y, taps_x = weight.shape[1:]
    # (groups, K/groups, C/groups) @ (N, groups, C/groups, H W), a pixel's channels standing in a column.
    factors = weight.reshape(groups, k // groups, channels, taps_y, taps_x)
    columns = image.reshape(n, groups, channels, image[0, 0].numel() if n else 0)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        for r, s in np.ndindex(taps_y, taps_x):
            product = (factors[..., r, s] @ columns).reshape(n, k, *image.shape[2:])
            top, left = r * dilation[0], s * dilation[1]
            output += product[:, :, top : top + height : stride[0], left : left + width : stride[1]]
    finally:
        torch.set_float32_matmul_precision(before)
    if bias is not None:
        output += bias[:, None, None]
    return output
