"""Random problems of an operation, and their results by torch and by exact fractions."""

import contextlib
from dataclasses import replace
from unittest import mock

import numpy as np
import torch
from hypothesis import strategies as st
from torch.nn import functional

from benchmarks.workloads import oracle
from benchmarks.workloads.problems import Problem

MODES = ("whole", "sampled")


@contextlib.contextmanager
def mode(name):
    """Let the oracle look at every output, or at a sample however small the problem."""
    few = {"WHOLE": 0, "SAMPLE": 0, "MAX_SAMPLED_OUTPUTS": 64, "BORDER": 64} if name == "sampled" else {}
    with mock.patch.multiple(oracle, **few) if few else contextlib.nullcontext():
        yield


@st.composite
def some(draw, most=3):
    """Problems small enough to work out in several ways."""
    number = st.integers
    groups, stride, dilation = (draw(number(1, most)) for _ in range(3))
    r, s = draw(number(1, 4)), draw(number(1, 4))
    padding = draw(number(0, 3)), draw(number(0, 3))
    h, w = (
        max(1, dilation * (taps - 1) + 1 - 2 * pad) + draw(number(0, 7)) for taps, pad in zip((r, s), padding, strict=True)
    )
    n, c, k = draw(number(0, 2)), groups * draw(number(1, most)), groups * draw(number(1, most))
    return Problem(n, c, h, w, k, r, s, stride, padding, dilation, groups, draw(st.sampled_from(sorted(oracle.UNIT))))


@st.composite
def depthwise(draw):
    """Problems with a group for each channel, of more channels than a vector holds elements and of fewer."""
    problem, channels = draw(some()), draw(st.integers(1, 35))
    return replace(problem, c=channels, k=channels, groups=channels)


def fractions(problem, seed=0):
    """Input and weight of a problem, in [-1, 1]."""
    random = np.random.default_rng(seed)
    return [random.uniform(-1, 1, shape).astype(problem.dtype) for shape in (problem.input_shape, problem.weight_shape)]


def by_torch(problem, input, weight):
    tensors = [torch.from_numpy(np.ascontiguousarray(array, "float64")) for array in (input, weight)]
    return functional.conv2d(*tensors, **problem.arguments).numpy()
