"""Whichever implementation is fastest for the problem: by measurement, or by rule where nothing was measured.

Selecting an algorithm by the features of a problem (Rice, The algorithm selection problem, Advances in Computers 15, 1976),
here by measured problems, the alike ones above all: impls/conv2d/choice.py, auto.toml. FLOPs and extra memory: those of
the implementation that is picked. Picking takes a microsecond or two for shapes seen before.
"""

import contextlib
import functools
import itertools

from impls.contract import implementation
from impls.conv2d import arguments, choice


def _picking(exact, by_rule, compute):
    """Say by whom calls that were checked before are computed, without the lines below."""
    compute.pick = functools.partial(choice.function, exact, by_rule)
    return compute


@implementation(device="cpu", family="auto", summary="the fastest for the problem, by measurement or rule")
@functools.partial(_picking, False, False)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    return _compute(False, False, input, weight, bias, stride, padding, dilation, groups)


def convolve(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, exact=False, by_rule=False):
    """The same; exact: by sums of products alone, which round less than transforms; by_rule: whatever was measured."""
    return _checked[bool(exact), bool(by_rule)](input, weight, bias, stride, padding, dilation, groups)


def _compute(exact, by_rule, input, weight, bias, stride, padding, dilation, groups):
    """With what is picked or, where there is no room for what it lays out, with the next best that finds room."""
    fields = exact, by_rule, input.shape, weight.shape, stride, padding, dilation, groups, input.dtype, choice.threads()
    try:
        return choice.function(*fields)(input, weight, bias, stride, padding, dilation, groups)
    except MemoryError:
        for function in choice.others(*fields):
            with contextlib.suppress(MemoryError):
                return function(input, weight, bias, stride, padding, dilation, groups)
        raise


# A check for each, which calls on: one that gave the arguments back would take longer than finding what was picked.
_checked = {
    (exact, by_rule): arguments.checker("numpy", {}, _picking(exact, by_rule, functools.partial(_compute, exact, by_rule)))
    for exact, by_rule in itertools.product((False, True), repeat=2)
}
