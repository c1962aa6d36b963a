"""Whichever implementation is fastest for the problem: by measurement, or by rule where nothing was measured.

Selecting an algorithm by the features of a problem (Rice, The algorithm selection problem, Advances in Computers 15, 1976),
here by measured problems, the alike ones above all: impls/conv2d/choice.py, auto.toml. FLOPs and extra memory: those of
the implementation that is picked. Picking takes less than a microsecond for a call like one before.
"""

import contextlib
import functools

import numpy as np

from impls import checks
from impls.contract import implementation
from impls.conv2d import arguments, choice


@implementation(device="cpu", family="auto", summary="the fastest for the problem, by measurement or rule")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    return _compute(False, False, input, weight, bias, stride, padding, dilation, groups)


_check = conv2d.check  # type: ignore[attr-defined]


def convolve(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, exact=False, by_rule=False):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S): NumPy arrays of float32 or float64.

    Arguments, results and meaning are those of torch.nn.functional.conv2d, but that an input has its batch dimension and
    that OpenCV, where it is picked, leaves out taps of zero: a NaN does not count there. exact: sum products alone, as
    the definition does, without the transforms that round more. by_rule: do not ask measurements. Raises ValueError or
    TypeError that name the argument, and MemoryError where the arrays, or what every implementation lays out beside them,
    would not fit.
    """
    return _compute(exact, by_rule, *_check(input, weight, bias, stride, padding, dilation, groups))


def _compute(exact, by_rule, input, weight, bias, *settings):
    """With what is picked or, where there is no room for what it lays out, with the next best that finds room."""
    fields = input.shape, weight.shape, *settings, input.dtype, choice.threads(), exact, by_rule
    try:
        return choice.function(*fields)(input, weight, bias, *settings)
    except MemoryError:
        for function in choice.others(*fields):
            with contextlib.suppress(MemoryError):
                return function(input, weight, bias, *settings)
        raise


def _plan(input, weight, bias, stride, padding, dilation, groups, exact, by_rule):
    """What computes a call and its settings in one form, which hold for every call that looks like it.

    None for calls so large that each is asked whether it fits in memory.
    """
    _, _, _, *settings = _check(input, weight, bias, stride, padding, dilation, groups)
    elements = arguments.geometry(input.shape, weight.shape, stride, padding, dilation, groups).elements
    if elements * arguments.LARGEST_ITEM > checks.UNASKED:
        return None
    fields = input.shape, weight.shape, *settings, input.dtype, choice.threads(), exact, by_rule
    return choice.function(*fields), tuple(settings)


with contextlib.suppress(ImportError):  # without it calls take a few microseconds more
    from impls.conv2d.cpu._cython_auto import quick  # type: ignore[import-not-found]

    convolve = quick(np.ndarray, _plan, convolve)

# One function for both, by any name.
conv2d = functools.update_wrapper(convolve, conv2d, ("__module__", "__name__", "__qualname__"))
