"""A patch matrix lowered along one axis alone, and one matrix product for every output row on overlapping parts of it.

MEC, Cho and Brand, arXiv 1706.06873. 2 N K P Q (C/g) R S FLOPs; extra memory: C S H Q elements an image instead of the
C R S P Q of a whole patch matrix, one in R of it. A vertical dilation takes the rows of each product apart and copies
them.
"""

import numpy as np

from impls import checks
from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import add_bias, pad


@implementation(
    device="cpu", family="im2col", summary="NumPy, MEC: patches along rows only, one matrix product per output row"
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image = pad(input, padding)
    n, k, p, q = output_shape(input.shape, weight.shape, stride, padding, dilation)
    channels, taps_y, taps_x = weight.shape[1:]
    height, span = image.shape[2], dilation[1] * (taps_x - 1) + 1
    checks.require_memory(q * height * taps_x * image.shape[1] * image.itemsize, "im2col.mec's lowered image")
    output = np.empty((n, k, p, q), input.dtype)
    # (groups, R S C/g, K/g), the order in which the lowered image has them.
    matrix = (
        weight.reshape(groups, k // groups, channels, taps_y, taps_x)
        .transpose(0, 3, 4, 2, 1)
        .reshape(groups, -1, k // groups)
    )
    for source, target in zip(image, output, strict=True):
        strips = np.lib.stride_tricks.sliding_window_view(source, span, axis=2)[:, :, :: stride[1], :: dilation[1]]
        # (C, H, Q, S) to (groups, Q, H, S, C/g): whatever lies below a pixel follows it in memory.
        lowered = np.ascontiguousarray(strips.reshape(groups, channels, height, q, taps_x).transpose(0, 3, 2, 4, 1))
        for row in range(p):
            top = row * stride[0]
            rows = lowered[:, :, top : top + dilation[0] * (taps_y - 1) + 1 : dilation[0]]
            product = rows.reshape(groups, q, -1) @ matrix
            target[:, row] = product.transpose(0, 2, 1).reshape(k, q)
    return add_bias(output, bias)
