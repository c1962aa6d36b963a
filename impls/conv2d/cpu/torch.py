"""torch.nn.functional.conv2d on the CPU: oneDNN's direct kernels or a native patch matrix, as torch chooses.

2 N K P Q (C/g) R S FLOPs; extra memory: what torch reorders or lays out. The baseline of every table.
https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
"""

import torch

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import require_patches
from impls.conv2d.tensors import kernels, pad_unevenly, tensor

convolve, share = torch.nn.functional.conv2d, torch.from_numpy


@implementation(device="cpu", family="library", summary="torch.nn.functional.conv2d")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    if input.itemsize == 8:  # float64, for which torch has a patch matrix of the whole batch alone
        require_patches(input, weight.shape[2:], output_shape(input.shape, weight.shape, stride, padding, dilation)[2:])
    # No function is called where arrays suit torch already: each call takes a microsecond or two where a
    # convolution has filled the caches, and this implementation is the measure of all others.
    try:
        image = share(input) if input.flags.carray else tensor(input)
        factors = share(weight) if weight.flags.carray else kernels(weight)
    except ValueError:  # steps backwards along what is not more than one
        image, factors = tensor(input), kernels(weight)
    start = None if bias is None else tensor(bias)
    (top, bottom), (left, right) = padding
    if top != bottom or left != right:
        image, (top, left) = pad_unevenly(image, padding)
    return convolve(image, factors, start, stride, (top, left), dilation, groups).numpy()
