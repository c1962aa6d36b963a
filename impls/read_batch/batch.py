"""Fills a batch tile by tile, by one thread or several, for implementations that open each tile themselves."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from impls import checks
from impls.read_batch.arguments import TileFormat, check_tile, named

Place = Callable[[TileFormat], np.ndarray]


class Batch:
    """A batch being filled: its memory, once the first tile says how large it is, and the check that tiles are alike."""

    def __init__(self, tiles: list[str], bands: tuple[int, ...]) -> None:
        self.tiles, self.bands = tiles, bands
        self.tile_format: TileFormat | None = None
        self.values = np.empty(0, np.float32)

    def place(self, i: int, tile_format: TileFormat) -> np.ndarray:
        """Where the values of tile i go, of shape (len(bands), H, W), after the check that it belongs to the batch."""
        check_tile(self.tiles[i], tile_format, self.tiles[0], self.tile_format, self.bands)
        if self.tile_format is None:
            self.tile_format, self.values = tile_format, np.empty(shape(len(self.tiles), self.bands, tile_format), np.float32)
        return self.values[i]


def shape(count: int, bands: tuple[int, ...], tile_format: TileFormat) -> tuple[int, int, int, int]:
    """The shape of a batch of so many tiles. Raises MemoryError, with both numbers, where it would not fit."""
    found = count, len(bands), tile_format.height, tile_format.width
    checks.require_memory(4 * math.prod(found), f"a batch of shape {found}")
    return found


def fill(read: Callable[[str, Place], None], tiles: list[str], bands: tuple[int, ...], workers: int) -> np.ndarray:
    """The batch (N, len(bands), H, W) of float32 that read(path, place) fills, one tile a call.

    read calls place(tile_format), gets the part of the batch that is the tile's, and fills it. Where it fails, the error
    names the tile, in the same words whatever reads it; of several bad tiles the first.
    """
    batch = Batch(tiles, bands)

    def some(begin: int, stop: int) -> None:
        for i in range(begin, stop):
            named(tiles[i], read, functools.partial(batch.place, i))

    some(0, 1)  # before the others: it says how large the batch is
    in_threads(some, 1, len(tiles), workers)
    return batch.values


def in_threads(work: Callable[[int, int], None], begin: int, stop: int, workers: int) -> None:
    """Call work(first, last) for parts of a range, each in a thread of its own; the error of the first part that has one."""
    workers = min(workers, stop - begin)
    if workers <= 1:
        work(begin, stop)
        return
    edges = [begin + (stop - begin) * part // workers for part in range(workers + 1)]
    with ThreadPoolExecutor(workers) as pool:
        for part in [pool.submit(work, *pair) for pair in itertools.pairwise(edges)]:
            part.result()
