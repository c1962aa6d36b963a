"""One memory-mapped array of all tiles, packed once; NumPy gathers the bands, scales and clips in place.

Reads the 2 len(bands) H W bytes of a tile that are wanted, from the system's cache of pages where they are in it; of each
file only size and time of change are looked at. Without impls.read_batch.packing.pack(folder), or where a tile is newer, it
refuses; extra memory: the bands gathered. https://numpy.org/doc/stable/reference/generated/numpy.memmap.html
"""

import numpy as np

from impls.contract import implementation
from impls.read_batch import packing
from impls.read_batch.batch import in_threads, shape


@implementation(
    device="cpu",
    family="packed",
    summary="tiles in one memory-mapped array, gathered and scaled by NumPy",
    limits={"compression": ("none", "deflate")},
)
def read_batch(tiles, bands=(4, 3, 2), scale=4000.0, workers=1):
    """Read N tiles into a batch (N, len(bands), H, W) of clip(x / scale, 0, 1)."""
    packed, rows, tile_format = packing.find(tiles, bands)
    batch, wanted = np.empty(shape(len(tiles), bands, tile_format), np.float32), np.array(bands) - 1

    def some(begin, stop):
        values = batch[begin:stop]
        np.divide(packed[rows[begin:stop, None], wanted], scale, out=values, dtype=np.float32)
        np.clip(values, 0, 1, out=values)

    in_threads(some, 0, len(tiles), workers)
    return batch
