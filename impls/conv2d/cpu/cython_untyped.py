"""cpu.loops compiled as it is: its file, unchanged and without types, goes through Cython.

2 N K P Q (C/g) R S FLOPs; extra memory: the padded image. From a post on speeding up Chainer with Cython, whose script
became slower. The ladder's third rung: compiling changes little while every number stays a Python object.
"""

import impls.conv2d.cpu._cython_untyped as _cython_untyped  # type: ignore[import-not-found]
from impls.contract import implementation


@implementation(device="cpu", family="direct", summary="Cython: the Python loops of cpu.loops, compiled unchanged")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    return _cython_untyped.conv2d.unchecked(input, weight, bias, stride, padding, dilation, groups)
