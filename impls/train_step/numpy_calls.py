"""The calls of NumPy in which a step of the perceptron spends its time, each a function of Python.

They stay Python where what calls them is compiled: cProfile sees a function of Python whatever calls it, and misses a
function of C that compiled code calls.
"""

from __future__ import annotations

import numpy as np


def dot(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The product of two matrices, into `out` if that is given."""
    return a.dot(b, out)


def fill(array: np.ndarray) -> None:
    """Zero in every element."""
    array.fill(0)
