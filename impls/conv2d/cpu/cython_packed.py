"""Direct convolution over packed weights in Cython, blocked in vector registers, threaded with OpenMP.

2 N K P Q (C/g) R S FLOPs. Vectors run along the output channels, for which the weights are packed anew at each call: 14
pixels of two such vectors, or of one where that is all, are summed at once in registers, each pixel's input broadcast
to them, so that any stride, dilation and kernel costs the same; the sums are transposed when they are stored (register
blocking with packed weights as in Georganas et al., SC'18, arXiv 1808.05567). Padded images are copied first, unless two
blocks of outputs are all and few outputs of a row see padding, and large batches for strided 1x1 layers without the
places that no output sees; rows of taps that see only padding are left out.
Threads have groups of their own where there are enough, and images or bands of an image where the weights are soon
packed for each of them. In all, extra memory: 8 MB of copied images, or one where that is more, and one of a group for
each thread where it has its own; and for each thread the weights of 32 output channels, or of a group, without groups
of up to 256, where it has batches of images of its own.
"""

import numpy as np

import impls.conv2d.cpu._cython_packed as _cython_packed  # type: ignore[import-not-found]
from impls.contract import implementation
from impls.conv2d.arguments import output_shape


@implementation(device="cpu", family="direct", summary="Cython: packed weights, blocked in vector registers, OpenMP")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    return _conv2d(input, np.ascontiguousarray(weight), None, bias, stride, padding, dilation, groups)


def prepare(weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Pack weight (K, C/groups, R, S) once; return conv2d as a function of input (N, C, H, W) alone."""
    weight = np.array(weight, order="C")
    packed = _cython_packed.pack(weight, groups)
    return lambda input: _conv2d(input, weight, packed, bias, stride, padding, dilation, groups)


def _conv2d(input, weight, packed, bias, stride, padding, dilation, groups):
    output = np.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    if len(input):
        start = np.zeros(len(weight), input.dtype) if bias is None else np.ascontiguousarray(bias)
        before = padding[0][0], padding[1][0]
        _cython_packed.conv2d(np.ascontiguousarray(input), weight, start, output, stride, before, dilation, groups, packed)
    return output
