"""python noise_worker.py KIND CORE: a fresh process that measures noise.

Prints a block's seconds for each line that it reads.

Needs NumPy and nothing of convbench, so that it starts in a fraction of a second.
"""

import os
import sys
from time import perf_counter

import numpy as np

BLOCK = 0.005  # seconds, about
WARM = 0.1


def call(kind):
    """The work: a product of two matrices that fit the second cache, or a copy that fits none of most."""
    if kind == "compute":
        a = np.random.default_rng(0).random((128, 128), np.float32)
        return lambda: a @ a
    source = np.ones(1 << 23, np.float32)
    target = np.ones_like(source)
    return lambda: np.copyto(target, source)


def main(kind, core):
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    work = call(kind)
    count, start = 0, perf_counter()
    while (passed := perf_counter() - start) < WARM:
        work()
        count += 1
    number = max(1, round(BLOCK * count / passed))
    print("ready", flush=True)
    for _ in sys.stdin:
        start = perf_counter()
        for _ in range(number):
            work()
        print((perf_counter() - start) / number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
