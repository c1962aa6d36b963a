"""The one place where the arguments of train_step are checked and brought into one form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from impls import checks
from impls.adam_step import arguments as adam

SIDE, CLASSES = 28, 10
LISTS = ("parameters", "exp_avg", "exp_avg_sq")


def checker(arrays: str, limits: Mapping[str, Any], unchecked: Callable[..., Any] = checks.together) -> Callable[..., Any]:
    """Make the check for one implementation, which calls `unchecked` with train_step's arguments, lists as lists."""
    if arrays != "numpy":
        raise ValueError(f'arrays must be "numpy": train_step takes NumPy arrays, not those of {arrays}')
    checks.require_limits(limits, "network", "dtype")

    def train_step(
        network: str,
        parameters: Sequence[Any],
        exp_avg: Sequence[Any],
        exp_avg_sq: Sequence[Any],
        images: Any,
        labels: Any,
        step: int,
        lr: float = 1e-3,
    ) -> Any:
        expected = shapes(network)
        lists = dict(zip(LISTS, (list(parameters), list(exp_avg), list(exp_avg_sq)), strict=True))
        for name, given in lists.items():
            for i, array in enumerate(given):
                checks.require_arrays("numpy", **{f"{name}[{i}]": array})
                if array.dtype != np.float32:
                    raise TypeError(f"{name}[{i}] must be float32, not {array.dtype}")
                if not (array.flags.c_contiguous and array.flags.writeable):
                    wrong = "read-only" if array.flags.c_contiguous else "not contiguous in memory, in C order"
                    raise ValueError(f"{name}[{i}] is updated in place, and this array is {wrong}")
            if (found := tuple(array.shape for array in given)) != expected:
                raise ValueError(f"{name} of the {network} network must have shapes {expected}, not {found}")
        every = [(f"{name}[{i}]", array) for name, given in lists.items() for i, array in enumerate(given)]
        checks.require_no_overlap((array.ctypes.data, array.nbytes, name) for name, array in every)
        _require_images(images, labels)
        if limits and (reason := checks.outside(limits, {"network": network, "dtype": "float32"})):
            raise NotImplementedError(reason)
        step, lr, *_ = adam.numbers(step, lr)
        return unchecked(network, *lists.values(), np.ascontiguousarray(images), np.ascontiguousarray(labels), step, lr)

    return train_step  # by this name, Python's own message about a missing argument names the operation


def unsupported(limits: Mapping[str, Any], network: str, dtype: Any = "float32") -> str | None:
    """Say in words which argument is outside `limits`, or None. Raises as a call would for arguments nobody supports."""
    shapes(network)
    checks.dtype_name(dtype, ("float32",))
    return checks.outside(limits, {"network": network, "dtype": "float32"})


def shapes(network: str) -> tuple[tuple[int, ...], ...]:
    """The shapes of a network's parameters. Raises LookupError for one that there is not."""
    if network not in SHAPES:
        raise LookupError(f"no network is called {network!r}; there are {', '.join(SHAPES)}")
    return SHAPES[network]


def _require_images(images: Any, labels: Any) -> None:
    checks.require_arrays("numpy", images=images, labels=labels)
    if images.dtype != np.float32 or labels.dtype != np.int64:
        raise TypeError(f"images must be float32 and labels int64, not {images.dtype} and {labels.dtype}")
    if images.shape[1:] != (1, SIDE, SIDE) or not len(images):
        raise ValueError(f"images must have shape (N, 1, {SIDE}, {SIDE}) and hold at least one, not {images.shape}")
    if labels.shape != (len(images),):
        raise ValueError(f"labels must have shape {(len(images),)}, one for each image, not {labels.shape}")
    if labels.min() < 0 or labels.max() >= CLASSES:
        raise ValueError(f"labels must be from 0 to {CLASSES - 1}, not {labels.min()} to {labels.max()}")


# Of weights and biases, in the order of impls/train_step/networks.py.
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "perceptron": ((1000, 784), (1000,), (1000, 1000), (1000,), (10, 1000), (10,)),
    "convolutional": (
        *((3, 1, 3, 3), (3,), (3, 3, 3, 3), (3,), (6, 3, 3, 3), (6,), (6, 6, 3, 3), (6,)),
        *((50, 96), (50,), (10, 50), (10,)),
    ),
}
