"""JPEGs decoded by Pillow, for the implementations that read with it; libjpeg-turbo does it underneath.

https://pillow.readthedocs.io/en/stable/handbook/image-file-formats.html
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from impls.preprocess.jpeg import decoded


def decode(jpegs: list[bytes], i: int) -> np.ndarray:
    """The image as an array (H, W, 3) of red, green and blue in uint8. Raises BadImage that names it, and MemoryError."""
    return decoded(jpegs, i, _read)


def _read(jpeg: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(jpeg), formats=["JPEG"]) as image:
        return np.asarray(image.convert("RGB"))
