"""NumPy arrays as torch tensors on the CPU, for the implementations that call torch."""

from __future__ import annotations

import numpy as np
import torch

from impls.checks import Pair


def tensor(array: np.ndarray) -> torch.Tensor:
    """Share the array's memory; copy what torch cannot share: read-only memory, steps backwards or between elements."""
    if array.flags.writeable:
        try:
            return torch.from_numpy(array)
        except ValueError:  # checking beforehand would take an eighth of a call of 100 us with cold caches
            pass
    return torch.from_numpy(np.array(array, order="C"))


def kernels(weight: np.ndarray) -> torch.Tensor:
    """A weight as a tensor in the usual order of memory.

    Of weights in other orders torch 2.13 takes some, with groups and a side of one, for what they are not: its sums
    are wrong.
    """
    return tensor(np.ascontiguousarray(weight))


def pad_unevenly(image: torch.Tensor, padding: tuple[Pair, Pair]) -> tuple[torch.Tensor, Pair]:
    """Return an image and a padding torch's operators accept: one number an axis, so uneven padding is done first."""
    (top, bottom), (left, right) = padding
    if (top, left) == (bottom, right):
        return image, (top, left)
    return torch.nn.functional.pad(image, (left, right, top, bottom)), (0, 0)
