"""One Triton kernel, a matrix product whose patch matrix is never stored: a program for a tile of outputs.

A tile is a block of an image's pixels by a block of a group's output channels; it multiplies block after block of
(channel, row, column) taps, whose pixels it gathers by masked loads. 2 N K P Q (C/g) R S FLOPs, each size rounded up to
whole blocks: 16 times as many and more for groups of one channel; no extra memory. TensorFloat-32 is off. After
https://triton-lang.org/main/getting-started/tutorials/03-matrix-multiplication.html
"""

import torch
import triton
import triton.language as tl

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.devices import require_torch

require_torch("gpu.triton_direct")

PIXELS, TAPS, OUTPUTS = 64, 16, (16, 64)  # of a tile; tl.dot takes powers of two, on older devices no fewer than 16


@triton.jit
def _tile(
    input,
    weight,
    bias,
    output,
    height,
    width,
    out_height,
    out_width,
    groups,
    channels,  # of a group, as are the outputs
    outputs,
    taps_y,
    taps_x,
    stride_y,
    stride_x,
    top,
    left,
    dilation_y,
    dilation_x,
    PIXELS: tl.constexpr,
    TAPS: tl.constexpr,
    OUTPUTS: tl.constexpr,
):
    # In 64 bits: an image or an array may have more elements than 32 can count.
    pixels = tl.cast(out_height, tl.int64) * out_width
    taps = channels * taps_y * taps_x
    # One long axis of programs, since the others end at 65535: blocks of pixels, in blocks of outputs, in groups, in images.
    program = tl.program_id(0)
    pixel = program % tl.cdiv(pixels, PIXELS) * PIXELS + tl.arange(0, PIXELS)
    program = program // tl.cdiv(pixels, PIXELS)
    k = program % tl.cdiv(outputs, OUTPUTS) * OUTPUTS + tl.arange(0, OUTPUTS)
    program = program // tl.cdiv(outputs, OUTPUTS)
    group = program % groups
    image = input + program.to(tl.int64) * channels * height * width
    kernels = weight + (group * outputs + k).to(tl.int64)[:, None] * taps
    y = (pixel // out_width * stride_y - top)[None, :]
    x = (pixel % out_width * stride_x - left)[None, :]
    total = tl.zeros((OUTPUTS, PIXELS), input.dtype.element_ty)
    for start in range(0, taps, TAPS):
        tap = start + tl.arange(0, TAPS)
        factors = tl.load(kernels + tap[None, :], mask=(k < outputs)[:, None] & (tap < taps)[None, :], other=0)
        row = y + (tap // taps_x % taps_y * dilation_y)[:, None]
        column = x + (tap % taps_x * dilation_x)[:, None]
        inside = (tap < taps)[:, None] & (row >= 0) & (row < height) & (column >= 0) & (column < width)
        plane = (tap // (taps_x * taps_y)).to(tl.int64)[:, None] * height
        patches = tl.load(image + (plane + row) * width + column, mask=inside, other=0)
        total = tl.dot(factors, patches, total, input_precision="ieee", out_dtype=total.dtype)
    if bias is not None:
        total += tl.load(bias + group * outputs + k, mask=k < outputs, other=0)[:, None]
    place = (program.to(tl.int64) * outputs + k)[:, None] * pixels + pixel[None, :]
    tl.store(output + place, total, mask=(k < outputs)[:, None] & (pixel < pixels)[None, :])


@implementation(device="cuda", family="direct", summary="Triton: a tile of outputs, patches gathered", arrays="torch")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    n, k, p, q = shape = output_shape(input.shape, weight.shape, stride, padding, dilation)
    output = input.new_empty(shape)
    if not n:
        return output
    outputs = k // groups
    block = min(max(triton.next_power_of_2(outputs), OUTPUTS[0]), OUTPUTS[1])
    programs = triton.cdiv(p * q, PIXELS) * triton.cdiv(outputs, block) * groups * n
    with torch.cuda.device_of(input):
        _tile[(programs,)](
            *(input.contiguous(), weight.contiguous(), None if bias is None else bias.contiguous(), output),
            *(*input.shape[2:], p, q, groups, weight.shape[1], outputs, *weight.shape[2:]),
            *(*stride, padding[0][0], padding[1][0], *dilation),
            *(PIXELS, TAPS, block),
            enable_fp_fusion=True,  # a multiply-add rounds once, as in every other kernel here
        )
    return output
