"""Checks the arguments of conv2d and normalises them.

Follows torch.nn.functional.conv2d: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from impls import checks
from impls.checks import Pair

try:
    from impls.conv2d import _cython_arguments as compiled  # type: ignore[attr-defined]
except ImportError:  # it is not built, and the check takes a little longer
    compiled = None

MAX_PLANS = 4096  # plans that are kept; beyond it, all are dropped and made again, which costs a check each


class Geometry(NamedTuple):
    """Stride and dilation as pairs, padding as ((top, bottom), (left, right)), and the output's shape (N, K, P, Q).

    elements: of the padded input, the weight and the output together, which have to fit in memory.
    """

    stride: Pair
    padding: tuple[Pair, Pair]
    dilation: Pair
    output: tuple[int, int, int, int]
    elements: int


class Plan(NamedTuple):
    """The plan of a checked call: the unchecked function that computes it, normalised settings and the output's shape.

    elements: those of Geometry if they are so many that each call asks for free memory first, else 0.
    """

    unchecked: Callable[..., Any]
    stride: Pair
    padding: tuple[Pair, Pair]
    dilation: Pair
    elements: int
    output: tuple[int, int, int, int]


class Dispatcher(dict[tuple[Any, ...], Plan]):
    """Caches the plan of every problem that was called, so that it is checked and picked only once.

    A key is the function that makes such plans, then what it is called with: shapes of input, weight and bias (or None),
    their dtype, stride, padding, dilation and groups made of int and str alone, and the number of threads. The plan of a new
    key is made when it is looked up, which raises what is wrong with the arguments.
    """

    def __missing__(self, key: tuple[Any, ...]) -> Plan:
        make, *problem = key
        plan = make(*problem)
        if len(self) >= MAX_PLANS:
            self.clear()
        self[key] = plan
        return plan


dispatcher = Dispatcher()


def checker(
    arrays: str,
    limits: Mapping[str, Any],
    unchecked: Callable[..., Any] = checks.together,
    pick: Callable[..., Callable[..., Any]] | None = None,
) -> Callable[..., Any]:
    """Make the check for one implementation, which calls `unchecked` with conv2d's arguments in one form.

    pick: pick(input_shape, weight_shape, stride, padding, dilation, groups, dtype, threads) returns the function to call in
    place of `unchecked`, and is asked once for each problem; where that function runs out of memory, `unchecked` is called.
    """
    checks.require_limits(limits, "kernel", "stride", "dilation", "dilation/stride", "groups", "C/groups", "dtype")
    fits = checks.belongs(arrays)

    def plan(
        input_shape: tuple[int, ...],
        weight_shape: tuple[int, ...],
        bias_shape: tuple[int, ...] | None,
        dtype: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        threads: int,
    ) -> Plan:
        name, settings = checks.dtype_name(dtype), (stride, padding, dilation, groups)
        shapes = tuple(input_shape), tuple(weight_shape)
        found = geometry(*shapes, *settings)
        if bias_shape is not None:
            checks.require_bias(bias_shape, found.output[1])
        if limits and (reason := unsupported(limits, *shapes, *settings, name)):
            raise NotImplementedError(reason)
        form = found.stride, found.padding, found.dilation
        function = pick(*shapes, *form, groups, name, threads) if pick else unchecked
        return Plan(function, *form, found.elements if checks.asks(arrays, found.elements, name) else 0, found.output)

    def conv2d(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: int | Pair = 1,
        padding: int | Pair | str = 0,
        dilation: int | Pair = 1,
        groups: int = 1,
        *,
        out: Any = None,
    ) -> Any:
        if not (fits(input) and fits(weight) and (bias is None or fits(bias))):
            checks.require_arrays(arrays, input=input, weight=weight, bias=bias)
        dtype = input.dtype
        if dtype != weight.dtype or (bias is not None and dtype != bias.dtype):
            checks.require_one_dtype(input=input, weight=weight, bias=bias)
        if type(stride) is not int:
            stride = checks.integers("stride", stride)
        if type(padding) is not int:
            padding = checks.integers("padding", padding)
        if type(dilation) is not int:
            dilation = checks.integers("dilation", dilation)
        if type(groups) is not int:
            groups = checks.integers("groups", groups)
        shapes = input.shape, weight.shape, None if bias is None else bias.shape
        found = dispatcher[plan, *shapes, dtype, stride, padding, dilation, groups, thread_count() if pick else 1]
        if found.elements:
            checks.require_room(arrays, found.elements, checks.dtype_name(dtype), "conv2d", *shapes[:2])
        if out is not None:
            checks.require_output(arrays, out, found.output, dtype, input=input, weight=weight, bias=bias)
        form = *checks.aligned(arrays, input, weight, bias), found.stride, found.padding, found.dilation, groups
        try:
            return checks.into(out, found.unchecked, *form)
        except MemoryError:
            if pick is None:
                raise
        return checks.into(out, unchecked, *form)

    conv2d.__qualname__ = conv2d.__name__  # Python's own message about a missing argument names the operation
    # The check runs before every call, also one of a microsecond or one that finds the caches full of other things: compiled
    # it touches little.
    if compiled is None or arrays != "numpy":
        return conv2d
    return compiled.dispatching(dispatcher, plan, conv2d, unchecked if pick else None)


def thread_count() -> int:
    """How many threads a kernel would use now: OpenMP's number; 1 if nothing is compiled."""
    return compiled.thread_count() if compiled else 1


def unsupported(
    limits: Mapping[str, Any],
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
    found = geometry(tuple(input_shape), tuple(weight_shape), *settings)
    return outside(limits, tuple(weight_shape), found.stride, found.dilation, settings[3], dtype)


def outside(
    limits: Mapping[str, Any], weight: tuple[int, ...], stride: Pair, dilation: Pair, groups: int, dtype: str
) -> str | None:
    """Return which normalised argument is outside `limits`, or None."""
    actual = {"kernel": weight[2:], "stride": stride, "dilation": dilation, "groups": groups, "C/groups": weight[1]}
    return checks.outside(limits, {**actual, "dilation/stride": dilation_by_stride(stride, dilation), "dtype": dtype})


def dilation_by_stride(stride: Pair, dilation: Pair) -> tuple[float, float]:
    """Dilation over stride along each axis: by how many outputs the view of a tap moves to that of the next."""
    return dilation[0] / stride[0], dilation[1] / stride[1]


@functools.lru_cache(maxsize=4096)
def output_shape(
    input_shape: tuple[int, ...],
    weight_shape: tuple[int, ...],
    stride: Pair,
    padding: tuple[Pair, Pair],
    dilation: Pair,
) -> tuple[int, int, int, int]:
    """The output's shape (N, K, P, Q), from arguments in their one form."""
    p, q = (
        (size + before + after - d * (taps - 1) - 1) // step + 1
        for size, taps, step, (before, after), d in zip(
            input_shape[2:], weight_shape[2:], stride, padding, dilation, strict=True
        )
    )
    return input_shape[0], weight_shape[0], p, q


@functools.lru_cache(maxsize=4096)  # a lookup costs 0.3 us, working it out 5 us: as much as a small convolution
def geometry(
    input_shape: tuple[int, ...], weight_shape: tuple[int, ...], stride: Any, padding: Any, dilation: Any, groups: Any
) -> Geometry:
    """Check shapes and settings (from checks.plain) against each other. Raises TypeError or ValueError."""
    checks.require_images(input_shape)
    if len(weight_shape) != 4:
        raise ValueError(f"weight must have shape (K, C/groups, R, S), not {weight_shape}")
    checks.positive("groups", groups)
    strides = checks.as_pair("stride", stride, 1)
    dilations = checks.as_pair("dilation", dilation, 1)
    (n, c, h, w), (k, channels, r, s) = input_shape, weight_shape
    if min(c, h, w) < 1:
        raise ValueError(f"input must have no dimension of zero but the first, not shape {input_shape}")
    checks.require_sides(input_shape)
    if min(weight_shape) < 1:
        raise ValueError(f"weight must have no dimension of zero, not shape {weight_shape}")
    if c % groups or k % groups or channels != c // groups:
        raise ValueError(
            f"input {input_shape} and weight {weight_shape} do not fit groups={groups}: "
            f"C={c} and K={k} must be multiples of groups, and weight's second dimension C/groups"
        )
    spans = (dilations[0] * (r - 1) + 1, dilations[1] * (s - 1) + 1)
    pads = _padding(padding, spans, strides)
    output = output_shape(input_shape, weight_shape, strides, pads, dilations)
    if min(output[2:]) < 1:
        raise ValueError(
            f"weight {weight_shape} with dilation={dilations} covers {spans[0]}x{spans[1]} pixels, "
            f"more than input {input_shape} with padding={padding} has"
        )
    padded = n * c * (h + sum(pads[0])) * (w + sum(pads[1]))
    return Geometry(strides, pads, dilations, output, padded + math.prod(weight_shape) + math.prod(output))


def _padding(padding: Any, spans: Pair, strides: Pair) -> tuple[Pair, Pair]:
    if padding == "valid":
        return (0, 0), (0, 0)
    if padding == "same":
        if strides != (1, 1):
            raise ValueError(f'padding="same" needs stride=1, not stride={strides}')
        # An even kernel cannot be centred: the odd row or column goes to the end, as torch has it.
        top, left = ((span - 1) // 2 for span in spans)
        return (top, spans[0] - 1 - top), (left, spans[1] - 1 - left)
    if isinstance(padding, str):
        raise ValueError(f'padding must be an integer, a pair, "valid" or "same", not {padding!r}')
    vertical, horizontal = checks.as_pair("padding", padding, 0)
    return (vertical, vertical), (horizontal, horizontal)
