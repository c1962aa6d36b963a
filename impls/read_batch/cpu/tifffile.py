"""tifffile reads every tile whole, NumPy picks the bands, scales and clips in float32, in place.

2 C H W bytes of a tile read, whichever bands are wanted, and a walk through its tags in Python, which takes most of the time
and the interpreter's lock, so that threads gain little; extra memory: one tile and the bands picked from it.
https://github.com/cgohlke/tifffile
"""

import numpy as np

from impls.contract import implementation
from impls.read_batch import tifffiles
from impls.read_batch.batch import fill


@implementation(
    device="cpu",
    family="library",
    summary="tifffile reads whole tiles, NumPy selects, scales and clips",
    limits={"compression": ("none", "deflate")},
)
def read_batch(tiles, bands=(4, 3, 2), scale=4000.0, workers=1):
    """Read N tiles into a batch (N, len(bands), H, W) of clip(x / scale, 0, 1)."""
    wanted = np.array(bands) - 1

    def read(path, place):
        tile = tifffiles.pixels(path)
        values = place(tifffiles.tile_format(tile))
        np.divide(tile[wanted], scale, out=values, dtype=np.float32)
        np.clip(values, 0, 1, out=values)

    return fill(read, tiles, bands, workers)
