"""torch.nn.functional.conv2d on a CUDA device, float32 multiplied in half precision (fp16).

2 N K P Q (C/g) R S FLOPs or fewer, on tensor cores: inputs, weights and outputs are rounded to 10 bits of mantissa, sums are
kept in float32; beyond 65504 they are infinite; extra memory: input, weight and output once more in half the bytes, in
channels-last order, and the work space that cuDNN asks for. The casts are part of each call; the output stays in that order,
seen as (N, K, P, Q). cuDNN chooses by its heuristics, not by trying (cudnn.benchmark off).
https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
"""

import torch
from torch.nn import functional

from impls.contract import implementation
from impls.conv2d.devices import require_torch
from impls.conv2d.tensors import pad_unevenly

require_torch("gpu.torch_fp16")


@implementation(
    device="cuda",
    family="fp16",
    summary="torch: half precision (fp16), channels last, casts included",
    arrays="torch",
    limits={"dtype": "float32"},
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image, padding = pad_unevenly(input, padding)
    image, taps = (each.to(torch.float16, memory_format=torch.channels_last) for each in (image, weight))
    start = None if bias is None else bias.to(torch.float16)
    with torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=False, allow_tf32=False, fp32_precision="ieee"
    ):
        return functional.conv2d(image, taps, start, stride, padding, dilation, groups).to(torch.float32)
