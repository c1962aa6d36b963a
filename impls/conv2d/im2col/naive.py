"""A patch matrix filled element by element, then one matrix product.

For every pixel and tap: unravel the flat index by hand, test for the border, copy or fill. N-dimensional, with a fill
value, as a course page on profiling has it. 2 N K P Q (C/g) R S FLOPs in the product, N C P Q R S steps of Python
before it; extra memory: the patch matrix, C R S P Q elements an image.
"""

import numpy as np

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import add_bias, require_patches


def _unravel(index, shape):
    """Turn a flat index into one index per axis, the last axis running fastest."""
    indices = []
    for size in reversed(shape):
        indices.append(index % size)
        index //= size
    return indices[::-1]


def im2col(image, kernel, pixels, stride, before, dilation, *, fill=0):
    """Lay the windows of an N-dimensional image out as the columns of a matrix (taps, pixels).

    kernel, pixels: sizes per axis of window and output; before: the padding in front of each axis.
    """
    columns = np.empty((int(np.prod(kernel)), int(np.prod(pixels))), image.dtype)
    for tap, pixel in np.ndindex(columns.shape):
        place = tuple(
            p * step + t * d - pad
            for p, t, step, d, pad in zip(
                _unravel(pixel, pixels), _unravel(tap, kernel), stride, dilation, before, strict=True
            )
        )
        inside = all(0 <= i < size for i, size in zip(place, image.shape, strict=True))
        columns[tap, pixel] = image[place] if inside else fill
    return columns


def multiply(im2col, input, weight, output, stride, padding, dilation, groups):
    """Fill output (N, K, P, Q) with the products of weight and the patch matrix that im2col makes of each image."""
    _, k, p, q = output.shape
    require_patches(input[:1], weight.shape[2:], (p, q))  # an image at a time
    before = [pad[0] for pad in padding]
    matrix = weight.reshape(groups, k // groups, -1)
    for image, result in zip(input, output, strict=True):
        patches = [im2col(channel, weight.shape[2:], (p, q), stride, before, dilation) for channel in image]
        columns = np.concatenate(patches).reshape(groups, matrix.shape[2], p * q)
        result[:] = (matrix @ columns).reshape(k, p, q)
    return output


@implementation(device="cpu", family="im2col", summary="a patch matrix filled element by element, then one matrix product")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = np.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    return add_bias(multiply(im2col, input, weight, output, stride, padding, dilation, groups), bias)
