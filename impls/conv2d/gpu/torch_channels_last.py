"""torch.nn.functional.conv2d on a CUDA device in channels-last order, float32 as float32.

2 N K P Q (C/g) R S FLOPs or fewer where cuDNN picks a fast algorithm; extra memory: input and weight once more, in that
order. The copies are part of each call; the output stays in channels-last order, seen as (N, K, P, Q). TensorFloat-32 is
off, and cuDNN chooses by its heuristics, not by trying (cudnn.benchmark off).
https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html
"""

import torch
from torch.nn import functional

from impls.contract import implementation
from impls.conv2d.devices import require_torch
from impls.conv2d.tensors import pad_unevenly

require_torch("gpu.torch_channels_last")


@implementation(device="cuda", family="cudnn", summary="torch: channels last, copies included, TF32 off", arrays="torch")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image, padding = pad_unevenly(input, padding)
    image, taps = (each.contiguous(memory_format=torch.channels_last) for each in (image, weight))
    with torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=False, allow_tf32=False, fp32_precision="ieee"
    ):
        return functional.conv2d(image, taps, bias, stride, padding, dilation, groups)
