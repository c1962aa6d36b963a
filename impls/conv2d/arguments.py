"""The one place where the arguments of conv2d are checked and brought into one form.

Follows torch.nn.functional.conv2d: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from operator import index
from typing import Any, NamedTuple

import numpy as np

Pair = tuple[int, int]
DTYPES = ("float32", "float64")
LARGEST = 2**31 - 1  # of a stride, padding or dilation: what every library underneath can count to


class Geometry(NamedTuple):
    """Stride and dilation as pairs, padding as ((top, bottom), (left, right)), and the output's shape (N, K, P, Q)."""

    stride: Pair
    padding: tuple[Pair, Pair]
    dilation: Pair
    output: tuple[int, int, int, int]


def checker(arrays: str, limits: Mapping[str, Any]) -> Callable[..., tuple[Any, ...]]:
    """Make the check for one implementation: it takes conv2d's arguments and returns them checked, in one form."""
    owner = {"numpy": "a NumPy array", "cupy": "a CuPy array", "torch": "a torch tensor on a CUDA device"}[arrays]
    refuse = functools.lru_cache(maxsize=1024)(functools.partial(unsupported, limits))

    if unknown := set(limits) - {"stride", "dilation", "groups", "dtype"}:
        raise ValueError(f"limits may name stride, dilation, groups and dtype, not {', '.join(sorted(unknown))}")

    def fits(array: Any) -> bool:
        if arrays == "numpy":
            return isinstance(array, np.ndarray)
        return type(array).__module__.partition(".")[0] == arrays and getattr(array, "is_cuda", arrays == "cupy")

    def conv2d(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: int | Pair = 1,
        padding: int | Pair | str = 0,
        dilation: int | Pair = 1,
        groups: int = 1,
    ) -> tuple[Any, ...]:
        for name, array in (("input", input), ("weight", weight), ("bias", bias)):
            if not fits(array) and not (array is None and name == "bias"):
                raise TypeError(f"{name} must be {owner}, not {type(array).__name__}")
        dtype = _dtype(input, weight, bias)
        shapes = tuple(input.shape), tuple(weight.shape)
        settings = _plain(stride=stride, padding=padding, dilation=dilation, groups=groups)
        geometry = _geometry(*shapes, *settings)
        if bias is not None and tuple(bias.shape) != (shapes[1][0],):
            expected = (shapes[1][0],)
            raise ValueError(f"bias must have shape {expected}, one value per output channel, not {tuple(bias.shape)}")
        if limits and (reason := refuse(*shapes, *settings, dtype)):
            raise NotImplementedError(reason)
        return input, weight, bias, geometry.stride, geometry.padding, geometry.dilation, settings[3]

    return conv2d  # by this name, Python's own message about a missing argument names the operation


def unsupported(
    limits: Mapping[str, Any],
    input_shape: tuple[int, ...],
    weight_shape: tuple[int, ...],
    stride: int | Pair = 1,
    padding: int | Pair | str = 0,
    dilation: int | Pair = 1,
    groups: int = 1,
    dtype: str = "float32",
) -> str | None:
    """Say in words which argument is outside `limits`, or None. Raises as a call would for arguments nobody supports."""
    if str(dtype) not in DTYPES:
        raise TypeError(f"dtype must be float32 or float64, not {dtype}")
    settings = _plain(stride=stride, padding=padding, dilation=dilation, groups=groups)
    geometry = _geometry(tuple(input_shape), tuple(weight_shape), *settings)
    actual = {"stride": geometry.stride, "dilation": geometry.dilation, "groups": settings[3], "dtype": str(dtype)}
    for argument, only in limits.items():
        value = actual[argument]
        if value not in (only, (only, only)):
            return f"{argument}={value}: only {argument}={only} is supported"
    return None


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
def _geometry(
    input_shape: tuple[int, ...], weight_shape: tuple[int, ...], stride: Any, padding: Any, dilation: Any, groups: Any
) -> Geometry:
    if len(input_shape) != 4:
        raise ValueError(f"input must have shape (N, C, H, W), not {input_shape}")
    if len(weight_shape) != 4:
        raise ValueError(f"weight must have shape (K, C/groups, R, S), not {weight_shape}")
    if not isinstance(groups, int) or groups < 1:
        error = ValueError if isinstance(groups, int) else TypeError
        raise error(f"groups must be a positive integer, not {groups!r}")
    strides = _pair("stride", stride, 1)
    dilations = _pair("dilation", dilation, 1)
    (_, c, h, w), (k, channels, r, s) = input_shape, weight_shape
    if min(c, h, w) < 1:
        raise ValueError(f"input must have no dimension of zero but the first, not shape {input_shape}")
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
    return Geometry(strides, pads, dilations, output)


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
    vertical, horizontal = _pair("padding", padding, 0)
    return (vertical, vertical), (horizontal, horizontal)


def _pair(name: str, value: Any, least: int) -> Pair:
    pair = value if isinstance(value, tuple) else (value, value)
    if not all(isinstance(number, int) for number in pair):
        raise TypeError(f"{name} must be an integer or a pair of integers, not {value!r}")
    if len(pair) != 2:
        raise ValueError(f"{name} must be an integer or a pair of integers, not {value!r}")
    if min(pair) < least:
        raise ValueError(f"{name} must be at least {least}, not {value!r}")
    if max(pair) > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST}, not {value!r}")
    return pair


def _plain(**settings: Any) -> tuple[Any, ...]:
    """Turn what stands for integers into integers, so that 1.0 is never found in a cache where 1 was put."""
    return tuple(v if type(v) is int or type(v) is str else _integers(name, v) for name, v in settings.items())


def _integers(name: str, value: Any) -> int | tuple[int, ...]:
    try:
        if isinstance(value, (tuple, list)):
            return tuple(int(index(number)) for number in value)
        return int(index(value))
    except TypeError:
        what = "a positive integer" if name == "groups" else "an integer or a pair of integers"
        raise TypeError(f"{name} must be {what}, not {value!r}") from None


def _dtype(input: Any, weight: Any, bias: Any) -> str:
    dtype = input.dtype
    if dtype != weight.dtype or (bias is not None and dtype != bias.dtype):
        arrays = {"input": input, "weight": weight, "bias": bias}
        given = ", ".join(f"{name} {array.dtype}" for name, array in arrays.items() if array is not None)
        raise TypeError(f"input, weight and bias must have one dtype, not {given}")
    return _dtype_name(dtype)


@functools.lru_cache(maxsize=64)
def _dtype_name(dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise TypeError(f"dtype must be float32 or float64 in native byte order, not {name}")
    return name
