"""What the first call costs in a fresh interpreter: imports, compilation, the call itself."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import inputs
from benchmarks.cell import Cell
from benchmarks.problems import Problem

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


def restart(cell: Cell, name: str, problem: Problem, numba_cache: str) -> None:
    """Turn a prepared cell into one whose calls are fresh interpreters; Numba's cache starts "empty" or "filled"."""
    # Goes with the process; a file of its own so that the child's time does not include making the input.
    folder = tempfile.TemporaryDirectory(prefix="convbench-startup-")
    given = Path(folder.name, "input.npz")
    input, weight = inputs.make(problem)
    np.savez(given, input=input, weight=weight)
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")

    def run(cache: str) -> tuple[float, np.ndarray]:
        answer = Path(folder.name, "output.npy")
        command: list[str | Path] = [sys.executable, "-P", "-c", CHILD, name, given, repr(problem.arguments), answer]
        environment = {**os.environ, **one_thread, "NUMBA_CACHE_DIR": cache}
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        return float(done.stdout), np.load(answer)

    def block(number: int) -> tuple[float, np.ndarray]:
        if numba_cache == "filled":
            return run(folder.name)
        with tempfile.TemporaryDirectory(prefix="convbench-numba-") as cache:
            return run(cache)

    if numba_cache == "filled":
        cell.called += run(folder.name)[0]
    cell.block = block
    cell.call = lambda: block(1)[1]
    cell.folder = folder
