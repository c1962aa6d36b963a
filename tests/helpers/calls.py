"""Calls of an implementation with positions or keywords, and their outcomes."""

from types import SimpleNamespace

import numpy as np


def ones(*shape, dtype="float32"):
    return np.ones(shape, dtype)


def call(*arrays, **settings):
    return SimpleNamespace(arrays=arrays, settings=settings)


def outcome(function, *arguments, **settings):
    """The outcome of a call: the type and text of its error, or the output's bytes."""
    try:
        output = function(*arguments, **settings)
    except Exception as error:
        return type(error), str(error)
    whole = np.rint(output) + 0.0  # transforms round, and the sums of ones compared here are whole; no zero is negative
    return output.dtype.str, output.shape, whole.tobytes()


def arrays(settings, dtype, n=2):
    random = np.random.default_rng(7)
    shapes = (n, 4, 6, 7), (4, 4 // settings.get("groups", 1), 3, 2), (4,)
    return [random.integers(-4, 5, shape).astype(dtype) for shape in shapes]
