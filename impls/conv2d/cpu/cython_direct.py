"""Direct convolution in Cython, tile by tile in vector registers, threaded with OpenMP.

2 N K P Q (C/g) R S FLOPs. Several output rows are summed at once, so that each vector of the input, once loaded, serves
all taps and rows that see it (register blocking, as in Iandola et al., "Communication-minimizing 2D convolution in GPU
registers", ICIP 2013); weights stay in registers if they are few. Several outputs of a group, up to six, or twelve
with AVX-512, share a tile of one row if there are more than two, with AVX-512 than three, or four in large images.
1x1 layers of one or two outputs, not padded, are sums of planes, eight at a time over blocks of 2 KB. Others are one
row of tiles, whose pixels the first outputs copy while they are summed, or, where strided, are copied before, channel by
channel, all that one tile sees side by side (packing, as in Goto and van de
Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34, 2008), 384 channels at a time, or with AVX-512
all of them; there up to 14 outputs, up to 28 of up to 192 channels or of images of more than 2^19 numbers (in larger
batches than that not where planes are over 48 kB and a multiple of four cache lines), and any number of up to 16 are
summed from where their pixels lie, with packed weights. Tiles of strided layers and of up to 512 columns are copied so
tap by tap too, 384 at a time, with 20 outputs and 40 taps and more, with AVX-512 with 20 taps and so many outputs that
rows with empty lanes would take longer. Other large images are read where they lie, but for their edges; small or
strided ones are copied with their padding. Images of one channel, as depthwise layers have, of up to 512 columns are
read where they lie too, masks leaving padding out, with AVX-512 and square kernels of 3, 5 and 7, with AVX2 of 3 and up
to 64 columns, undilated and with strides of 1 or 2. Depthwise images are else mostly transposed to vectors of channels,
a band of rows at a time, and so are those of too few columns for vectors along them. Along rows, outputs of 8 MB and
more are written by non-temporal stores. For each thread, extra memory: a padded copy of at most about 100 kB, or of the
rows that eight output rows see if that is more, with several outputs at once a number for each weight of an output
and, without AVX-512, as many output rows as the kernel has; tiles of 192 kB and one more, or of two if that is more,
or for all of them the packed weights; across channels their weights and 512 kB, or a vector of channels of what twice
as many output rows see as the kernel has, and of their sums if that is more. Up to 2^12 products for each byte of a
vector are one thread's: others take longer to begin.
"""

import functools
import math

import numpy as np

import impls.conv2d.cpu._cython_direct as _cython_direct  # type: ignore[import-not-found]
from impls.contract import implementation
from impls.conv2d.arguments import output_shape

# The cost model of depthwise layers, _is_faster_across(): what counts how much, beside how many lanes have work. Found with 8
# to 384 channels of 7 to 224 columns, AVX-512 and AVX2, one thread and two, and a few of up to 3000 columns.
MANY_REGISTERS = 32  # as AVX-512 has
TRANSPOSE_TAPS = 8  # in strips, transposing a vector to channels takes as long as so many taps
HELD_TAPS = 9  # whose weights many registers hold beside the sums
ONE_VECTOR_HELD = 0.85  # in strips, of a row that is one vector: its sums are too few to hide the time that each takes
ONE_VECTOR = 0.7  # the same where the weights are loaded again for each row
MAX_COLUMNS = 512  # of the output, and of the input, beyond which bands of rows hold few of them, and ...
MAX_WIDTH = 1024  # ... neighbouring bands see much of the same
LOADED_ONCE = 1.2  # across channels, each pixel is loaded once for all outputs that see it, and ...
UNSORTED = 1.44  # ... pixels of strided rows need not be sorted first
ONE_TILE = 0.6  # along rows, a tile of one vector has too few sums to hide the time that each takes
FEW_REGISTERS = 0.6  # along rows, or too many sums to be held


@functools.lru_cache(maxsize=4096)
def _is_faster_across(n, channels, width, out, kernel, stride, dilation, machine):
    """Whether depthwise sums are faster in vectors across channels than along rows: by how many of their lanes have work.

    n images; width: of the input; out: rows and columns of the output; machine: what _machine says.
    """
    (rows, columns), (lanes, threads, registers) = out, machine
    vectors = n * -(-channels // lanes)
    across = n * channels / (lanes * vectors)
    if rows < threads * kernel[0]:  # too few to give threads bands of them
        across *= vectors / (threads * -(-vectors // threads))
    if _cython_direct.sums_in_strips(width, kernel, stride, dilation):
        taps = math.prod(kernel)
        along = columns / (lanes * -(-columns // lanes))
        if columns <= lanes:
            along *= ONE_VECTOR_HELD if taps == HELD_TAPS and registers >= MANY_REGISTERS else ONE_VECTOR
        return across * taps / (taps + TRANSPOSE_TAPS) > along
    if columns > MAX_COLUMNS or width > MAX_WIDTH:
        return False
    across *= LOADED_ONCE if stride[1] == 1 else UNSORTED
    # As next_cut in _direct_plan.h has it: tiles of four vectors, and of one, two or four for the columns that are left.
    whole, rest = columns // (4 * lanes), columns % (4 * lanes)
    along = columns / (lanes * (4 * whole + next(count for count in (0, 1, 2, 4) if rest <= count * lanes)))
    if columns <= lanes:
        along *= ONE_TILE
    if registers < MANY_REGISTERS:
        along *= FEW_REGISTERS
    return across > along


def _machine(itemsize):
    """How many elements a vector holds, threads, and registers."""
    return _cython_direct.VECTOR_BYTES // itemsize, _cython_direct.threads(), _cython_direct.REGISTERS


@implementation(device="cpu", family="direct", summary="Cython: tiles of rows in vector registers, OpenMP")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    across = False
    if len(input) and groups >= 8 and groups == len(weight) == input.shape[1]:
        sides = output_shape(input.shape, weight.shape, stride, padding, dilation)[2:]
        shapes = *input.shape[:2], input.shape[3], sides, weight.shape[2:]
        across = _is_faster_across(*shapes, stride, dilation, _machine(input.itemsize))
    start = None if bias is None else np.ascontiguousarray(bias)
    arrays = np.ascontiguousarray(input), np.ascontiguousarray(weight), start
    return _cython_direct.conv2d(*arrays, stride, padding, dilation, groups, across, out)
