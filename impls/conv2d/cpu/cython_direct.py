"""Direct convolution in Cython, tile by tile in vector registers, threaded with OpenMP.

2 N K P Q (C/g) R S FLOPs. Four output rows are summed at once, so that each vector of the input, once loaded, serves
all taps and rows that see it (register blocking, as in Iandola et al., "Communication-minimizing 2D convolution in
GPU registers", ICIP 2013); weights stay in registers where they are few. Large images are read where they lie, but
for their edges; small or strided ones are copied with their padding. Small depthwise images, along whose rows
vectors would often be half empty, are transposed to vectors of channels. Outputs of 8 MB and more go past the
caches. For each thread, extra memory: a padded copy of at most about 100 kB, or of the rows that eight output rows
see where that is more, or of 16 channels of one small image.
"""

import functools
import math

import numpy as np

import impls.conv2d.cpu._cython_direct as _cython_direct  # type: ignore[import-not-found]
from impls.contract import implementation
from impls.conv2d.arguments import output_shape


def _aligned(shape, dtype):
    """np.empty that, from 1 MB on, begins at a cache line: a vector stored across two of them takes twice as long."""
    count = math.prod(shape)
    if count * dtype.itemsize < 1 << 20:
        return np.empty(shape, dtype)
    memory = np.empty(count + 64 // dtype.itemsize, dtype)
    first = -memory.ctypes.data % 64 // dtype.itemsize
    return memory[first : first + count].reshape(shape)


@functools.lru_cache(maxsize=4096)
def _is_faster_across(input_shape, output_shape, itemsize, threads):
    """Whether depthwise sums are faster in vectors across channels than along rows: where more of their lanes have work.

    Found with 8 to 512 channels of 7 to 64 columns, AVX-512 and AVX2, one thread and two: docs/speed.md.
    """
    (n, channels, height, width), columns = input_shape, output_shape[3]
    if height * width > 4096:  # a whole image of a vector of channels should stay near the core
        return False
    lanes = _cython_direct.WIDTH // itemsize
    jobs = n * -(-channels // lanes)
    turns = -(-jobs // threads)
    across = n * channels / (lanes * threads * turns)
    if threads > 1:
        across *= turns / (turns + 0.3)  # each thread first makes an image of zeros
    whole, rest = columns // (4 * lanes), columns % (4 * lanes)
    tile = next(count for count in (0, 1, 2, 4) if rest <= count * lanes)  # vectors that compute the rest
    along = columns / (lanes * (4 * whole + tile))
    return across * (1 if _cython_direct.instruction_set() == "avx512" else 1.6) > along  # fewer registers hold fewer rows


@implementation(device="cpu", family="direct", summary="Cython: tiles of rows in vector registers, OpenMP")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = _aligned(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    before = padding[0][0], padding[1][0]
    if len(input):
        start = np.zeros(len(weight), input.dtype) if bias is None else np.ascontiguousarray(bias)
        arrays = np.ascontiguousarray(input), np.ascontiguousarray(weight)
        depthwise = groups == len(weight) == input.shape[1] and groups >= 8
        across = depthwise and _is_faster_across(input.shape, output.shape, input.itemsize, _cython_direct.threads())
        kernel = _cython_direct.channels if across else _cython_direct.rows
        kernel(*arrays, start, output, stride, before, dilation, groups)
    return output
