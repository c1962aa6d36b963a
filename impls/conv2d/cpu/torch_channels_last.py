"""torch.nn.functional.conv2d on the CPU in channels-last order, which oneDNN's kernels take without reordering.

2 N K P Q (C/g) R S FLOPs; extra memory: input and weight once more, in that order. The copies are part of each call;
the output stays in channels-last order, seen as (N, K, P, Q).
https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html
"""

import torch
from torch.nn import functional

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import require_patches
from impls.conv2d.tensors import kernels, pad_unevenly, tensor


@implementation(device="cpu", family="library", summary="torch: channels last, copies included")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    if input.itemsize == 8:  # float64, for which torch has a patch matrix of the whole batch alone
        require_patches(input, weight.shape[2:], output_shape(input.shape, weight.shape, stride, padding, dilation)[2:])
    image, padding = pad_unevenly(tensor(input), padding)
    image = image.contiguous().contiguous(memory_format=torch.channels_last)
    taps = kernels(weight).contiguous(memory_format=torch.channels_last)
    start = None if bias is None else tensor(bias)
    return functional.conv2d(image, taps, start, stride, padding, dilation, groups).numpy()
