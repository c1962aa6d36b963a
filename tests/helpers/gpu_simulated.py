"""gpu.numba_direct or gpu.triton_direct on a simulated device: python gpu_simulated.py NAME some|every.

Every problem in both dtypes, or every third one in one after the other; Numba's simulator takes seconds for float64.

In an interpreter of its own, since Numba and Triton ask for their simulators' environment variables when they are
imported. Prints how many outputs were compared.
"""

import importlib
import itertools
import sys

import numpy as np
from gpu_problems import DTYPES, LABELS, SETTINGS, judge, lying_anyhow, whole_numbers
from gpu_stand_ins import Array, cupy_on_numpy, on_numpy, on_the_cpu, replaced, torch_on_the_cpu

import impls
from benchmarks.workloads.problems import Problem

LARGE = {"some": 1000, "every": 5000}  # outputs, each a thread of the operating system in Numba's simulator


def main(name, problems):
    numba = name == "gpu.numba_direct"
    with replaced(cupy_on_numpy()) if numba else torch_on_the_cpu():
        function, module = impls.load(name), importlib.import_module(f"impls.conv2d.{name}")
    call = on_numpy if numba else on_the_cpu
    Array.__array_function__ = np.ndarray.__array_function__  # by NumPy's functions Numba's simulator moves arrays
    count = 0
    # Where a few programs are enough, Triton's tiles are large.
    kinds = [("float32", 0)] if numba else [*itertools.product(DTYPES, (1, module.BUSY))]
    if problems == "every":
        calls = [*itertools.product(LABELS, kinds)]
        settings_of_dtypes = [*itertools.product(SETTINGS, DTYPES)]
    else:
        calls = [*zip(LABELS[::3], itertools.cycle(kinds), strict=False)]
        settings_of_dtypes = [*zip(SETTINGS, itertools.cycle(DTYPES), strict=False)]
    for label, (dtype, busy) in calls:
        module.BUSY = busy
        problem = Problem.parse(label, dtype=dtype)
        if not (numba and problem.outputs > LARGE[problems]):
            judge(problem, "direct", lambda *arrays, problem=problem: call(function, *arrays, **problem.arguments))
            count += problem.outputs
    for settings, dtype in settings_of_dtypes:
        input, weight, bias = whole_numbers(dtype)
        for start in (bias, None):
            expected = impls.load("cpu.loops")(input, weight, start, **settings)
            for turned, taps in zip(lying_anyhow(input), lying_anyhow(weight), strict=True):
                output = call(function, turned, taps, start, **settings)
                assert output.dtype == dtype
                assert np.array_equal(output, expected)
                count += output.size
                if numba:
                    break
    return count


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
