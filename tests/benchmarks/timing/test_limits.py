"""The limits of the CPU: each is checked, and no library computes faster than the highest rate of arithmetic."""

import subprocess
import sys

import pytest

# In a process of their own: a limit confines its process to as many cores as it has threads.
CHECKED = """
from benchmarks.timing import limits
for name in limits.LIMITS:
    cell = limits.prepare(name, 1)
    cell.block(1)
    cell.verify(cell.block.output)
"""
FASTER = """
import sys
from time import perf_counter
import numpy as np
from benchmarks.timing import limits
dtype = sys.argv[1]
limit = limits.prepare(f"multiply-add, {dtype}", 1)
matrix = np.ones((768, 768), dtype)
seconds = {"limit": [], "product": []}
for _ in range(15):
    seconds["limit"].append(limit.block(4) / 4 / limits.LIMITS[f"multiply-add, {dtype}"]["flops"])
    start = perf_counter()
    matrix @ matrix
    seconds["product"].append((perf_counter() - start) / (2 * len(matrix) ** 3))
assert min(seconds["limit"]) < 1.03 * min(seconds["product"]), seconds
"""


def run(code, *arguments):
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_each_limit_computes_what_it_says():
    run(CHECKED)


@pytest.mark.alone
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_matrix_product_is_not_above_the_limit(dtype):
    run(FASTER, dtype)
