"""skimage.io reads every tile whole, which becomes a tensor; torch picks the bands, scales and clips: reader C of a post.

2 C H W bytes of a tile read, by tifffile underneath; the tensor shares the array's memory. Tiles whose axes
could be mistaken are refused; extra memory: one tile.
https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html
"""

import torch

from impls.contract import implementation
from impls.read_batch import skimages
from impls.read_batch.batch import fill


@implementation(
    device="cpu",
    family="library",
    summary="skimage.io reads whole tiles, torch selects, scales and clips",
    limits={"compression": ("none", "deflate"), "axes": ("evident",)},
)
def read_batch(tiles, bands=(4, 3, 2), scale=4000.0, workers=1):
    """Read N tiles into a batch (N, len(bands), H, W) of clip(x / scale, 0, 1)."""

    def read(path, place):
        tile, axis, tile_format = skimages.pixels(path)
        values, pixels = torch.from_numpy(place(tile_format)), torch.from_numpy(tile)
        for target, band in zip(values, bands, strict=True):
            target.copy_(pixels.select(axis, band - 1))
        values.div_(scale).clamp_(0, 1)

    return fill(read, tiles, bands, workers)
