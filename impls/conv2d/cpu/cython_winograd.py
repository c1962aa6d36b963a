"""Winograd's F(4x4, 3x3) in Cython, block by block in the caches, products by a kernel of its own, threaded with OpenMP.

Lavin and Gray, arXiv 1509.09308; the points 0, 1, -1, 2, -2 and infinity. Every 6x6 tile of the image is transformed, its
36 numbers are multiplied channel by channel as 36 matrix products, and 4x4 outputs come back: 36 products where the
definition has 144, so a quarter of 2 N K P Q (C/g) R S FLOPs and the transforms. Where the dilation is a multiple of the
stride, the pixels that some outputs see lie as far apart as those outputs do, and a tile is of every second, third or
fourth along each axis. Larger kernels are cut into pieces of at most 3x3 taps, with a stride of 2 of every second tap,
whose products are summed before they come back: 121 where the definition has 400 for 5x5, 289 for 784. Vectors run along
the channels throughout: a transform is then a few sums of vectors, and a product of 14 tiles by one or two vectors of
output channels stays in registers. In all, extra memory: 4 MB of transformed tiles, up to 16 MB where 96 tiles take as many,
or a group of them for each thread where that is more, and for each thread 0.3 MB of products and 36 (C/g) transformed
weights of each piece for each of 32 output channels. Rounds more than a direct sum.
"""

import numpy as np

import impls.conv2d.cpu._cython_winograd as _cython_winograd  # type: ignore[import-not-found]
from impls.contract import implementation
from impls.conv2d import geometry


@implementation(
    device="cpu",
    family="winograd",
    summary="Cython: Winograd F(4x4, 3x3) blocked for the caches, OpenMP",
    limits={"kernel": {2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, "dilation/stride": {0.5, 1, 2, 3, 4}},
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    return _conv2d(input, weight, None, bias, stride, padding, dilation, groups, out)


def prepare(weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Transform weight (K, C/groups, R, S) once; return conv2d as a function of input (N, C, H, W) alone."""
    weight = np.array(weight, order="C")
    packed = _cython_winograd.pack(weight, stride, dilation, groups)
    return lambda input, out=None: _conv2d(input, weight, packed, bias, stride, padding, dilation, groups, out)


def _conv2d(input, weight, packed, bias, stride, padding, dilation, groups, out):
    output = geometry.empty(input, weight, stride, padding, dilation, out)
    if len(input):
        start = np.zeros(len(weight), input.dtype) if bias is None else np.ascontiguousarray(bias)
        arrays = np.ascontiguousarray(input), np.ascontiguousarray(weight), start, output
        before = padding[0][0], padding[1][0]
        if not _cython_winograd.conv2d(*arrays, stride, before, dilation, groups, packed):
            return geometry.by_definition(input, weight, bias, stride, padding, dilation, groups, out=output)
    return output
