"""One product that mixes the channels of all images for every tap, then a slice of it added in place.

2 N K H W (C/g) R S FLOPs over the padded H x W, whatever the stride; extra memory: the padded image and one product of
N K such images. The fastest form of a post on writing a convolution in PyTorch; here for any kernel size and stride.
TensorFloat-32 is off.
"""

import torch

from impls.contract import implementation
from impls.conv2d.devices import require_torch
from impls.conv2d.shifted_products import convolve

require_torch("gpu.torch_shift_matmul")


@implementation(
    device="cuda",
    family="shift",
    summary="torch: a matrix product over channels for each tap, shifted and summed",
    arrays="torch",
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        return convolve(input, weight, bias, stride, padding, dilation, groups)
    finally:
        torch.set_float32_matmul_precision(before)
