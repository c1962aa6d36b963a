"""torch.nn.functional.conv_transpose2d on a CUDA device, float32 as float32.

2 N C H W (K/g) R S FLOPs or fewer where cuDNN picks a fast algorithm; extra memory: the work space that it asks for.
TensorFloat-32 is off, and cuDNN chooses by its heuristics, not by trying (cudnn.benchmark off), among algorithms that
give the same output every time.
https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv_transpose2d.html
"""

import torch
from torch.nn import functional

from impls.contract import implementation
from impls.conv2d.devices import require_torch

require_torch("gpu.torch")


@implementation(device="cuda", family="cudnn", summary="torch.nn.functional.conv_transpose2d, TF32 off", arrays="torch")
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Lay the kernels of weight (C, K/groups, R, S), scaled by the pixels of input (N, C, H, W), on the output and add."""
    with torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=False, fp32_precision="ieee"
    ):
        return functional.conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)
