"""Winograd's F(4x4, 3x3) in Cython: tiles transformed row by row and threaded over channels with OpenMP, products by BLAS.

Lavin and Gray, arXiv 1509.09308; see impls/conv2d/winograd.py. A quarter of 2 N K P Q (C/g) R S FLOPs in the products,
and the transforms; extra memory: 8 MB of tiles and products, or one row of tiles where that is more, and 4 K C/g
transformed weights for each of the 9 given. Rounds more than a direct sum.
"""

import impls.conv2d.cpu._cython_winograd as _cython_winograd  # type: ignore[import-not-found]
from impls.contract import implementation
from impls.conv2d import winograd


@implementation(
    device="cpu",
    family="winograd",
    summary="Cython: Winograd F(4x4, 3x3), products by BLAS",
    limits={"kernel": (3, 3), "stride": 1, "dilation": 1},
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    kernels = _cython_winograd.forward, _cython_winograd.backward
    return winograd.conv2d(*kernels, input, weight, bias, stride, padding, dilation, groups)
