"""A patch matrix by recursion over the axes: the first axis is peeled off, the rest is im2col of one dimension less.

N-dimensional, with a fill value, down to im2col.naive for one axis. A line of the image is needed by every window row
that touches it, so its patches are kept once made: one in R of the naive steps, N C H Q S. 2 N K P Q (C/g) R S FLOPs in
the product; extra memory: the patch matrix and the kept lines. From a course page on profiling, which asks what one can say
of it.
"""

import numpy as np

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import add_bias
from impls.conv2d.im2col import naive


def im2col(image, kernel, pixels, stride, before, dilation, *, fill=0):
    """Lay the windows of an N-dimensional image out as the columns of a matrix (taps, pixels), as im2col.naive does."""
    if image.ndim == 1:
        return naive.im2col(image, kernel, pixels, stride, before, dilation, fill=fill)
    rest = [axes[1:] for axes in (kernel, pixels, stride, before, dilation)]
    lines = {}
    outside = np.full((int(np.prod(kernel[1:])), int(np.prod(pixels[1:]))), fill, image.dtype)

    def line(place):
        if not 0 <= place < len(image):
            return outside
        if place not in lines:
            lines[place] = im2col(image[place], *rest, fill=fill)
        return lines[place]

    taps = [
        np.concatenate([line(p * stride[0] + t * dilation[0] - before[0]) for p in range(pixels[0])], axis=1)
        for t in range(kernel[0])
    ]
    return np.concatenate(taps)


@implementation(device="cpu", family="im2col", summary="a patch matrix by recursion over the axes, then one matrix product")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = np.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    return add_bias(naive.multiply(im2col, input, weight, output, stride, padding, dilation, groups), bias)
