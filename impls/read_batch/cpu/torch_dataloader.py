"""A torch Dataset of tiles and a DataLoader: with more than one worker, processes read the parts of the batch.

tifffile reads and NumPy normalises, as in cpu.tifffile; processes have no lock to share, but are started for every batch, by
a fork of this one, and what they read comes back through shared memory and is joined. All 2 C H W bytes of a tile are read;
extra memory: the batch once more. https://docs.pytorch.org/docs/stable/data.html
"""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from impls.contract import implementation
from impls.read_batch import tifffiles
from impls.read_batch.arguments import check_tile, named
from impls.read_batch.batch import fill, shape

PART = 32  # tiles that come from a process at a time: its usual batch


class _Tiles(Dataset):
    def __init__(self, paths, bands, scale):
        self.paths, self.bands, self.scale = paths, bands, scale

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        """The tile's values, and its layout as a row of numbers."""
        path = self.paths[i]
        tile = named(path, tifffiles.pixels)
        tile_format = tifffiles.tile_format(tile)
        check_tile(path, tile_format, path, None, self.bands)
        shape(len(self.paths), self.bands, tile_format)  # refuses what the parts would not fit into
        values = np.clip(tile[np.array(self.bands) - 1] / self.scale, 0, 1).astype(np.float32)
        return torch.from_numpy(values), torch.tensor([*tile.shape, tile.itemsize])


@implementation(
    device="cpu",
    family="library",
    summary="torch's DataLoader: tifffile in worker processes, shared memory",
    limits={"compression": ("none", "deflate")},
)
def read_batch(tiles, bands=(4, 3, 2), scale=4000.0, workers=1):
    """Read N tiles into a batch (N, len(bands), H, W) of clip(x / scale, 0, 1)."""
    count = min(workers, len(tiles))
    part = min(PART, -(-len(tiles) // count))
    loader = DataLoader(_Tiles(tiles, bands, scale), batch_size=part, num_workers=0 if count == 1 else count)
    try:
        values, layouts = (torch.cat(parts) for parts in zip(*loader, strict=True))
        if (layouts == layouts[0]).all():
            return values.numpy()
        failure: Exception = RuntimeError("the tiles changed while they were read")
    except Exception as error:
        # Of any kind: what crosses from a process has a traceback for its text, and parts may not join. Its frames hold the
        # processes, which the next batch's would wait for.
        failure = error.with_traceback(None)

    def read(path, place):
        place(tifffiles.tile_format(tifffiles.pixels(path)))

    fill(read, tiles, bands, 1)  # raises for the first bad tile what every implementation raises for it
    raise failure
