"""Two Python loops over the output's pixels, each of which multiplies a slice of the image with the kernel and sums it up.

2 N K P Q (C/g) R S FLOPs; extra memory: the padded image and one window. From a course page on profiling. The ladder's
second rung: the interpreter is paid for each output instead of for each product.
"""

import numpy as np

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import add_bias, pad


@implementation(device="cpu", family="direct", summary="Python loops over outputs, NumPy inside the window")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image = pad(input, padding)
    output = np.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    outputs, channels = len(weight) // groups, weight.shape[1]
    spans = [d * (taps - 1) + 1 for d, taps in zip(dilation, weight.shape[2:], strict=True)]
    for n, k, p, q in np.ndindex(output.shape):
        first, top, left = k // outputs * channels, p * stride[0], q * stride[1]
        rows, columns = slice(top, top + spans[0], dilation[0]), slice(left, left + spans[1], dilation[1])
        output[n, k, p, q] = (image[n, first : first + channels, rows, columns] * weight[k]).sum()
    return add_bias(output, bias)
