"""By recursion over the axes: the first is peeled off, the rest is im2col of one axis less, down to cpu.naive for one.

A line is made again for every tap and pixel of its axis that sees it. No FLOPs; the naive steps are those of cpu.naive, one
for each element of the matrix, each with one axis to unravel; extra memory: the matrix a second time, while its parts are put
together. From a course page on profiling, which asks what one can say of it.
"""

from impls.contract import implementation
from impls.im2col.recursion import peel


@implementation(device="cpu", family="recursive", summary="Python: recursion over the axes, each line computed again")
def im2col(image, kernel, stride=1, padding=0, dilation=1, fill=0):
    """Lay the windows of an image out as the columns of a matrix (taps, pixels)."""
    return peel(image, kernel, stride, padding, dilation, fill)
