"""Direct convolution over packed weights in Cython, blocked in vector registers, threaded with OpenMP.

2 N K P Q (C/g) R S FLOPs. Vectors run along the output channels, for which the weights are packed again at each call: 14
pixels of two such vectors, or of as many as have work, AVX-512's cut in half where that will do, are summed at once in
registers, each pixel's input broadcast to them, so that any stride, dilation and kernel costs the same; the sums are
transposed when they are stored (register blocking with packed weights as in Georganas et al., SC'18, arXiv 1808.05567).
Rows and columns of taps that see only padding are left out, row by row of outputs and pixel by pixel. Padded images are
copied first only where more than three outputs at a side of a row see padding, where planes take each other's place in the
cache, and for strides over 2 where half a vector of outputs is all; large batches for strided 1x1 layers without the places
that no output sees.
Where a block's packed weights and the pixels that up to 64 tiles see come to over 1 MB, these tiles are summed over
some of the input channels after the other, so that a core keeps both meanwhile. Where six pixels are summed at once, as
with AVX2, they are from 128 KB on, images for 1x1 layers of over 256 KB are copied six pixels of all channels at a
time, in bands that stay near a core for all outputs, those for strided 1x1 layers of over 48 outputs without the places
that no output sees, and one vector of outputs is summed for up to twelve pixels, one left over together with two others
for up to four, which fills registers. Threads have groups of their own if there are enough, and images or bands of
an image where the weights are soon packed for each of them. In all, extra memory: 8 MB of copied images, or one where
that is more, and one of a group for each thread where it has its own; and for each thread 115 kB of sums and the
weights of 32 output channels, or of a group, without groups of up to 256 if it has batches of images of its own,
and all of them if it has bands of six pixels. Up to 2^12 products for each byte of a vector are one thread's: others
take longer to begin.
"""

import numpy as np

import impls.conv2d.cpu._cython_packed as _cython_packed  # type: ignore[import-not-found]
from impls.contract import implementation


@implementation(device="cpu", family="direct", summary="Cython: packed weights, blocked in vector registers, OpenMP")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    return _compute(input, np.ascontiguousarray(weight), bias, stride, padding, dilation, groups, None, out)


def prepare(weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Pack weight (K, C/groups, R, S) once; return conv2d as a function of input (N, C, H, W) alone."""
    weight = np.array(weight, order="C")
    packed = _cython_packed.pack(weight, groups)
    return lambda input, out=None: _compute(input, weight, bias, stride, padding, dilation, groups, packed, out)


def _compute(input, weight, bias, stride, padding, dilation, groups, packed, out):
    start = None if bias is None else np.ascontiguousarray(bias)
    kernel = _cython_packed.KERNELS[input.itemsize]
    return kernel(np.ascontiguousarray(input), weight, start, stride, padding, dilation, groups, packed, out)
