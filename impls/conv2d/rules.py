"""Rules for machines on which nothing was measured: four kinds of problems, the reason of each, and what to try in order.

docs/auto.md has how good they are on the machines that were measured; none of their numbers is one machine's.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from impls.conv2d import arguments
from impls.conv2d.measurements import Problem

LANES = 8  # of the widest vectors half, and AVX2's: with fewer channels most of a vector along them is empty
# Winograd's break-even, in products. A tile of 4x4 outputs costs TRANSFORM for each input channel of each piece of 3x3 taps,
# and for each output channel, beside its products; transforming all weights costs as much as the products of WEIGHTS tiles.
TRANSFORM, WEIGHTS = 300, 8
MIN_GAIN = 1.7  # of products, as those of tiles are summed more slowly: each is loaded for one sum


class Rule(NamedTuple):
    """Why the first of the names is fast, and which others are tried before REST."""

    why: str
    names: tuple[str, ...]


FEW_CHANNELS = Rule(
    "too few channels for vectors along them, so sums run along rows of pixels",
    ("cpu.cython_direct", "cpu.numba_direct", "cpu.opencv"),
)
WINOGRAD = Rule(
    "Winograd's tiles save more products than their transforms cost", ("cpu.cython_winograd", "cpu.numba_winograd")
)
POINTWISE = Rule("a 1x1 layer is a product of matrices whose rows of pixels are vectors already", ("cpu.cython_direct",))
LAYER = Rule(
    "vectors along output channels suit any stride, dilation and kernel, as weights are packed", ("cpu.cython_packed",)
)
RULES = (FEW_CHANNELS, WINOGRAD, POINTWISE, LAYER)
NUMPY = ("im2col.strided", "cpu.shift_matmul")  # which need nothing else; the last takes less memory than patches do
# What is tried after a rule's names.
REST = ("cpu.cython_packed", "cpu.cython_direct", "cpu.cython_winograd", "cpu.torch", "cpu.numba_direct", *NUMPY)
NAMES = dict.fromkeys([name for rule in RULES for name in rule.names] + [*REST])  # all that is ever picked


def rule(problem: Problem) -> Rule:
    """The rule of a problem: the first that holds."""
    outputs, channels, *kernel = problem.weight
    outputs //= problem.groups
    if channels == 1 or (channels < LANES and (outputs < LANES or problem.stride == (1, 1))):
        return FEW_CHANNELS
    if channels >= LANES and problem.transformed and gain(problem) > MIN_GAIN:
        return WINOGRAD
    return POINTWISE if kernel == [1, 1] and not any(map(any, problem.padding)) else LAYER


def gain(problem: Problem) -> float:
    """How many times as many products the definition has as Winograd's tiles, their transforms counted as products.

    Kernels are cut into pieces of at most 3x3 taps. With a dilation, outputs that see pixels next to each other's are as many
    apart, and have tiles of their own.
    """
    n, _, *sides = problem.output
    outputs, channels, *kernel = problem.weight
    outputs //= problem.groups
    ratios = arguments.dilation_by_stride(problem.stride, problem.dilation)
    apart = [4 * max(1, round(ratio)) for ratio in ratios]
    tiles = n * math.prod(-(-side // step) * step for side, step in zip(sides, apart, strict=True)) / 16
    pieces = [-(-taps // 3) for taps in kernel]
    products = channels * outputs * math.prod(3 * count + taps for count, taps in zip(pieces, kernel, strict=True))
    cost = tiles * (products + TRANSFORM * (channels * math.prod(pieces) + outputs)) + WEIGHTS * products
    return n * math.prod(sides) * channels * outputs * math.prod(kernel) / cost
