"""By recursion over the axes, as cpu.recursive, which remembers the matrix of each line.

A line is made once, whatever taps and pixels see it: for three taps along each peeled axis, a third of the naive steps for
each. No FLOPs; extra memory: the matrix a second time, and the lines' matrices. From a course page on profiling, which notes
that the sub-results should be cached.
"""

import functools

from impls.contract import implementation
from impls.im2col.recursion import peel


@implementation(device="cpu", family="recursive", summary="Python: recursion over the axes, each line computed once")
def im2col(image, kernel, stride=1, padding=0, dilation=1, fill=0):
    """Lay the windows of an image out as the columns of a matrix (taps, pixels)."""
    return peel(image, kernel, stride, padding, dilation, fill, keep=functools.cache)
