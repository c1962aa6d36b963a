"""torch.nn.functional.conv2d on the CPU: oneDNN's direct kernels or a native patch matrix, as torch chooses.

2 N K P Q (C/g) R S FLOPs; extra memory: what torch reorders or lays out. The baseline of every table.
https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
"""

from torch.nn import functional

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import require_patches
from impls.conv2d.tensors import kernels, pad_unevenly, tensor


@implementation(device="cpu", family="library", summary="torch.nn.functional.conv2d")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    if input.itemsize == 8:  # float64, for which torch has a patch matrix of the whole batch alone
        require_patches(input, weight.shape[2:], output_shape(input.shape, weight.shape, stride, padding, dilation)[2:])
    image, padding = pad_unevenly(tensor(input), padding)
    start = None if bias is None else tensor(bias)
    return functional.conv2d(image, kernels(weight), start, stride, padding, dilation, groups).numpy()
