"""What the first call costs in a fresh interpreter: imports, compilation, the call itself."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import inputs
from benchmarks.clock import Block
from benchmarks.problems import Problem

POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

# Runs in the fresh interpreter. Its own clock: starting Python is not part of the figure.
CHILD = """
import sys, time
start = time.perf_counter()
import numpy, impls
output = impls.load(sys.argv[1])(*numpy.load(sys.argv[2]).values(), **eval(sys.argv[3]))
seconds = time.perf_counter() - start
numpy.save(sys.argv[4], output)
print(seconds)
"""


class Restart(Block):
    """Blocks of one fresh interpreter each. Numba's cache starts "empty" or "filled"."""

    def __init__(self, name: str, problem: Problem, numba_cache: str) -> None:
        self.numba_cache = numba_cache
        # Goes with the process. The child reads its input from a file, so that making it is not part of its time.
        self.folder = tempfile.TemporaryDirectory(prefix="convbench-startup-")
        given, self.answer = Path(self.folder.name, "input.npz"), Path(self.folder.name, "output.npy")
        input, weight = inputs.make(problem)
        np.savez(given, input=input, weight=weight)
        self.command: list[str | Path] = [
            sys.executable,
            "-P",
            "-c",
            CHILD,
            name,
            given,
            repr(problem.arguments),
            self.answer,
        ]
        if numba_cache == "filled":
            self._run(self.folder.name)

    def __call__(self, number: int) -> float:
        if self.numba_cache == "filled":
            return self._run(self.folder.name)
        with tempfile.TemporaryDirectory(prefix="convbench-numba-") as cache:
            return self._run(cache)

    def _run(self, cache: str) -> float:
        environment = {**os.environ, **dict.fromkeys(POOLS, "1"), "NUMBA_CACHE_DIR": cache}
        done = subprocess.run(self.command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        self.output = np.load(self.answer)
        return float(done.stdout)
