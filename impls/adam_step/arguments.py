"""Checks the arguments of adam_step and normalises them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from operator import index
from typing import Any

import numpy as np

from impls import checks

NAMES = ("parameter", "gradient", "exp_avg", "exp_avg_sq")
UPDATED = ("parameter", "exp_avg", "exp_avg_sq")


def checker(arrays: str, limits: Mapping[str, Any], unchecked: Callable[..., Any] = checks.together) -> Callable[..., Any]:
    """Make the check for one implementation, which calls `unchecked` with adam_step's arguments, numbers as int and float."""
    checks.require_limits(limits, "dtype")
    fits = checks.belongs(arrays)

    def adam_step(
        parameter: Any,
        gradient: Any,
        exp_avg: Any,
        exp_avg_sq: Any,
        step: int,
        lr: float = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
    ) -> Any:
        given = dict(zip(NAMES, (parameter, gradient, exp_avg, exp_avg_sq), strict=True))
        if not all(map(fits, given.values())):
            checks.require_arrays(arrays, **given)
        if not parameter.dtype == gradient.dtype == exp_avg.dtype == exp_avg_sq.dtype:
            checks.require_one_dtype(**given)
        dtype = checks.dtype_name(parameter.dtype)
        if not parameter.shape == gradient.shape == exp_avg.shape == exp_avg_sq.shape:
            shapes = ", ".join(f"{name} {tuple(array.shape)}" for name, array in given.items())
            raise ValueError(f"parameter, gradient, exp_avg and exp_avg_sq must have one shape, not {shapes}")
        if limits and (reason := checks.outside(limits, {"dtype": dtype})):
            raise NotImplementedError(reason)
        size = checks.ITEMSIZE[dtype] * (parameter.size if arrays != "torch" else parameter.numel())
        checks.require_no_overlap((_place(name, array, arrays), size, name) for name, array in given.items())
        return unchecked(parameter, gradient, exp_avg, exp_avg_sq, *numbers(step, lr, beta1, beta2, eps))

    return adam_step  # by this name, Python's own message about a missing argument names the operation


def unsupported(limits: Mapping[str, Any], shape: tuple[int, ...], dtype: Any = "float32") -> str | None:
    """Return which argument is outside `limits`, or None. Raises as a call would for unsupported arguments.

    shape: that of all four arrays.
    """
    dtype = checks.dtype_name(dtype)
    return checks.outside(limits, {"dtype": dtype})


def _place(name: str, array: Any, owner: str) -> int:
    """Where an array's memory begins. Raises ValueError if it is not in one piece or must be written and cannot be."""
    if owner == "torch":
        whole, place = array.is_contiguous(), array.data_ptr()
    elif owner == "cupy":
        whole, place = array.flags.c_contiguous, array.data.ptr
    else:
        whole, place = array.flags.c_contiguous, array.ctypes.data
        if name in UPDATED and not array.flags.writeable:
            raise ValueError(f"{name} is updated in place, and this array is read-only")
    if not whole:
        raise ValueError(f"{name} must be contiguous in memory, in C order; its copy by ascontiguousarray is")
    return place


def numbers(
    step: Any, lr: Any, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-8
) -> tuple[int, float, float, float, float]:
    """The numbers as int and float. Raises TypeError or ValueError that names the argument."""
    try:
        step = index(step)
    except TypeError:
        raise TypeError(f"step must be a positive integer, not {step!r}") from None
    if step < 1:
        raise ValueError(f"step must be a positive integer, the first step being 1, not {step!r}")
    for name, value in {"lr": lr, "beta1": beta1, "beta2": beta2, "eps": eps}.items():
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
            raise TypeError(f"{name} must be a number, not {value!r}")
        if not math.isfinite(value) or value < 0:
            raise ValueError(f"{name} must be finite and at least 0, not {value!r}")
    for name, value in {"beta1": beta1, "beta2": beta2}.items():
        if value >= 1:
            raise ValueError(f"{name} must be less than 1, not {value!r}")
    return step, float(lr), float(beta1), float(beta2), float(eps)
