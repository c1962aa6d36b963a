"""Winograd's F(4x4, 3x3) around two compiled kernels: which tiles go together, the weights, the products.

Lavin and Gray, arXiv 1509.09308; the points 0, 1, -1, 2, -2 and infinity. Every 6x6 tile of the image is transformed,
its 36 numbers are multiplied channel by channel as 36 matrix products, and 4x4 outputs come back: 36 products where the
definition has 144.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from impls import checks
from impls.conv2d import geometry
from impls.conv2d.arguments import output_shape

WORK = 8 << 20  # bytes of transformed tiles and products at a time: they should not leave the outer cache
# Rows: what becomes of three weights along one axis at each point.
G = np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]) / 24


def conv2d(forward: Callable, backward: Callable, input, weight, bias, stride, padding, dilation, groups) -> np.ndarray:
    """conv2d of 3x3 kernels with stride and dilation 1 through a kernel pair.

    forward(input, tiles, first, tiles_y, pad) fills tiles (6, 6, C, rows, tiles_x) with the transformed tiles of the rows of
    tiles from `first` on, counted through the batch. backward(products, bias, output, first, tiles_y) fills their outputs.
    """
    output = np.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    n, k, p, q = output.shape
    c = input.shape[1]
    tiles_y, tiles_x = (p + 3) // 4, (q + 3) // 4
    start = np.zeros(k, input.dtype) if bias is None else np.ascontiguousarray(bias)
    image = np.ascontiguousarray(input)
    factors = np.kron(G, G).astype(weight.dtype) @ weight.reshape(-1, 9).T
    factors = factors.reshape(36, groups, k // groups, c // groups)
    most = max(1, WORK // (36 * (c + k) * tiles_x * input.itemsize))
    rows = min(most, n * tiles_y)
    work = 36 * ((c + k) * rows * tiles_x + k * c // groups) * input.itemsize
    checks.require_memory(work + input.nbytes + output.nbytes, "Winograd's tiles, products and weights")
    for first in range(0, n * tiles_y, most):
        rows = min(most, n * tiles_y - first)
        tiles = np.empty((6, 6, c, rows, tiles_x), input.dtype)
        forward(image, tiles, first, tiles_y, (padding[0][0], padding[1][0]))
        products = factors @ tiles.reshape(36, groups, c // groups, -1)
        backward(products.reshape(6, 6, k, rows, tiles_x), start, output, first, tiles_y)
    return geometry.if_finite(output, input, weight, bias, stride, padding, dilation, groups)
