"""torch.nn.functional.conv2d on a CUDA device, float32 as float32.

2 N K P Q (C/g) R S FLOPs or fewer where cuDNN picks a fast algorithm; extra memory: the work space that it asks for.
TensorFloat-32 is off, and cuDNN chooses by its heuristics, not by trying (cudnn.benchmark off), so that a call's time
does not depend on the calls before it. https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
"""

import torch
from torch.nn import functional

from impls.contract import implementation
from impls.conv2d.devices import require_torch
from impls.conv2d.tensors import pad_unevenly

require_torch("gpu.torch")


@implementation(device="cuda", family="cudnn", summary="torch.nn.functional.conv2d, TF32 off", arrays="torch")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image, padding = pad_unevenly(input, padding)
    with torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=False, allow_tf32=False, fp32_precision="ieee"
    ):
        return functional.conv2d(image, weight, bias, stride, padding, dilation, groups)
