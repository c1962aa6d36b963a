"""JPEGs decoded by OpenCV, for the implementations that read with it; libjpeg-turbo does it underneath.

https://docs.opencv.org/4.x/d4/da8/group__imgcodecs.html
"""

from __future__ import annotations

import cv2
import numpy as np

from impls.preprocess.jpeg import decoded

AS_STORED = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION  # whatever its tags say of up and down


def decode(jpegs: list[bytes], i: int) -> np.ndarray:
    """The image as an array (H, W, 3) of red, green and blue in uint8. Raises BadImage that names it, and MemoryError."""
    return decoded(jpegs, i, _read)


def _read(jpeg: bytes) -> np.ndarray | None:
    try:
        return cv2.imdecode(np.frombuffer(jpeg, np.uint8), AS_STORED)
    except cv2.error as error:
        if error.code == cv2.Error.StsNoMem:
            raise MemoryError from error
        raise
