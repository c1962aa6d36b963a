"""One memory-mapped array of all tiles, packed once; one compiled pass from the mapped pages to the batch.

Reads the 2 len(bands) H W bytes of a tile that are wanted, from the system's cache of pages where they are in it, and writes
the batch: nothing between. Of each file only size and time of change are looked at. Without
impls.read_batch.packing.pack(folder), or where a tile is newer, it refuses; extra memory: none. cpu.memmap in one pass.
"""

import numpy as np
from numba import njit

from impls.contract import implementation
from impls.read_batch import packing
from impls.read_batch.batch import in_threads, shape


@njit(cache=True, nogil=True)
def _normalise(packed, rows, bands, factor, batch):
    """clip(x * factor, 0, 1): in float64, where a product rounds to the same float32 as the quotient."""
    for n in range(len(rows)):
        for i in range(len(bands)):
            source, target = packed[rows[n], bands[i] - 1], batch[n, i]
            for y in range(source.shape[0]):
                for x in range(source.shape[1]):
                    target[y, x] = min(source[y, x] * factor, 1.0)


@implementation(
    device="cpu",
    family="packed",
    summary="tiles in one memory-mapped array, scaled by Numba in one pass",
    limits={"compression": ("none", "deflate")},
)
def read_batch(tiles, bands=(4, 3, 2), scale=4000.0, workers=1):
    """Read N tiles into a batch (N, len(bands), H, W) of clip(x / scale, 0, 1)."""
    packed, rows, tile_format = packing.find(tiles, bands)
    batch, wanted, factor = np.empty(shape(len(tiles), bands, tile_format), np.float32), np.array(bands), 1 / scale

    def some(begin, stop):
        _normalise(packed, rows[begin:stop], wanted, factor, batch[begin:stop])

    in_threads(some, 0, len(tiles), workers)
    return batch
