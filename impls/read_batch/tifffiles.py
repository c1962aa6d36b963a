"""A tile's bands by tifffile, for the implementations that read with it."""

from __future__ import annotations

import logging

import numpy as np
import tifffile

from impls.read_batch import tiff
from impls.read_batch.arguments import TileFormat, require_compression

# What tifffile logs about a tile goes to standard error where no program has set up logging.
logging.getLogger("tifffile").addHandler(logging.NullHandler())
# By these tifffile would read further directories while it opens a file.
PLAIN = {"is_lsm": False, "is_ndpi": False, "is_scanimage": False}


def pixels(path: str) -> np.ndarray:
    """A tile as an array (bands, height, width), which is a view where a pixel's bands lie side by side in the file.

    Raises what tiff.check_file() and tifffile do; callers go through arguments.named().
    """
    with tiff.Tile(path) as tile:
        found = tiff.check_file(tile)
        # Other ones take one more library, imagecodecs.
        require_compression(found.compression, "none", "deflate")
        return checked_pixels(tile, found)


def checked_pixels(tile: tiff.Tile, found: tiff.Image) -> np.ndarray:
    """The result of pixels() for a tile that check_file() has checked."""
    if not found.stored:  # of a single part tifffile would take the file's own first bytes for the pixels
        return np.full((found.bands, found.height, found.width), found.blank, found.dtype)
    with tifffile.TiffFile(tile, **PLAIN) as file:
        page = file.pages.first
        if found.blank is not None:
            page.nodata = found.blank  # its own is 0 where GDAL rounds
        array = page.asarray(squeeze=False, maxworkers=1)
    # (separate bands, depth, height, width, bands side by side)
    return array[:, 0, :, :, 0] if array.shape[4] == 1 else array[0, 0].transpose(2, 0, 1)


def tile_format(array: np.ndarray) -> TileFormat:
    """The common properties of a batch's tiles, from the result of pixels()."""
    bands, height, width = array.shape
    return TileFormat(bands, height, width, array.dtype.name)
