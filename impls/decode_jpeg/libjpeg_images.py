"""JPEGs decoded by libjpeg-turbo itself, whole or a region alone, for the implementations that read with it.

https://github.com/libjpeg-turbo/libjpeg-turbo/blob/main/doc/libjpeg.txt
"""

from __future__ import annotations

import numpy as np

import impls.decode_jpeg.cpu._cython_jpeg as _cython_jpeg  # type: ignore[import-not-found]
from impls.decode_jpeg.arguments import Region
from impls.decode_jpeg.jpeg import decoded, reduced, shape


def decode(jpegs: list[bytes], i: int, scale: int = 1, region: Region | None = None) -> np.ndarray:
    """The image at 1 / scale, or a region of that, as an array (H, W, 3) of red, green and blue in uint8.

    Raises BadImage that names it, and MemoryError.
    """

    def read(jpeg: bytes) -> np.ndarray:
        image = reduced(shape(jpeg), scale)
        wanted = region or Region(0, 0, *image)
        pixels = np.empty((wanted.height, wanted.width, 3), np.uint8)
        _cython_jpeg.decode(jpeg, image, wanted, scale, pixels)
        return pixels

    return decoded(jpegs, i, read, scale, region and (region.height, region.width))
