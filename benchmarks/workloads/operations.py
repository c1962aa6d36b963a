"""The tensors and work of each operation on a problem, which always describes a convolution.

A convolution ties three tensors together: input and weight give the output. Its neighbours are given others of the three, or
more: conv_transpose2d takes what looks like the output to what looks like the input, and conv2d_backward takes the output's
gradient to the input's, the weight's and a bias's. So an array is named here for the tensor whose shape it has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from benchmarks.workloads.problems import Problem

AXES = {"input": "ncyx", "weight": "kcrs", "output": "nkpq", "bias": "k"}


@dataclass(frozen=True)
class Operation:
    """The tensors that an operation takes, in the order of its arguments, and returns; its multiple of the work.

    What it returns is linear in the first that it is given.
    """

    given: tuple[str, ...]
    returned: tuple[str, ...]
    work: int = 1


OPERATIONS = {
    "conv2d": Operation(("input", "weight"), ("output",)),
    "conv_transpose2d": Operation(("output", "weight"), ("input",)),
    "conv2d_backward": Operation(("output", "input", "weight"), ("input", "weight", "bias"), work=2),
}


def shape(problem: Problem, tensor: str) -> tuple[int, ...]:
    """The shape of one of a problem's tensors."""
    shapes = {"input": problem.input_shape, "weight": problem.weight_shape, "output": problem.output_shape}
    return shapes.get(tensor, (problem.k,))


def terms(problem: Problem, tensor: str) -> int:
    """How many products are summed for each element of a tensor, those with the padding counted."""
    if tensor == "output":
        return problem.taps
    if tensor == "input":
        return problem.k // problem.groups * problem.r * problem.s
    return problem.outputs // problem.k


def arguments(operation: str, problem: Problem) -> dict[str, Any]:
    """The keyword arguments of an operation."""
    found = problem.arguments
    if operation == "conv_transpose2d":
        sizes = zip(problem.input_shape[2:], problem.weight_shape[2:], problem.padding, strict=True)
        # No window covers the rows and columns that the stride leaves over; here they have to be requested.
        found["output_padding"] = tuple(
            (size + 2 * pad - problem.dilation * (taps - 1) - 1) % problem.stride for size, taps, pad in sizes
        )
    return found


def flops(operation: str, problem: Problem) -> int:
    """Nominal work: the convolution's, for every gradient that costs as much."""
    return OPERATIONS[operation].work * problem.flops


def describe(operation: str, problem: Problem) -> dict[str, Any]:
    """The attributes stored with results; bytes are the minimum traffic, every array once."""
    given, returned = OPERATIONS[operation].given, OPERATIONS[operation].returned
    return {
        **problem.describe(),
        "output": list(shape(problem, returned[0])),
        "flops": flops(operation, problem),
        "bytes": problem.itemsize * sum(math.prod(shape(problem, tensor)) for tensor in (*given, *returned)),
    }
