"""A user's own problem of any operation, from the sizes or files that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.commands import own_files
from benchmarks.harness import cell
from benchmarks.workloads import operations
from benchmarks.workloads.patches import Windows
from benchmarks.workloads.problems import Problem, SameSize


def make(request: dict[str, Any]) -> Any:
    """The problem of request["operation"]. What cannot be computed is said once, before anything is made.

    conv2d, conv2d_backward and conv_transpose2d: problem, its label or name, and dtype, or what follows.
    conv2d and conv2d_backward: input and weight as conv2d has them, stride, padding ("same" or a pair), dilation, groups,
    dtype. conv_transpose2d: the same as it has them itself. im2col: image and kernel as sizes along each axis, stride,
    padding (one number or one an axis), dilation, fill, dtype. read_batch: folder, batch (number of tiles), bands.
    preprocess: picture, region (top, left, height, width; None for all), size of a patch. Others: problem, its label or
    name, for adam_step also a number of parameters; dtype for adam_step. Raises ValueError, TypeError, LookupError,
    NotImplementedError, ImportError or MemoryError.
    """
    import impls  # imported here, because asv imports every file of the suite, also with a commit that has no impls
    from impls import checks

    operation = request["operation"]
    cell.kind(operation)  # raises for one that the suite does not measure
    maker: Callable[..., Any] = _labelled if "problem" in request else MAKERS[operation]
    problem = maker(impls, request)
    checks.require_memory(cell.task(operation, problem).describe()["bytes"], f"the arrays of {problem.label}")
    return problem


def _convolution(impls: Any, request: dict[str, Any]) -> Problem:
    (n, c, h, w), (k, channels, r, s) = request["input"], request["weight"]
    stride, padding, dilation = request["stride"], request["padding"], request["dilation"]
    if padding == "same":
        if stride != 1:
            raise ValueError('padding="same" needs stride 1; give the padding in numbers')
        padding = (dilation * (r - 1) // 2, dilation * (s - 1) // 2)
    kind = SameSize if request["padding"] == "same" and (dilation * (r - 1) % 2 or dilation * (s - 1) % 2) else Problem
    problem = kind(n, c, h, w, k, r, s, stride, tuple(padding), dilation, request["groups"], request["dtype"])
    # The shapes that were given: a problem has no channels of the weight that could differ from the input's.
    impls.load("cpu.shift").unsupported((n, c, h, w), (k, channels, r, s), **problem.arguments, dtype=problem.dtype)
    return problem


def _transposed(impls: Any, request: dict[str, Any]) -> Problem:
    """The convolution whose output is this input: input (N, K, P, Q), weight (K, C/groups, R, S)."""
    shape, weight = tuple(request["input"]), tuple(request["weight"])
    if request["padding"] == "same":
        raise ValueError('padding="same" is of convolutions; give the padding of conv_transpose2d in numbers')
    padding = tuple(request["padding"])
    settings = {"stride": request["stride"], "padding": padding, "dilation": request["dilation"], "groups": request["groups"]}
    impls.load("cpu.shift", "conv_transpose2d").unsupported(shape, weight, **settings, dtype=request["dtype"])
    (n, k, *pixels), (_, channels, r, s) = shape, weight
    h, w = (
        (size - 1) * request["stride"] - 2 * pad + request["dilation"] * (taps - 1) + 1
        for size, pad, taps in zip(pixels, padding, (r, s), strict=True)
    )
    return Problem(n, channels * request["groups"], h, w, k, r, s, **settings, dtype=request["dtype"])


def _windows(impls: Any, request: dict[str, Any]) -> Windows:
    image, kernel, padding = (tuple(request[name]) for name in ("image", "kernel", "padding"))
    if len(padding) == 1:
        padding *= len(image)
    settings = {"stride": request["stride"], "padding": padding, "dilation": request["dilation"], "fill": request["fill"]}
    impls.load("cpu.naive", "im2col").unsupported(image, kernel, **settings, dtype=request["dtype"])
    return Windows(image, kernel, **settings, dtype=request["dtype"])


def _tiles(_: Any, request: dict[str, Any]) -> own_files.Tiles:
    return own_files.tiles(request["folder"], request["batch"], request["bands"])


def _picture(impls: Any, request: dict[str, Any]) -> own_files.Picture:
    problem = own_files.picture(request["picture"], request["region"], request["size"])
    cell.task("preprocess", problem).unsupported(impls.load("cpu.numpy", "preprocess"))
    return problem


def _labelled(impls: Any, request: dict[str, Any]) -> Any:
    operation, text = request["operation"], request["problem"]
    if operation == "adam_step" and text.isdecimal():
        text = f"n{text}"
    problem = cell.kind(operation).find(text)
    if operation in operations.OPERATIONS:
        shapes = problem.input_shape, problem.weight_shape
        impls.load("cpu.shift").unsupported(*shapes, **problem.arguments, dtype=request["dtype"])
    return replace(problem, dtype=request["dtype"]) if "dtype" in request else problem


MAKERS = {
    **dict.fromkeys(operations.OPERATIONS, _convolution),
    "conv_transpose2d": _transposed,
    "im2col": _windows,
    "read_batch": _tiles,
    "preprocess": _picture,
}
