"""JPEGs decoded by Pillow, for the implementations that read with it; libjpeg-turbo does it underneath.

https://pillow.readthedocs.io/en/stable/handbook/image-file-formats.html
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from impls.preprocess.jpeg import BadImage


def decode(jpegs: list[bytes], i: int) -> np.ndarray:
    """The image as an array (H, W, 3) of red, green and blue in uint8. Raises BadImage that names it."""
    try:
        with Image.open(io.BytesIO(jpegs[i]), formats=["JPEG"]) as image:
            return np.asarray(image.convert("RGB"))
    except (OSError, SyntaxError, ValueError) as error:
        raise BadImage(f"jpegs[{i}] is damaged: it cannot be decoded") from error
