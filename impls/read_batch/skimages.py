"""A tile's bands by scikit-image, for the implementations that read with it."""

from __future__ import annotations

import re

import numpy as np
from skimage.io import imread
from tifffile import TiffFile

from impls.read_batch.arguments import Layout, evident, require_compression


def pixels(path: str) -> tuple[np.ndarray, int, Layout]:
    """A tile as skimage.io gives it, the axis that holds its bands, and its layout.

    Raises what skimage does, and NotImplementedError where the array does not show the axis; callers go through
    arguments.named().
    """
    try:
        array = imread(path)
    except ValueError as error:
        if lacking := re.search(r"COMPRESSION\.(\w+).*imagecodecs", str(error)):
            require_compression(lacking[1].lower(), "none", "deflate")
        raise
    # Two bands of 5x5 pixels side by side and five bands of 5x2 one by one are the same array: the file knows which.
    with TiffFile(path) as file:
        page = file.pages.first
        bands, height, width = page.samplesperpixel, page.imagelength, page.imagewidth
    if evident(bands, height, width):
        return array, 0 if array.shape[1] == array.shape[2] else 2, Layout(bands, height, width, array.dtype.name)
    raise NotImplementedError("axes=ambiguous: only axes=evident is supported")
