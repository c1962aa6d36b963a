"""The raw kernels that are compiled for each problem, with GCC's sanitizers: python gpu_sanitized.py SIZES under libasan.so.

SIZES of tiles are "every", or "in turn": of each problem one.

They end the interpreter where a kernel reads or writes outside of an array, be it on the device, in shared memory or in
registers, reads several elements at once where none may be, or counts beyond its integers. Prints how many kernels ran.
"""

import importlib
import itertools
import os
import sys

import numpy as np
from gpu_problems import DTYPES, outside
from gpu_stand_ins import RawKernel, cupy_on_numpy, on_numpy, replaced

import impls
from benchmarks.workloads.problems import Problem

# Rows that are read 128 bits, 64 bits and one element at a time; tiles that hang over; kernels too large for registers.
LABELS = [
    *("n1c1h37w40k1r3s3p1", "n2c4h14w14k8r3s3p1", "n3c3h7w7k3r3s3p1g3", "n1c2h33w136k4r7s7t2p3g2", "n1c1h33w40k1r13s13p6"),
    *("n2c4h5w6k4r3s3p3g4", "n1c1h9w300k1r3s3p1", "n1c2h6w8k6r2s3d2"),
]


def main(sizes):
    os.environ.pop("LD_PRELOAD")  # the compiler needs no sanitizer itself
    both = 1, 1 << 16
    calls = list(itertools.product(both, LABELS) if sizes == "every" else zip(itertools.cycle(both), LABELS, strict=False))
    RawKernel.flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    count = 0
    for name in ("gpu.cupy_direct", "gpu.cupy_depthwise", "gpu.cupy_winograd"):
        with replaced(cupy_on_numpy()) as modules:
            function, module = impls.load(name), importlib.import_module(f"impls.conv2d.{name}")
        for size, label in calls:
            module.BUSY = size  # of tiles: large ones, and small ones
            module.launch.cache_clear()
            problem = Problem.parse(label, dtype=DTYPES[LABELS.index(label) % 2])
            if not outside(vars(function), problem):
                arrays = (np.ones(shape, problem.dtype) for shape in (problem.input_shape, problem.weight_shape))
                on_numpy(function, *arrays, **problem.arguments)
        count += len(modules["cupy"].kernels)
    return count


if __name__ == "__main__":
    print(main(sys.argv[1]))
