"""One Triton kernel, a matrix product whose patch matrix is never stored: a program for a tile of outputs.

A tile is a block of all images' pixels by a block of a group's output channels; it multiplies block after block of (channel,
row, column) taps, whose pixels it gathers by masked loads. A patch's place is the sum of its pixel's and its tap's, each
worked out once, the tap's by constants, since the kernel is compiled for each kernel size; 1x1 kernels that see every pixel
once read images as they lie. Programs of the same pixels run side by side, so that the cache serves them. 2 N K P Q (C/g) R S
FLOPs, each size rounded up to whole blocks: 16 times as many and more for groups of one channel; no extra memory.
TensorFloat-32 is off. After https://triton-lang.org/main/getting-started/tutorials/03-matrix-multiplication.html
"""

import itertools
import math

import torch
import triton
import triton.language as tl

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.devices import require_torch

require_torch("gpu.triton_direct")

TAPS = 16  # of a tile; tl.dot takes no fewer on older devices
OUTPUTS, PIXELS = (128, 64, 32, 16), (128, 64, 32)  # of a tile: the largest that leaves enough programs
LARGEST, WARP = 1 << 16, 1 << 10  # bytes of a tile's sums at most; how many of them a warp keeps
BUSY = 256  # programs that keep a large device busy


@triton.jit
def _tile(
    input,
    weight,
    bias,
    output,
    images,
    height,
    width,
    area,  # of an output image
    out_width,
    groups,
    channels,  # of a group, as are the outputs
    outputs,
    stride_y,
    stride_x,
    top,
    left,
    dilation_y,
    dilation_x,
    TAPS_Y: tl.constexpr,
    TAPS_X: tl.constexpr,
    PADDED: tl.constexpr,  # whether any pixel lies outside of the image
    PLAIN: tl.constexpr,  # whether outputs see their own pixel alone
    INDEX: tl.constexpr,
    TAPS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    PIXELS: tl.constexpr,
):
    taps = channels * TAPS_Y * TAPS_X
    # One long axis of programs, since the others end at 65535: blocks of outputs, in groups, in blocks of pixels.
    program = tl.program_id(0)
    blocks = tl.cdiv(outputs, OUTPUTS)
    k = program % blocks * OUTPUTS + tl.arange(0, OUTPUTS)
    group = program // blocks % groups
    pixel = tl.cast(program // (blocks * groups), INDEX) * PIXELS + tl.arange(0, PIXELS)
    image, place = pixel // area, pixel % area
    first = (tl.cast(image, tl.int64) * groups + group) * channels * height * width
    if PLAIN:
        patches = input + first + place
    else:
        y = place // out_width * stride_y - top
        x = place % out_width * stride_x - left
        patches = input + first + tl.cast(y, tl.int64) * width + x
    kernels = weight + tl.cast(group * outputs + k, tl.int64) * taps
    total = tl.zeros((OUTPUTS, PIXELS), input.dtype.element_ty)
    for start in range(0, taps, TAPS):
        tap = start + tl.arange(0, TAPS).to(INDEX)
        factors = tl.load(kernels[:, None] + tap[None, :], mask=(k < outputs)[:, None] & (tap < taps)[None, :], other=0)
        row, column = tap // TAPS_X % TAPS_Y * dilation_y, tap % TAPS_X * dilation_x
        offset = (tl.cast(tap // (TAPS_X * TAPS_Y), tl.int64) * height + row) * width + column
        inside = (tap < taps)[:, None] & (image < images)[None, :]
        if PADDED:
            below, beside = y[None, :] + row[:, None], x[None, :] + column[:, None]
            inside &= (below >= 0) & (below < height) & (beside >= 0) & (beside < width)
        pixels = tl.load(patches[None, :] + offset[:, None], mask=inside, other=0)
        total = tl.dot(factors, pixels, total, input_precision="ieee", out_dtype=total.dtype)
    if bias is not None:
        total += tl.load(bias + group * outputs + k, mask=k < outputs, other=0)[:, None]
    planes = tl.cast(image, tl.int64)[None, :] * (groups * outputs) + (group * outputs + k)[:, None]
    tl.store(output + planes * area + place[None, :], total, mask=(k < outputs)[:, None] & (image < images)[None, :])


@implementation(
    device="cuda", family="direct", summary="Triton: a tile of outputs per program, patches gathered", arrays="torch"
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    n, k, p, q = shape = output_shape(input.shape, weight.shape, stride, padding, dilation)
    output = input.new_empty(shape)
    if not n:
        return output
    (channels, *taps), pixels, outputs, padded = weight.shape[1:], n * p * q, k // groups, any(map(any, padding))
    # Coordinates are counted too: stride and padding may lead them far away from a small image.
    reach = max(size + sum(around) for size, around in zip(input.shape[2:], padding, strict=True))
    wide = max(pixels, reach) + max(PIXELS) + channels * math.prod(taps) >= 2**31
    block, across, programs = _blocks(outputs, pixels, groups, input.element_size())
    with torch.cuda.device_of(input):
        _tile[(programs,)](
            *(input.contiguous(), weight.contiguous(), None if bias is None else bias.contiguous(), output),
            *(n, *input.shape[2:], p * q, q, groups, channels, outputs),
            *(*stride, padding[0][0], padding[1][0], *dilation),
            *(*taps, padded, (*taps, *stride, padded) == (1, 1, 1, 1, False), tl.int64 if wide else tl.int32),
            *(TAPS, block, across),
            num_warps=max(1, min(8, block * across // WARP)),
            enable_fp_fusion=True,  # a multiply-add rounds once, as in every other kernel here
        )
    return output


def _blocks(outputs, pixels, groups, itemsize):
    """A tile's outputs and pixels, and how many programs there are then."""
    wanted = max(OUTPUTS[-1], triton.next_power_of_2(outputs))
    found = []
    for block, across in itertools.product(OUTPUTS, PIXELS):
        programs = triton.cdiv(outputs, block) * triton.cdiv(pixels, across) * groups
        if block <= wanted and block * across * itemsize <= LARGEST:
            found.append((programs >= BUSY, block * across if programs >= BUSY else -block * across, block, across, programs))
    return max(found)[2:]
