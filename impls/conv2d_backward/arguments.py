"""Checks the arguments of conv2d_backward and normalises them.

They are those of conv2d, as impls/conv2d/arguments.py checks them, and the gradient of its output.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from impls import checks
from impls.checks import Pair
from impls.conv2d.arguments import Geometry, geometry


def checker(arrays: str, limits: Mapping[str, Any], unchecked: Callable[..., Any] = checks.together) -> Callable[..., Any]:
    """Make the check for one implementation, which calls `unchecked` with conv2d_backward's arguments in one form."""
    checks.require_limits(limits, "kernel", "stride", "dilation", "groups", "dtype")
    fits = checks.belongs(arrays)
    refuse = functools.lru_cache(maxsize=1024)(functools.partial(unsupported, limits))

    def conv2d_backward(
        grad_output: Any,
        input: Any,
        weight: Any,
        stride: int | Pair = 1,
        padding: int | Pair | str = 0,
        dilation: int | Pair = 1,
        groups: int = 1,
    ) -> Any:
        if not (fits(grad_output) and fits(input) and fits(weight)):
            checks.require_arrays(arrays, grad_output=grad_output, input=input, weight=weight)
        if not grad_output.dtype == input.dtype == weight.dtype:
            checks.require_one_dtype(grad_output=grad_output, input=input, weight=weight)
        dtype = checks.dtype_name(input.dtype)
        shapes = tuple(grad_output.shape), tuple(input.shape), tuple(weight.shape)
        settings = checks.plain(stride=stride, padding=padding, dilation=dilation, groups=groups)
        found = _geometry(*shapes, settings)
        if limits and (reason := refuse(*shapes, *settings, dtype)):
            raise NotImplementedError(reason)
        # The padded input, the weight and the output, and a gradient for each.
        checks.require_room(arrays, 2 * found.elements, dtype, "conv2d_backward", *shapes[1:])
        grad_output, input, weight = checks.aligned(arrays, grad_output, input, weight)
        return unchecked(grad_output, input, weight, found.stride, found.padding, found.dilation, settings[3])

    return conv2d_backward  # by this name, Python's own message about a missing argument names the operation


def unsupported(
    limits: Mapping[str, Any],
    grad_output_shape: tuple[int, ...],
    input_shape: tuple[int, ...],
    weight_shape: tuple[int, ...],
    stride: int | Pair = 1,
    padding: int | Pair | str = 0,
    dilation: int | Pair = 1,
    groups: int = 1,
    dtype: Any = "float32",
) -> str | None:
    """Return which argument is outside `limits`, or None. Raises as a call would for unsupported arguments."""
    dtype = checks.dtype_name(dtype)
    settings = checks.plain(stride=stride, padding=padding, dilation=dilation, groups=groups)
    found = _geometry(tuple(grad_output_shape), tuple(input_shape), tuple(weight_shape), settings)
    actual = {"kernel": tuple(weight_shape[2:]), "stride": found.stride, "dilation": found.dilation}
    return checks.outside(limits, {**actual, "groups": settings[3], "dtype": dtype})


def _geometry(
    grad_output_shape: tuple[int, ...], input_shape: tuple[int, ...], weight_shape: tuple[int, ...], settings: tuple[Any, ...]
) -> Geometry:
    """conv2d's own check, and that the gradient has the shape of conv2d's output."""
    found = geometry(input_shape, weight_shape, *settings)
    if grad_output_shape != found.output:
        raise ValueError(
            f"grad_output must have the shape of conv2d's output, {found.output} "
            f"for input {input_shape} and weight {weight_shape}, not {grad_output_shape}"
        )
    return found
