"""Times the first call in a fresh interpreter: imports, compilation, the call itself."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing.clock import Block

POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

# Runs in the fresh interpreter. Its own clock: starting Python and reading the input are not part of the figure.
CHILD = """
import sys, time
name, shapes, arguments, folder = sys.argv[1], eval(sys.argv[2]), eval(sys.argv[3]), sys.argv[4]
given = [open(f"{folder}/{i}", "rb").read() for i in range(2)]
start = time.perf_counter()
import numpy, impls
arrays = [numpy.frombuffer(g, numpy.float32).reshape(s) for g, s in zip(given, shapes)]
output = impls.load(name)(*arrays, **arguments)
seconds = time.perf_counter() - start
numpy.save(f"{folder}/output.npy", output)
print(seconds)
"""


class Restart(Block):
    """Blocks of one fresh interpreter each. Numba's cache starts "empty" or "filled"."""

    def __init__(self, name: str, arrays: Sequence[np.ndarray], arguments: Mapping[str, Any], numba_cache: str) -> None:
        """name: an implementation of conv2d. arrays: its input and weight, in float32. arguments: its keyword arguments."""
        self.numba_cache = numba_cache
        # Goes with the process. The child reads its input from a file, so that making it is not part of its time.
        self.folder = tempfile.TemporaryDirectory(prefix="convbench-startup-")
        for i, array in enumerate(arrays):
            Path(self.folder.name, str(i)).write_bytes(array.tobytes())
        shapes = repr(tuple(array.shape for array in arrays))
        script = [sys.executable, "-P", "-c", CHILD]
        self.command = [*script, name, shapes, repr(arguments), self.folder.name]
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
        self.output = np.load(Path(self.folder.name, "output.npy"))
        return float(done.stdout)
