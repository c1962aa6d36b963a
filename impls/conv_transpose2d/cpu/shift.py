"""One product for every tap, which mixes the channels of all pixels, added into a shifted, strided slice of the output.

2 N C H W (K/g) R S FLOPs in R S matrix products; extra memory: the input, one product and the output with its padding,
in the order of channels, images, pixels, so that one product serves the whole batch. It is col2im, which frameworks
built on matrix products use here, a tap at a time: no matrix of all taps is kept. cpu.shift_matmul of conv2d, taken
back.
"""

import numpy as np

from impls.contract import implementation
from impls.conv2d.geometry import add_bias
from impls.conv_transpose2d.arguments import output_shape


@implementation(
    device="cpu", family="shift", summary="NumPy: one matrix product per tap, summed into shifted, strided slices"
)
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Lay the kernels of weight (C, K/groups, R, S), scaled by the pixels of input (N, C, H, W), on the output and add."""
    n, c, *size = input.shape
    taps = weight.shape[2:]
    _, k, p, q = output_shape(input.shape, weight.shape, stride, padding, output_padding, groups, dilation)
    pixels = input.swapaxes(0, 1).reshape(groups, c // groups, -1)
    mixers = np.ascontiguousarray(weight.reshape(groups, c // groups, -1, *taps).transpose(3, 4, 0, 2, 1))
    padded = np.zeros((k, n, p + 2 * padding[0], q + 2 * padding[1]), input.dtype)
    height, width = (stride[axis] * (size[axis] - 1) + 1 for axis in (0, 1))
    for r, s in np.ndindex(taps):
        top, left = r * dilation[0], s * dilation[1]
        product = (mixers[r, s] @ pixels).reshape(k, n, *size)
        padded[:, :, top : top + height : stride[0], left : left + width : stride[1]] += product
    inner = padded[:, :, padding[0] : padding[0] + p, padding[1] : padding[1] + q]
    return add_bias(np.ascontiguousarray(inner.swapaxes(0, 1)), bias)
