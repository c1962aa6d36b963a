"""In torch: one product that mixes the channels of all images for every tap, then a slice of it added in place.

2 N K H W (C/g) R S FLOPs over the padded H x W, whatever the stride; extra memory: the padded image and one product of
N K such images. The fastest form of a post on writing a convolution in PyTorch; here for any kernel size and stride.
"""

from impls import checks
from impls.contract import implementation
from impls.conv2d.shifted_products import convolve
from impls.conv2d.tensors import kernels, tensor


@implementation(
    device="cpu", family="shift", summary="torch: a matrix product over channels for each tap, shifted and summed"
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    n, c, *sides = input.shape
    height, width = (side + sum(more) for side, more in zip(sides, padding, strict=True))
    whole = n * (c + len(weight)) * height * width * input.itemsize
    checks.require_memory(whole, "cpu.torch_shift_matmul's padded image and product")
    start = None if bias is None else tensor(bias)
    return convolve(tensor(input), kernels(weight), start, stride, padding, dilation, groups).numpy()
