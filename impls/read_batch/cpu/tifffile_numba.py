"""tifffile reads every tile whole, one compiled pass picks the bands, converts, scales and clips into the batch.

2 C H W bytes of a tile read, and a walk through its tags in Python, which takes most of the time; the pass itself makes no
array and takes microseconds; extra memory: one tile. Three NumPy passes fused into one, as cpu.tifffile has them.
"""

import numpy as np
from numba import njit

from impls.contract import implementation
from impls.read_batch import tifffiles
from impls.read_batch.batch import fill


@njit(cache=True, nogil=True)
def _normalise(tile, bands, factor, values):
    """clip(tile[band - 1] * factor, 0, 1): in float64, where a product rounds to the same float32 as the quotient."""
    for i in range(len(bands)):
        band = bands[i] - 1
        for y in range(tile.shape[1]):
            for x in range(tile.shape[2]):
                values[i, y, x] = min(tile[band, y, x] * factor, 1.0)


@implementation(
    device="cpu",
    family="fused",
    summary="tifffile reads whole tiles, Numba selects, scales and clips in one pass",
    limits={"compression": ("none", "deflate")},
)
def read_batch(tiles, bands=(4, 3, 2), scale=4000.0, workers=1):
    """Read N tiles into a batch (N, len(bands), H, W) of clip(x / scale, 0, 1)."""
    wanted, factor = np.array(bands), 1 / scale

    def read(path, place):
        tile = tifffiles.pixels(path)
        _normalise(tile, wanted, factor, place(tifffiles.tile_format(tile)))

    return fill(read, tiles, bands, workers)
