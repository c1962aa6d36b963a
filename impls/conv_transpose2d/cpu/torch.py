"""torch.nn.functional.conv_transpose2d on the CPU.

2 N C H W (K/g) R S FLOPs; extra memory: what torch reorders or lays out. The baseline of every table.
https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv_transpose2d.html
"""

from torch.nn import functional

from impls.contract import implementation
from impls.conv2d.tensors import kernels, tensor


@implementation(device="cpu", family="library", summary="torch.nn.functional.conv_transpose2d")
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Lay the kernels of weight (C, K/groups, R, S), scaled by the pixels of input (N, C, H, W), on the output and add."""
    arrays = tensor(input), kernels(weight), None if bias is None else tensor(bias)
    return functional.conv_transpose2d(*arrays, stride, padding, output_padding, groups, dilation).numpy()
