"""skimage.io reads every tile whole, NumPy picks the bands, clips and scales: reader B of a post.

2 C H W bytes of a tile read, by tifffile underneath. What it returns does not say which axis holds the bands: the tags that
are checked before say so, and tiles are refused where axes could still be mistaken; extra memory: one tile, its bands in
float64.
https://scikit-image.org/docs/stable/api/skimage.io.html
"""

import numpy as np

from impls.contract import implementation
from impls.read_batch import skimages
from impls.read_batch.batch import fill


@implementation(
    device="cpu",
    family="library",
    summary="skimage.io reads whole tiles, NumPy selects, clips and scales",
    limits={"compression": ("none", "deflate"), "axes": ("evident",)},
)
def read_batch(tiles, bands=(4, 3, 2), scale=4000.0, workers=1):
    """Read N tiles into a batch (N, len(bands), H, W) of clip(x / scale, 0, 1)."""
    wanted = np.array(bands) - 1

    def read(path, place):
        tile, axis, tile_format = skimages.pixels(path)
        values = place(tile_format)
        values[:] = np.clip(np.moveaxis(tile, axis, 0)[wanted] / scale, 0, 1)

    return fill(read, tiles, bands, workers)
