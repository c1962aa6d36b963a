"""Checks the arguments of train_step and normalises them."""

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
    if arrays not in ("numpy", "torch"):
        raise ValueError(f'arrays must be "numpy" or "torch": train_step does not take those of {arrays}')
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
                _require_parameter(arrays, f"{name}[{i}]", array)
            if (found := tuple(tuple(array.shape) for array in given)) != expected:
                raise ValueError(f"{name} of the {network} network must have shapes {expected}, not {found}")
        every = [(f"{name}[{i}]", array) for name, given in lists.items() for i, array in enumerate(given)]
        checks.require_no_overlap((_place(arrays, array), array.nbytes, name) for name, array in every)
        _require_images(arrays, images, labels)
        step, lr, *_ = adam.numbers(step, lr)
        if limits and (reason := checks.outside(limits, {"network": network, "dtype": "float32"})):
            raise NotImplementedError(reason)
        return unchecked(network, *lists.values(), *(_contiguous(arrays, each) for each in (images, labels)), step, lr)

    return train_step  # by this name, Python's own message about a missing argument names the operation


def unsupported(limits: Mapping[str, Any], network: str, dtype: Any = "float32") -> str | None:
    """Return which argument is outside `limits`, or None. Raises as a call would for unsupported arguments."""
    shapes(network)
    checks.dtype_name(dtype, ("float32",))
    return checks.outside(limits, {"network": network, "dtype": "float32"})


def shapes(network: str) -> tuple[tuple[int, ...], ...]:
    """The shapes of a network's parameters. Raises LookupError for an unknown network."""
    if network not in SHAPES:
        raise LookupError(f"no network is called {network!r}; there are {', '.join(SHAPES)}")
    return SHAPES[network]


def _require_parameter(owner: str, name: str, array: Any) -> None:
    """Raise TypeError or ValueError for an array that cannot be updated in place."""
    checks.require_arrays(owner, **{name: array})
    if (dtype := _dtype(array)) != "float32":
        raise TypeError(f"{name} must be float32, not {dtype}")
    whole = array.is_contiguous() if owner == "torch" else array.flags.c_contiguous
    if not whole or (owner == "numpy" and not array.flags.writeable):
        wrong = "read-only" if whole else "not contiguous in memory, in C order"
        raise ValueError(f"{name} is updated in place, and this array is {wrong}")


def _require_images(owner: str, images: Any, labels: Any) -> None:
    checks.require_arrays(owner, images=images, labels=labels)
    if (found := (_dtype(images), _dtype(labels))) != ("float32", "int64"):
        raise TypeError("images must be float32 and labels int64, not {} and {}".format(*found))
    shape, count = tuple(images.shape), tuple(labels.shape)
    if shape[1:] != (1, SIDE, SIDE) or not len(images):
        raise ValueError(f"images must have shape (N, 1, {SIDE}, {SIDE}) and hold at least one, not {shape}")
    if count != (len(images),):
        raise ValueError(f"labels must have shape {(len(images),)}, one for each image, not {count}")
    # On a device this waits for it, and one that met another label there would be lost to the process.
    first, last = int(labels.min()), int(labels.max())
    if first < 0 or last >= CLASSES:
        raise ValueError(f"labels must be from 0 to {CLASSES - 1}, not {first} to {last}")


def _dtype(array: Any) -> str:
    """The dtype's name, without torch's prefix."""
    return str(array.dtype).removeprefix("torch.")


def _place(owner: str, array: Any) -> int:
    """Where an array's memory begins."""
    return array.data_ptr() if owner == "torch" else array.ctypes.data


def _contiguous(owner: str, array: Any) -> Any:
    return array.contiguous() if owner == "torch" else np.ascontiguousarray(array)


# Of weights and biases, in the order of impls/train_step/networks.py.
CONVOLUTIONS = ((3, 1, 3, 3), (3,), (3, 3, 3, 3), (3,), (6, 3, 3, 3), (6,), (6, 6, 3, 3), (6,))
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "perceptron": ((1000, 784), (1000,), (1000, 1000), (1000,), (10, 1000), (10,)),
    "convolutional": (*CONVOLUTIONS, (50, 96), (50,), (10, 50), (10,)),
    "text": (*CONVOLUTIONS, (30, 96), (30,), (10, 30), (10,)),
}
