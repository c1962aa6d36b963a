"""Winograd's F(4x4, 3x3) in Numba: tiles transformed row by row and threaded over channels, products by BLAS.

Lavin and Gray, arXiv 1509.09308; see impls/conv2d/winograd.py. A quarter of 2 N K P Q (C/g) R S FLOPs in the products,
and the transforms; extra memory: 8 MB of tiles and products, or one row of tiles where that is more, and 4 K C/g
transformed weights for each of the 9 given. Rounds more than a direct sum.
"""

import numpy as np
from numba import njit, prange

from impls.contract import implementation
from impls.conv2d import winograd


@njit(parallel=True, cache=True, nogil=True, fastmath={"contract"})
def _forward(input, tiles, first, tiles_y, pad):
    _, _, in_height, in_width = input.shape
    _, _, channels, n_rows, tiles_x = tiles.shape
    width = 4 * tiles_x + 2
    copied = max(0, min(in_width, width - pad[1]))
    for job in prange(channels * n_rows):
        c, row = job // n_rows, job % n_rows
        n, top = (first + row) // tiles_y, (first + row) % tiles_y * 4 - pad[0]
        lines = np.zeros((6, width), input.dtype)
        for i in range(6):
            if 0 <= top + i < in_height and copied > 0:
                lines[i, pad[1] : pad[1] + copied] = input[n, c, top + i, :copied]
        a0, a1, a2, a3, a4, a5 = lines[0], lines[1], lines[2], lines[3], lines[4], lines[5]
        mixed = np.empty((6, width), input.dtype)
        b0, b1, b2, b3, b4, b5 = mixed[0], mixed[1], mixed[2], mixed[3], mixed[4], mixed[5]
        for j in range(width):
            b0[j] = 4 * a0[j] - 5 * a2[j] + a4[j]
            b1[j] = a4[j] + a3[j] - 4 * (a2[j] + a1[j])
            b2[j] = a4[j] - a3[j] - 4 * (a2[j] - a1[j])
            b3[j] = a4[j] - a2[j] + 2 * (a3[j] - a1[j])
            b4[j] = a4[j] - a2[j] - 2 * (a3[j] - a1[j])
            b5[j] = 4 * a1[j] - 5 * a3[j] + a5[j]
        for i in range(6):
            line = mixed[i]
            for t in range(tiles_x):
                d0, d1, d2 = line[4 * t], line[4 * t + 1], line[4 * t + 2]
                d3, d4, d5 = line[4 * t + 3], line[4 * t + 4], line[4 * t + 5]
                tiles[i, 0, c, row, t] = 4 * d0 - 5 * d2 + d4
                tiles[i, 1, c, row, t] = d4 + d3 - 4 * (d2 + d1)
                tiles[i, 2, c, row, t] = d4 - d3 - 4 * (d2 - d1)
                tiles[i, 3, c, row, t] = d4 - d2 + 2 * (d3 - d1)
                tiles[i, 4, c, row, t] = d4 - d2 - 2 * (d3 - d1)
                tiles[i, 5, c, row, t] = 4 * d1 - 5 * d3 + d5


@njit(parallel=True, cache=True, nogil=True, fastmath={"contract"})
def _backward(products, bias, output, first, tiles_y):
    _, outputs, height, width = output.shape
    n_rows, tiles_x = products.shape[3:]
    for job in prange(outputs * n_rows):
        k, row = job // n_rows, job % n_rows
        n, top = (first + row) // tiles_y, (first + row) % tiles_y * 4
        wide = np.empty((6, 4 * tiles_x), output.dtype)
        for i in range(6):
            line = wide[i]
            for t in range(tiles_x):
                m0, m1, m2 = products[i, 0, k, row, t], products[i, 1, k, row, t], products[i, 2, k, row, t]
                m3, m4, m5 = products[i, 3, k, row, t], products[i, 4, k, row, t], products[i, 5, k, row, t]
                line[4 * t] = m0 + (m1 + m2) + (m3 + m4)
                line[4 * t + 1] = (m1 - m2) + 2 * (m3 - m4)
                line[4 * t + 2] = (m1 + m2) + 4 * (m3 + m4)
                line[4 * t + 3] = (m1 - m2) + 8 * (m3 - m4) + m5
        w0, w1, w2, w3, w4, w5 = wide[0], wide[1], wide[2], wide[3], wide[4], wide[5]
        for i in range(min(4, height - top)):
            target = output[n, k, top + i]
            for q in range(width):
                near, far = w1[q] - w2[q], w3[q] - w4[q]
                if i % 2 == 0:
                    near, far = w1[q] + w2[q], w3[q] + w4[q]
                total = bias[k] + near + (1 << i) * far
                if i == 0:
                    total += w0[q]
                elif i == 3:
                    total += w5[q]
                target[q] = total


@implementation(
    device="cpu",
    family="winograd",
    summary="Numba: Winograd F(4x4, 3x3), products by BLAS",
    limits={"kernel": (3, 3), "stride": 1, "dilation": 1},
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    return winograd.conv2d(_forward, _backward, input, weight, bias, stride, padding, dilation, groups)
