"""Handwritten digits to train on: MNIST if there is a folder of it, otherwise those that scikit-learn ships.

MNIST: LeCun, Cortes and Burges, 60,000 and 10,000 images of 28x28 pixels in files of the IDX format. CONVBENCH_MNIST names
their folder. scikit-learn's: 1797 images of 8x8 pixels (Alpaydin and Kaynak, UCI), enlarged to 28x28.
"""

from __future__ import annotations

import functools
import gzip
import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.errors import Missing

SIDE = 28
MEAN, STD = 0.1307, 0.3081  # of the pixels of MNIST's training images from 0 to 1
FILES = {
    "images": "train-images-idx3-ubyte",
    "labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}
TESTED = 297  # of scikit-learn's images: what is left of 1500 to train on


class Digits(NamedTuple):
    """Images (N, 1, 28, 28) in float32 from 0 to 1 and labels (N,) in int64, for training and testing, and their source."""

    images: np.ndarray
    labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    name: str


def schedule() -> dict[str, int]:
    """How the text's network is trained: its batches and passes on MNIST, and as many steps on the small digits."""
    return {"batch": 1000, "epochs": 5} if os.environ.get("CONVBENCH_MNIST") else {"batch": 100, "epochs": 20}


@functools.cache
def load() -> Digits:
    """MNIST or the small digits. Raises Missing if neither is there."""
    if folder := os.environ.get("CONVBENCH_MNIST"):
        found = {part: _idx(Path(folder), name) for part, name in FILES.items()}
        for part in ("", "test_"):
            shapes = found[f"{part}images"].shape, found[f"{part}labels"].shape
            if shapes != ((count := shapes[1][0] if shapes[1] else 0, SIDE, SIDE), (count,)) or not count:
                names = " and ".join(FILES[f"{part}{what}"] for what in ("images", "labels"))
                raise Missing(f"{names} in {folder} hold {shapes[0]} and {shapes[1]} numbers, which are not MNIST's")
        scaled = {part: _scaled(array, 255) if "images" in part else array.astype(np.int64) for part, array in found.items()}
        return Digits(**scaled, name="MNIST")
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise Missing("handwritten digits ship with scikit-learn: pip install scikit-learn") from error
    small = load_digits()
    images, labels = _scaled(_enlarged(small.images), 16), small.target.astype(np.int64)
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = order[TESTED:], order[:TESTED]
    return Digits(images[train], labels[train], images[test], labels[test], "scikit-learn's digits")


def batch(n: int) -> tuple[np.ndarray, np.ndarray]:
    """n images and their labels, from the beginning again if there are fewer."""
    digits = load()
    places = np.arange(n) % len(digits.labels)
    return digits.images[places], digits.labels[places]


def normalised(images: np.ndarray) -> np.ndarray:
    """Images from 0 to 1 by MNIST's mean and standard deviation, as networks on it are usually shown them."""
    return (images - np.float32(MEAN)) / np.float32(STD)


def _scaled(images: np.ndarray, white: float) -> np.ndarray:
    return (images.astype(np.float32) / np.float32(white))[:, None]


def _enlarged(images: np.ndarray) -> np.ndarray:
    """Three pixels for one, with a border of two."""
    return np.pad(images.repeat(3, axis=1).repeat(3, axis=2), ((0, 0), (2, 2), (2, 2)))


def _idx(folder: Path, name: str) -> np.ndarray:
    """Read a file of the IDX format, compressed or not. Raises Missing that names it if it is not there or not whole."""
    path = next((each for each in (folder / name, folder / f"{name}.gz") if each.is_file()), None)
    if path is None:
        raise Missing(f"folder {folder}, which CONVBENCH_MNIST names, holds no {name}, compressed or not")
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        zero, kind, axes = struct.unpack(">HBB", content[:4])
        shape = struct.unpack(f">{axes}I", content[4 : 4 + 4 * axes])
        if (zero, kind) != (0, 8):
            raise ValueError("its numbers are not bytes")
        return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)
    except (OSError, EOFError, ValueError, struct.error, zlib.error) as error:
        raise Missing(f"{path} is not a complete IDX file: {error}") from error
