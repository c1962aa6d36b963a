"""torch.nn.functional.conv2d on a CUDA device, float32 multiplied as TensorFloat-32.

2 N K P Q (C/g) R S FLOPs or fewer, on tensor cores: inputs and weights are rounded to 10 bits of mantissa, sums are
kept in float32; extra memory: the work space that cuDNN asks for. float64 stays float64. cuDNN chooses by its
heuristics, not by trying (cudnn.benchmark off).
https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices
"""

import torch
from torch.nn import functional

from impls.contract import implementation
from impls.conv2d.devices import require_torch
from impls.conv2d.tensors import pad_unevenly

require_torch("gpu.torch_tf32")


@implementation(device="cuda", family="tf32", summary="torch.nn.functional.conv2d, TF32 on", arrays="torch")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image, padding = pad_unevenly(input, padding)
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=False, allow_tf32=True):
        return functional.conv2d(image, weight, bias, stride, padding, dilation, groups)
