"""Problems, arrays and questions for the choice of an implementation."""

import numpy as np
import pytest

from benchmarks.workloads import random_problems
from impls.conv2d import choice, measurements

PROBLEMS = random_problems.generate(60, seed=7)


X, W = np.random.default_rng(0).random((2, 1, 32, 9, 9), np.float32)


COMPILED = choice.instruction_set() is not None


needs_compiled = pytest.mark.skipif(not COMPILED, reason="the Cython kernels are not built: install with a C compiler")


def asked(problem):
    return measurements.problem(problem.input_shape, problem.weight_shape, **problem.arguments)
