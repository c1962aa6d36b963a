"""JPEGs decoded by OpenCV, for the implementations that read with it; libjpeg-turbo does it underneath.

https://docs.opencv.org/4.x/d4/da8/group__imgcodecs.html
"""

from __future__ import annotations

import functools

import cv2
import numpy as np

from impls.decode_jpeg.jpeg import decoded

AS_STORED = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION  # whatever its tags say of up and down
# The bit that reduces, which is all that this name for grey stands for; colour is another.
REDUCED = {1: 0, 2: cv2.IMREAD_REDUCED_GRAYSCALE_2, 4: cv2.IMREAD_REDUCED_GRAYSCALE_4, 8: cv2.IMREAD_REDUCED_GRAYSCALE_8}


def decode(jpegs: list[bytes], i: int, scale: int = 1) -> np.ndarray:
    """The image at 1 / scale as an array (H, W, 3) of red, green and blue in uint8.

    Raises BadImage that names it, and MemoryError.
    """
    return decoded(jpegs, i, functools.partial(_read, scale=scale), scale)


def _read(jpeg: bytes, scale: int) -> np.ndarray | None:
    try:
        return cv2.imdecode(np.frombuffer(jpeg, np.uint8), AS_STORED | REDUCED[scale])
    except cv2.error as error:
        if error.code == cv2.Error.StsNoMem:
            raise MemoryError from error
        raise
