"""Checks the arguments of conv_transpose2d and normalises them.

Follows torch.nn.functional.conv_transpose2d:
https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv_transpose2d.html
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from impls import checks
from impls.checks import Pair


class Geometry(NamedTuple):
    """Every setting as a pair, and the output's shape (N, K, P, Q).

    elements: of the input, the weight and the output with its padding still on, which have to fit in memory.
    """

    stride: Pair
    padding: Pair
    output_padding: Pair
    dilation: Pair
    output: tuple[int, int, int, int]
    elements: int


def checker(arrays: str, limits: Mapping[str, Any], unchecked: Callable[..., Any] = checks.together) -> Callable[..., Any]:
    """Make the check for one implementation, which calls `unchecked` with conv_transpose2d's arguments in one form."""
    checks.require_limits(limits, "kernel", "stride", "output_padding", "dilation", "groups", "dtype")
    fits = checks.belongs(arrays)
    refuse = functools.lru_cache(maxsize=1024)(functools.partial(unsupported, limits))

    def conv_transpose2d(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: int | Pair = 1,
        padding: int | Pair = 0,
        output_padding: int | Pair = 0,
        groups: int = 1,
        dilation: int | Pair = 1,
    ) -> Any:
        if not (fits(input) and fits(weight) and (bias is None or fits(bias))):
            checks.require_arrays(arrays, input=input, weight=weight, bias=bias)
        if input.dtype != weight.dtype or (bias is not None and input.dtype != bias.dtype):
            checks.require_one_dtype(input=input, weight=weight, bias=bias)
        dtype = checks.dtype_name(input.dtype)
        shapes = tuple(input.shape), tuple(weight.shape)
        settings = checks.plain(
            stride=stride, padding=padding, output_padding=output_padding, groups=groups, dilation=dilation
        )
        found = geometry(*shapes, *settings)
        if bias is not None:
            checks.require_bias(bias.shape, found.output[1])
        if limits and (reason := refuse(*shapes, *settings, dtype)):
            raise NotImplementedError(reason)
        checks.require_room(arrays, found.elements, dtype, "conv_transpose2d", *shapes)
        input, weight, bias = checks.aligned(arrays, input, weight, bias)
        return unchecked(input, weight, bias, found.stride, found.padding, found.output_padding, settings[3], found.dilation)

    return conv_transpose2d  # by this name, Python's own message about a missing argument names the operation


def unsupported(
    limits: Mapping[str, Any],
    input_shape: tuple[int, ...],
    weight_shape: tuple[int, ...],
    stride: int | Pair = 1,
    padding: int | Pair = 0,
    output_padding: int | Pair = 0,
    groups: int = 1,
    dilation: int | Pair = 1,
    dtype: Any = "float32",
) -> str | None:
    """Return which argument is outside `limits`, or None. Raises as a call would for unsupported arguments."""
    dtype = checks.dtype_name(dtype)
    settings = checks.plain(stride=stride, padding=padding, output_padding=output_padding, groups=groups, dilation=dilation)
    found = geometry(tuple(input_shape), tuple(weight_shape), *settings)
    actual = {name: getattr(found, name) for name in ("stride", "output_padding", "dilation")}
    return checks.outside(limits, {**actual, "kernel": tuple(weight_shape[2:]), "groups": settings[3], "dtype": dtype})


def output_shape(
    input_shape: tuple[int, ...],
    weight_shape: tuple[int, ...],
    stride: Pair,
    padding: Pair,
    output_padding: Pair,
    groups: int,
    dilation: Pair,
) -> tuple[int, int, int, int]:
    """The output's shape (N, K, P, Q), from arguments in their one form."""
    p, q = (
        (size - 1) * step - 2 * pad + d * (taps - 1) + more + 1
        for size, taps, step, pad, more, d in zip(
            input_shape[2:], weight_shape[2:], stride, padding, output_padding, dilation, strict=True
        )
    )
    return input_shape[0], weight_shape[1] * groups, p, q


@functools.lru_cache(maxsize=4096)
def geometry(
    input_shape: tuple[int, ...],
    weight_shape: tuple[int, ...],
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> Geometry:
    """Check shapes and settings (from checks.plain) against each other. Raises TypeError or ValueError."""
    checks.require_images(input_shape)
    if len(weight_shape) != 4:
        raise ValueError(f"weight must have shape (C, K/groups, R, S), not {weight_shape}")
    checks.positive("groups", groups)
    strides = checks.as_pair("stride", stride, 1)
    dilations = checks.as_pair("dilation", dilation, 1)
    pads = checks.as_pair("padding", padding, 0)
    mores = checks.as_pair("output_padding", output_padding, 0)
    if min(input_shape[1:]) < 1:
        raise ValueError(f"input must have no dimension of zero but the first, not shape {input_shape}")
    checks.require_sides(input_shape)
    if min(weight_shape) < 1:
        raise ValueError(f"weight must have no dimension of zero, not shape {weight_shape}")
    if input_shape[1] != weight_shape[0] or input_shape[1] % groups:
        raise ValueError(
            f"input {input_shape} and weight {weight_shape} do not fit groups={groups}: "
            f"C={input_shape[1]} must be weight's first dimension and a multiple of groups"
        )
    if any(more >= max(step, d) for more, step, d in zip(mores, strides, dilations, strict=True)):
        raise ValueError(
            f"output_padding must be smaller than stride or dilation, "
            f"not {output_padding} with stride={strides} and dilation={dilations}"
        )
    output = output_shape(input_shape, weight_shape, strides, pads, mores, groups, dilations)
    if min(output[2:]) < 1:
        raise ValueError(
            f"padding={padding} leaves an output of {output[2]}x{output[3]} pixels "
            f"of input {input_shape} and weight {weight_shape} with stride={strides} and dilation={dilations}"
        )
    whole = output[0] * output[1] * (output[2] + 2 * pads[0]) * (output[3] + 2 * pads[1])
    return Geometry(strides, pads, mores, dilations, output, math.prod(input_shape) + math.prod(weight_shape) + whole)
