"""The fastest implementation for the problem: by measurement, or by rule where nothing was measured.

Selecting an algorithm by the features of a problem (Rice, The algorithm selection problem, Advances in Computers 15, 1976),
here by the nearest measured problems: impls/conv2d/choice.py, auto.json. FLOPs and extra memory: those of the implementation
that is picked. Picking takes a microsecond or two for shapes seen before.
"""

import functools
import itertools

from impls import checks
from impls.contract import implementation
from impls.conv2d import arguments, choice, tuning


@implementation(device="cpu", family="auto", summary="what should be fastest for the problem, by measurement or rule")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    return _first_with_room(False, "shipped", input, weight, bias, stride, padding, dilation, groups, out)


pick = functools.partial(choice.pick, False, "shipped")


def convolve(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, exact=False, source="wisdom", out=None):
    """The same; exact: by sums of products alone, which round less than transforms; source: what decides (choice.SOURCES)."""
    return _checked[bool(exact), source](input, weight, bias, stride, padding, dilation, groups, out=out)


def _first_with_room(exact, source, input, weight, bias, stride, padding, dilation, groups, out=None):
    """Compute by the fastest implementation with enough memory. Raises the MemoryError of the fastest if none has."""
    shapes, dtype, threads = (input.shape, weight.shape), checks.dtype_name(input.dtype), arguments.thread_count()
    errors = []
    for unchecked in choice.best_first(exact, source, *shapes, stride, padding, dilation, groups, dtype, threads):
        try:
            return checks.into(out, unchecked, input, weight, bias, stride, padding, dilation, groups)
        except MemoryError as error:
            errors.append(error.with_traceback(None))  # it would keep the patch matrix
    raise errors[0]


_checked = {
    (exact, source): arguments.checker(
        "numpy",
        {},
        functools.partial(_first_with_room, exact, source),
        functools.partial(tuning.pick, exact, source),
    )
    for exact, source in itertools.product((False, True), choice.SOURCES)
}
