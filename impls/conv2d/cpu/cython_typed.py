"""The definition's nested loops in Cython with types and memory views: C's loops, nothing rearranged, one thread.

2 N K P Q (C/g) R S FLOPs; extra memory: the padded image. The ladder's fourth rung: what types alone give.
https://cython.readthedocs.io/en/latest/src/userguide/memoryviews.html
"""

import numpy as np

import impls.conv2d.cpu._cython_typed as _cython_typed  # type: ignore[import-not-found]
from impls.contract import implementation
from impls.conv2d.geometry import add_bias, empty, pad


@implementation(device="cpu", family="direct", summary="Cython: the nested loops with static types, one thread")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = empty(input, weight, stride, padding, dilation, out)
    image = np.ascontiguousarray(pad(input, padding))
    _cython_typed.loops(image, np.ascontiguousarray(weight), output, *stride, *dilation, groups)
    return add_bias(output, bias)
