"""Rules for problems without measurements: the kinds of problems, and the implementations to try for each kind in order.

The thresholds are where the measurements of cpu/auto.toml, with AVX2 and AVX-512, on one thread and two, turn from one
implementation to another. docs/auto.md ("By rule") has the rules in words, and on how many problems each is wrong.
"""

from __future__ import annotations

import math

from impls.conv2d.measurements import MAX_CACHED_TAPS, MAX_SMALL_FLOPS, Problem, untiled

# For problems of each kind: first what was ahead of torch on most of them on every machine that was measured, or torch; then
# what is fastest without it; the last of each needs NumPy alone.
PACKED = ["cpu.cython_packed", "cpu.torch", "cpu.numba_direct", "im2col.strided"]
ALONG_ROWS = ["cpu.cython_direct", "cpu.torch", "cpu.cython_packed", "cpu.numba_direct", "im2col.strided"]
RULES = {
    "few channels": ["cpu.cython_direct", "cpu.numba_direct", "cpu.opencv", "cpu.torch", "cpu.shift_matmul"],
    "3x3 layer": ["cpu.cython_winograd", "cpu.numba_winograd", "cpu.torch", "im2col.strided"],
    "1x1 layer": ALONG_ROWS,
    "1x1 layer along channels": PACKED,
    "few pixels": ALONG_ROWS,
    "small layer": PACKED,
    "layer for wide vectors": PACKED,
    "narrow layer": ALONG_ROWS,
    "narrow layer along channels": PACKED,
    "larger kernel": ["cpu.cython_winograd", "cpu.torch", "cpu.cython_packed", "im2col.strided"],
    "larger kernel on few pixels": PACKED,
    "grouped layer": PACKED,
    "large layer": ["cpu.torch", "cpu.cython_packed", "cpu.numba_direct", "im2col.strided"],
}
FRUGAL = "cpu.shift_matmul"  # the last of all: NumPy alone, and less memory than patches take

# The instruction set with 32 registers of 16 float32 each, with which kernels of ours are mostly faster on larger layers.
WIDE_VECTORS = "avx512"
HALF_LANES = 8  # of such a register: fewer outputs, channels or columns leave most of a vector along them empty
# Below, outputs and channels are those of a group, pixels and columns those of the output, and taps those of one channel.
# Few channels: vectors along them are not worth their packing.
MAX_FEW_CHANNELS = 6  # channels and outputs
MAX_SORTED_STRIDE = 2  # up to which pixels are soon sorted into vectors along rows
MAX_FEW_UNSORTED_CHANNELS = 3  # with wider strides, where the compiled kernels, which sort any, are not there
MAX_HALF_FILLED_COLUMNS = 8  # of several images, with wide vectors, half of each empty along rows: packed weights are faster
MIN_SHARING_OUTPUTS = 3  # that make it worth while to load a pixel once for all of them
# 3x3 layers and larger kernels: Winograd's fewer products outweigh its transforms.
MIN_WINOGRAD_CHANNELS = 16  # for larger kernels as many outputs, too
MAX_UNTILED = 1  # of untiled(): beyond it, less than half of what Winograd's tiles hold would be used
MAX_FEW_PIXELS = 112  # of all images, for which small layers transform their weights in vain
MAX_FEW_PIECED_PIXELS = 200  # the same for kernels in pieces, each of which has transforms of its own
MAX_CHANNELS_PER_OUTPUT = 16  # with wide vectors, of at least so many images ...
MIN_UNSHARED_IMAGES = (
    8  # ... and over MAX_CACHED_TAPS taps of all channels: transforms of images are shared by too few outputs
)
# 1x1 layers: sums along rows, but for outputs that fill one vector or two of AVX2 if there are many channels.
MIN_VECTOR_PIXELS = 16  # of an image, none of them padding: one vector
FULL_VECTOR_OUTPUTS = 8, 16
FULL_VECTOR_CHANNELS = range(128, 1200)
# Few pixels of one image, one and two of the widest vectors: packing weights for so few takes as long as their sums.
VECTOR_PIXELS = 16, 32
# Narrow layers, of few channels: sums along rows, but for much output of small images or by large kernels.
MAX_UNSORTED_OUTPUTS = 32  # that are summed along rows with wide vectors whatever the stride
MAX_NARROW_OUTPUTS = 16  # with more, packed weights are faster on small images and for large kernels
MAX_NARROW_PIXELS = 1000  # of a small image
MAX_NARROW_TAPS = 100  # with more, a kernel is large
MIN_BROAD_COLUMNS = 32  # from which on strided rows are summed along themselves without wide vectors
MIN_PACKED_TAPS = 49  # from which on packed weights are faster there
MIN_LAID_OUT_OUTPUTS = 20  # from which on strided rows are laid out, tap by tap, which packed weights outrun, ...
MIN_LAID_OUT_TAPS = 40  # ... with at least so many taps of all channels
# Small layers, where torch needs much of the time to reach its kernel: up to measurements.MAX_SMALL_FLOPS, but
MAX_SMALL_NARROW_FLOPS = 10_000_000  # where outputs fill half a vector at most, or strides are wide, and
MAX_SMALL_PRODUCT_FLOPS = 4_000_000  # where the layer is a product of matrices to torch, 1x1 without a stride


def kind(problem: Problem, instructions: str | None) -> str:
    """The kind of a problem, a key of RULES. instructions: the set that the kernels are compiled for, None without them."""
    channels, outputs, kernel = problem.weight[1], problem.weight[0] // problem.groups, problem.weight[2:]
    wide, stride, taps = instructions == WIDE_VECTORS, max(problem.stride), math.prod(problem.weight[2:])
    images, _, rows, columns = problem.output
    area = rows * columns
    if max(channels, outputs) <= _few_channels(stride, instructions):
        several = wide and min(channels, outputs) >= MIN_SHARING_OUTPUTS and kernel != (1, 1)
        return "small layer" if several and images > 1 and columns <= MAX_HALF_FILLED_COLUMNS else "few channels"
    if channels == 1 and not wide:
        return "few channels"
    if _by_winograd(problem, wide):
        return "3x3 layer"
    padded = any(map(any, problem.padding))
    if kernel == (1, 1) and outputs >= MIN_SHARING_OUTPUTS and area >= MIN_VECTOR_PIXELS and not padded:
        full = not wide and outputs in FULL_VECTOR_OUTPUTS and channels in FULL_VECTOR_CHANNELS
        return "1x1 layer along channels" if full else "1x1 layer"
    if area in VECTOR_PIXELS and images == 1:
        return "few pixels"
    sorted_soon = stride <= MAX_SORTED_STRIDE
    more = outputs > MAX_NARROW_OUTPUTS
    small_image = area <= MAX_NARROW_PIXELS and (more or not sorted_soon or channels == HALF_LANES)
    narrow = "narrow layer along channels" if small_image or (more and taps > MAX_NARROW_TAPS) else "narrow layer"
    if wide and channels < HALF_LANES and kernel != (1, 1) and (sorted_soon or outputs <= MAX_UNSORTED_OUTPUTS):
        return narrow
    if problem.flops <= _small_flops(problem, wide):
        return "small layer"
    if wide and (outputs > HALF_LANES or kernel == (1, 1)):
        return "layer for wide vectors"
    if channels <= HALF_LANES < columns and sorted_soon:
        return narrow if wide else _narrow_without_wide_vectors(problem)
    if channels <= MAX_FEW_CHANNELS and columns >= MIN_BROAD_COLUMNS and taps < MIN_PACKED_TAPS and not wide:
        return "narrow layer"
    enough = min(channels, outputs) >= MIN_WINOGRAD_CHANNELS
    if enough and channels * taps <= MAX_CACHED_TAPS and problem.transformed:
        many = images * area > MAX_FEW_PIECED_PIXELS and untiled(problem) <= MAX_UNTILED
        return "larger kernel" if many else "larger kernel on few pixels"
    return "large layer" if wide or problem.groups == 1 else "grouped layer"


def _few_channels(stride: int, instructions: str | None) -> int:
    return MAX_FEW_UNSORTED_CHANNELS if stride > MAX_SORTED_STRIDE and instructions is None else MAX_FEW_CHANNELS


def _by_winograd(problem: Problem, wide: bool) -> bool:
    """Whether it is a 3x3 layer that Winograd's transforms suit; fewer outputs than HALF_LANES do not fill AVX2's, either."""
    channels, outputs, kernel = problem.weight[1], problem.weight[0] // problem.groups, problem.weight[2:]
    images, _, rows, columns = problem.output
    unshared = (
        wide
        and images >= MIN_UNSHARED_IMAGES
        and channels >= MAX_CHANNELS_PER_OUTPUT * outputs
        and channels * math.prod(kernel) > MAX_CACHED_TAPS
    )
    return (
        kernel == (3, 3)
        and problem.transformed
        and channels >= MIN_WINOGRAD_CHANNELS
        and (wide or outputs >= HALF_LANES)
        and (problem.flops > MAX_SMALL_FLOPS or images * rows * columns > MAX_FEW_PIXELS)
        and untiled(problem) <= MAX_UNTILED
        and not unshared
    )


def _small_flops(problem: Problem, wide: bool) -> int:
    """FLOPs up to which a layer is small."""
    channels, outputs, stride = problem.weight[1], problem.weight[0] // problem.groups, max(problem.stride)
    if problem.weight[2:] == (1, 1) and stride == 1:
        return MAX_SMALL_PRODUCT_FLOPS
    filled = outputs > HALF_LANES or (outputs == HALF_LANES < channels and not wide)
    return MAX_SMALL_FLOPS if filled and stride <= MAX_SORTED_STRIDE else MAX_SMALL_NARROW_FLOPS


def _narrow_without_wide_vectors(problem: Problem) -> str:
    channels, outputs = problem.weight[1], problem.weight[0] // problem.groups
    taps, columns = math.prod(problem.weight[2:]), problem.output[3]
    laid_out = outputs >= MIN_LAID_OUT_OUTPUTS and channels * taps >= MIN_LAID_OUT_TAPS
    along_rows = taps < MIN_PACKED_TAPS and (max(problem.stride) == 1 or (columns >= MIN_BROAD_COLUMNS and not laid_out))
    return "narrow layer" if along_rows else "narrow layer along channels"
