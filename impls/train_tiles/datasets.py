"""A Dataset of labelled tiles by one implementation of read_batch, and the DataLoader that shuffles it.

https://docs.pytorch.org/docs/stable/data.html
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler

from impls import contract


@functools.cache
def reader(name: str) -> contract.Implementation:
    """An implementation of read_batch. Raises LookupError and Unavailable as impls.load does."""
    return contract.load(name, "read_batch")


class LabelledTiles(Dataset):
    """Tile i as a tensor (3, H, W) of bands 4, 3 and 2 in [0, 1], and its label.

    It knows its reader by name, and each process loads that itself.
    """

    def __init__(self, by: str, tiles: Sequence[str], labels: np.ndarray) -> None:
        self.by, self.tiles, self.labels = by, tiles, labels

    def __len__(self) -> int:
        return len(self.tiles)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(reader(self.by)([self.tiles[i]])[0]), int(self.labels[i])


def shuffled(tiles: LabelledTiles, batch: int, seed: int, workers: int) -> DataLoader[Any]:
    """Batches (n, 3, H, W) and (n,) in the order of torch.randperm(N) by a generator of this seed."""
    order = RandomSampler(tiles, generator=torch.Generator().manual_seed(seed))
    return DataLoader(tiles, batch, sampler=order, num_workers=workers)


def batches(tiles: LabelledTiles, batch: int, seed: int, workers: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The same batches, of tiles of one height and width. Raises read_batch's errors for a bad tile."""
    shape = None
    try:
        for images, labels in shuffled(tiles, batch, seed, workers):
            if shape not in (None, images.shape[1:]):
                raise ValueError("the tiles have several heights or widths")
            shape = images.shape[1:]
            yield images, labels
        return
    except Exception as error:
        # Of any kind: what crosses from a process has a traceback for its text, and tiles may not join to a batch. Its frames
        # hold the processes, which the next pass would wait for.
        failure = error.with_traceback(None)
    for path in tiles.tiles:
        reader(tiles.by)([tiles.tiles[0], path])
    raise failure
