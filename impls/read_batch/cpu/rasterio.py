"""rasterio opens every tile and reads its bands, NumPy clips and scales: reader A of a post, the baseline of every table.

Reads the strips that the bands are in: all 2 C H W bytes of a tile where a pixel's bands lie side by side, 2 len(bands) H W
where they lie apart. Opening costs more than reading: GDAL lists the folder and makes a dataset with its transform and masks;
extra memory: one tile's bands as read, and in float64.
https://rasterio.readthedocs.io/en/stable/topics/reading.html
"""

import numpy as np
import rasterio
from rasterio.errors import RasterioIOError

from impls.contract import implementation
from impls.read_batch import tiff
from impls.read_batch.arguments import TileFormat
from impls.read_batch.batch import fill


@implementation(device="cpu", family="library", summary="rasterio reads the bands, NumPy clips and scales")
def read_batch(tiles, bands=(4, 3, 2), scale=4000.0, workers=1):
    """Read N tiles into a batch (N, len(bands), H, W) of clip(x / scale, 0, 1)."""

    def read(path, place):
        found = tiff.check(path, all_directories=True)  # GDAL looks for masks in the others
        try:
            opened = rasterio.open(tiff.local(path), driver="GTiff")  # GDAL would take any other format as well
        except RasterioIOError as error:
            if "missing codec" not in str(error):
                raise
            raise NotImplementedError(f"compression={found.compression}: GDAL is built without it") from error
        with opened as tile:
            values = place(TileFormat(tile.count, tile.height, tile.width, tile.dtypes[0]))
            values[:] = np.clip(tile.read(list(bands)) / scale, 0, 1)

    return fill(read, tiles, bands, workers)
