"""A convolution made of torch's operations alone: one product that mixes the channels for every tap, then a slice of it.

So it computes wherever the tensors are, and torch differentiates it. The fastest form of a post on writing a convolution in
PyTorch; here for any kernel size, stride, padding, dilation and groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from impls.checks import Pair
from impls.conv2d.arguments import output_shape


def convolve(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: Any,
    stride: Pair,
    padding: tuple[Pair, Pair],
    dilation: Pair,
    groups: int,
) -> torch.Tensor:
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S), from arguments that are checked and in one form."""
    image = functional.pad(input, (*padding[1], *padding[0]))
    output = input.new_zeros(output_shape(input.shape, weight.shape, stride, padding, dilation))
    height, width = (stride[axis] * (output.shape[2 + axis] - 1) + 1 for axis in (0, 1))
    n, k = output.shape[:2]
    channels, taps_y, taps_x = weight.shape[1:]
    # (groups, K/groups, C/groups) @ (N, groups, C/groups, H W), a pixel's channels standing in a column.
    factors = weight.reshape(groups, k // groups, channels, taps_y, taps_x)
    columns = image.reshape(n, groups, channels, image[0, 0].numel() if n else 0)
    for r, s in np.ndindex(taps_y, taps_x):
        product = (factors[..., r, s] @ columns).reshape(n, k, *image.shape[2:])
        top, left = r * dilation[0], s * dilation[1]
        output += product[:, :, top : top + height : stride[0], left : left + width : stride[1]]
    if bias is not None:
        output += bias[:, None, None]
    return output
