"""Small helpers for implementations that work on padded NumPy arrays."""

from __future__ import annotations

import numpy as np

from impls.conv2d.arguments import Pair


def pad(input: np.ndarray, padding: tuple[Pair, Pair]) -> np.ndarray:
    """Put zeros around the images of input (N, C, H, W); the array itself where there are none to put."""
    return np.pad(input, ((0, 0), (0, 0), *padding)) if np.any(padding) else input


def windows(input: np.ndarray, kernel: Pair, stride: Pair, dilation: Pair) -> np.ndarray:
    """View padded input (N, C, H, W) as its windows (N, C, P, Q, R, S), copying nothing."""
    spans = tuple(d * (size - 1) + 1 for size, d in zip(kernel, dilation, strict=True))
    view = np.lib.stride_tricks.sliding_window_view(input, spans, axis=(2, 3))
    return view[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def add_bias(output: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Add bias (K,) to every pixel of output (N, K, P, Q), in place."""
    if bias is not None:
        output += bias[:, None, None]
    return output
