"""Limits of a CUDA device by its own clock: copies, multiply-adds and matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.errors import Skip, WrongAnswer
from benchmarks.timing import cuda_clock
from benchmarks.timing.prepared_cell import PreparedCell

MIB = 1 << 20
SIDE = 8192  # rows and columns of the matrices: products of 1.1e12 FLOPs, which fill every multiprocessor many times
THREADS, BLOCKS, STEPS = 256, 4096, 4096  # of the multiply-adds: a million threads, eight sums in each

# The work of one call. Bytes moved are bytes read plus bytes written.
LIMITS: dict[str, dict[str, Any]] = {
    **{f"device copy, {size // MIB} MiB": {"bytes": size} for size in (MIB, 8 * MIB, 64 * MIB, 512 * MIB, 2048 * MIB)},
    **{
        f"device multiply-add, {dtype}": {"flops": 2 * 8 * THREADS * BLOCKS * STEPS, "dtype": dtype}
        for dtype in ("float32", "float64")
    },
    **{f"device matrix product, {kind}": {"flops": 2 * SIDE**3, "dtype": kind} for kind in ("tf32", "fp16", "bf16")},
}

MULTIPLY_ADDS = r"""
extern "C" __global__ void multiply_adds(T* result, T factor, int steps) {
    // Eight sums that do not wait for each other; one half is the factor's fixed point, x/2 + 1/2 = x at 1.
    T x[8];
    for (int k = 0; k < 8; ++k) x[k] = result[k];
    for (int i = 0; i < steps; ++i)
        #pragma unroll
        for (int k = 0; k < 8; ++k) x[k] = x[k] * factor + factor;
    T sum = 0;
    for (int k = 0; k < 8; ++k) sum += x[k];
    if (sum != (T)8 || threadIdx.x + blockIdx.x == 0) result[0] = sum / 8;
}
"""


def prepare(limit: str) -> PreparedCell:
    """The cell of one limit. Raises Skip if it cannot be measured."""
    what = LIMITS[limit]
    library, make = ("cupy", _copy) if "bytes" in what else MAKERS[what["dtype"]]
    try:
        cuda_clock.require(library)
    except ImportError as error:
        raise Skip(f"unavailable: {error}") from error
    call, right = make(what)

    def verify(output: Any) -> dict[str, Any]:
        if not right(output):
            raise WrongAnswer("the result differs from what was copied or computed")
        return {}

    call()
    clock = cuda_clock.of(library)
    return PreparedCell(call, cuda_clock.Queued(call, clock), verify, {}, 0.0, library, clock.synchronize)


def _copy(what: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[Any], bool]]:
    import cupy

    source = cupy.arange(what["bytes"] // 8, dtype=cupy.float32)
    target = cupy.zeros_like(source)
    return lambda: cupy.copyto(target, source), lambda _: bool((target == source).all())


def _multiply_adds(what: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[Any], bool]]:
    import cupy

    name = {"float32": "float", "float64": "double"}[what["dtype"]]
    kernel = cupy.RawKernel(f"typedef {name} T;\n{MULTIPLY_ADDS}", "multiply_adds")
    result = cupy.ones(8, what["dtype"])
    half = np.dtype(what["dtype"]).type(0.5)
    return lambda: kernel((BLOCKS,), (THREADS,), (result, half, np.int32(STEPS))), lambda _: bool((result == 1).all())


def _product(what: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[Any], bool]]:
    import torch

    dtype = {"tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[what["dtype"]]
    # Random, since a device draws less power on zeros, and runs faster.
    left, right = (torch.rand(SIDE, SIDE, dtype=dtype, device="cuda") for _ in range(2))
    product = torch.empty_like(left)
    torch.backends.cuda.matmul.allow_tf32 = what["dtype"] == "tf32"  # this process measures nothing else

    def is_right(_: Any) -> bool:
        rows = slice(0, 4)
        expected = left[rows].double() @ right.double()
        return bool(((product[rows].double() - expected).norm() / expected.norm()) < 0.02)

    return lambda: torch.matmul(left, right, out=product), is_right


MAKERS = {
    **dict.fromkeys(("float32", "float64"), ("cupy", _multiply_adds)),
    **dict.fromkeys(("tf32", "fp16", "bf16"), ("torch", _product)),
}
