"""A tile's bands by tifffile, for the implementations that read with it."""

from __future__ import annotations

import numpy as np
import tifffile

from impls.read_batch.arguments import COMPRESSIONS, Layout, damaged, require_compression


def pixels(path: str) -> np.ndarray:
    """A tile as an array (bands, height, width), which is a view where a pixel's bands lie side by side in the file.

    Raises what tifffile does; callers go through arguments.named().
    """
    with tifffile.TiffFile(path) as file:
        page = file.pages.first
        ends = [offset + count for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True)]
        if max(ends) > file.filehandle.size:  # of some tiles tifffile would make up what is missing
            raise damaged(path)
        compression = COMPRESSIONS.get(page.compression, str(int(page.compression)))
        require_compression(compression, "none", "deflate")  # the others take one more library, imagecodecs
        array = page.asarray(squeeze=False, maxworkers=1)
    # (separate bands, depth, height, width, bands side by side)
    return array[:, 0, :, :, 0] if array.shape[4] == 1 else array[0, 0].transpose(2, 0, 1)


def layout(array: np.ndarray) -> Layout:
    """What pixels() returned, as what tiles of a batch have in common."""
    bands, height, width = array.shape
    return Layout(bands, height, width, array.dtype.name)
