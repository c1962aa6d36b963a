"""Checks the arguments of train_tiles, and has the shapes of ResNet-18's arrays.

He et al., Deep residual learning for image recognition, arXiv 1512.03385, table 1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from impls import checks
from impls.adam_step import arguments as adam
from impls.read_batch import arguments as reading

CLASSES = 10
WIDTHS = (64, 128, 256, 512)  # of the four stages, each of two blocks of two layers
MAX_SEED = 2**63 - 1
Shapes = tuple[tuple[int, ...], ...]


def _convolutions() -> Iterator[tuple[int, int, int, int]]:
    yield WIDTHS[0], 3, 7, 7
    channels = WIDTHS[0]
    for width in WIDTHS:
        yield width, channels, 3, 3
        yield width, width, 3, 3
        if channels != width:
            yield width, channels, 1, 1  # brings what is added to the block's output to its shape
        yield width, width, 3, 3
        yield width, width, 3, 3
        channels = width


# In the order of torch's modules: a convolution's weight, then weight and bias of its normalisation; the linear layer's last.
PARAMETERS: Shapes = (
    *(shape for conv in _convolutions() for shape in (conv, conv[:1], conv[:1])),
    *((CLASSES, WIDTHS[-1]), (CLASSES,)),
)
STATISTICS: Shapes = tuple(conv[:1] for conv in _convolutions() for _ in ("mean", "variance"))


def checker(arrays: str, limits: Mapping[str, Any], unchecked: Callable[..., Any] = checks.together) -> Callable[..., Any]:
    """Make the check for one implementation, which calls `unchecked` with train_tiles's arguments, paths as a list of str.

    What the limits are about is known when a tile is opened.
    """
    if arrays != "numpy":
        raise ValueError(f'arrays must be "numpy": train_tiles takes NumPy arrays, not those of {arrays}')
    checks.require_limits(limits, "axes", "compression")

    def train_tiles(
        parameters: Sequence[Any],
        exp_avg: Sequence[Any],
        exp_avg_sq: Sequence[Any],
        statistics: Sequence[Any],
        tiles: Sequence[str | os.PathLike[str]],
        labels: Any,
        step: int = 1,
        batch: int = 32,
        seed: int = 0,
        workers: int = 0,
        lr: float = 1e-3,
    ) -> Any:
        lists = {
            "parameters": _updated("parameters", parameters, PARAMETERS),
            "exp_avg": _updated("exp_avg", exp_avg, PARAMETERS),
            "exp_avg_sq": _updated("exp_avg_sq", exp_avg_sq, PARAMETERS),
            "statistics": _updated("statistics", statistics, STATISTICS),
        }
        every = ((f"{name}[{i}]", array) for name, given in lists.items() for i, array in enumerate(given))
        checks.require_no_overlap((array.ctypes.data, array.nbytes, name) for name, array in every)
        paths = reading.paths(tiles)
        _require_labels(labels, len(paths))
        step, lr, *_ = adam.numbers(step, lr)
        batch, workers = _at_least("batch", batch, 1), _at_least("workers", workers, 0)
        seed = _at_least("seed", seed, 0)
        if seed > MAX_SEED:
            raise ValueError(f"seed must be at most {MAX_SEED}, not {seed}")
        return unchecked(*lists.values(), paths, labels, step, batch, seed, workers, lr)

    return train_tiles  # by this name, Python's own message about a missing argument names the operation


def unsupported(
    limits: Mapping[str, Any],
    tiles_shape: tuple[int, int, int, int],
    batch: int = 32,
    workers: int = 0,
    dtype: Any = "float32",
    compression: str = "none",
) -> str | None:
    """Return the part of tiles (N, C, H, W) outside `limits`, or None. Raises as a call would for unsupported
    tiles.
    """
    _at_least("batch", batch, 1)
    _at_least("workers", workers, 0)
    return reading.unsupported(limits, tiles_shape, dtype=dtype, compression=compression)


def _updated(name: str, given: Sequence[Any], expected: Shapes) -> list[Any]:
    """A list of arrays that are changed in place. Raises TypeError or ValueError that names the first wrong one."""
    found = list(given)
    for i, array in enumerate(found):
        checks.require_arrays("numpy", **{f"{name}[{i}]": array})
        if array.dtype != np.float32:
            raise TypeError(f"{name}[{i}] must be float32, not {array.dtype}")
        if not (array.flags.c_contiguous and array.flags.writeable):
            wrong = "read-only" if array.flags.c_contiguous else "not contiguous in memory, in C order"
            raise ValueError(f"{name}[{i}] is updated in place, and this array is {wrong}")
    if len(found) != len(expected):
        raise ValueError(f"{name} must hold ResNet-18's {len(expected)} arrays, not {len(found)}")
    for i, (array, shape) in enumerate(zip(found, expected, strict=True)):
        if array.shape != shape:
            raise ValueError(f"{name}[{i}] must have shape {shape}, not {array.shape}")
    return found


def _require_labels(labels: Any, count: int) -> None:
    checks.require_arrays("numpy", labels=labels)
    if labels.dtype != np.int64:
        raise TypeError(f"labels must be int64, not {labels.dtype}")
    if labels.shape != (count,):
        raise ValueError(f"labels must have shape {(count,)}, one for each tile, not {labels.shape}")
    if labels.min() < 0 or labels.max() >= CLASSES:
        raise ValueError(f"labels must be from 0 to {CLASSES - 1}, not {labels.min()} to {labels.max()}")


def _at_least(name: str, value: Any, minimum: int) -> int:
    try:
        found = index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if found < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {found}")
    return found
