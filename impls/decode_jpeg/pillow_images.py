"""JPEGs decoded by Pillow, for the implementations that read with it; libjpeg-turbo does it underneath.

https://pillow.readthedocs.io/en/stable/handbook/image-file-formats.html
"""

from __future__ import annotations

import functools
import io

import numpy as np
from PIL import Image

from impls.decode_jpeg.jpeg import decoded


def decode(jpegs: list[bytes], i: int, scale: int = 1) -> np.ndarray:
    """The image at 1 / scale as an array (H, W, 3) of red, green and blue in uint8.

    Raises BadImage that names it, and MemoryError.
    """
    return decoded(jpegs, i, functools.partial(_read, scale=scale), scale)


def _read(jpeg: bytes, scale: int) -> np.ndarray:
    with Image.open(io.BytesIO(jpeg), formats=["JPEG"]) as image:
        if scale > 1:
            # The smallest size that it may reduce to; it takes the largest scale that leaves as many pixels.
            image.draft(None, (image.width // scale, image.height // scale))
        return np.asarray(image.convert("RGB"))
