"""The user's files as problems: a folder of tiles for read_batch, a picture for preprocess.

Looked at before anything is measured, so that a missing or damaged file is one error that names it.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.errors import Missing
from benchmarks.workloads.jpegs import Frames
from benchmarks.workloads.tiles import BANDS, MAX_TILES, SCALE

SUFFIXES = (".tif", ".tiff")


@dataclass(frozen=True)
class Tiles:
    """The first n tiles below a folder, in place of benchmarks/workloads/tiles.py's Batch: the same attributes."""

    paths: tuple[Path, ...] = field(repr=False)
    size: tuple[int, int, int]
    bands: tuple[int, ...]
    compression: str
    workers: None = None
    dtype: str = "float32"

    @property
    def n(self) -> int:
        return len(self.paths)

    @property
    def label(self) -> str:
        count, height, width = self.size
        return f"n{self.n}b{count}h{height}w{width}"

    @property
    def keywords(self) -> dict[str, Any]:
        return {"bands": self.bands}

    def every(self) -> list[Path]:
        return list(self.paths)

    def values(self, every: Sequence[Path], i: int) -> np.ndarray:
        """The expected values of tile i in a batch, (bands, height, width) in float64."""
        pixels = _pixels(str(every[i]))[[band - 1 for band in self.bands]]
        return np.clip(pixels.astype(np.float64) / SCALE, 0, 1)


def tiles(folder: str, most: int, bands: Sequence[int] | None) -> Tiles:
    """The first `most` tiles below a folder by name, all if there are fewer; three bands if none are named.

    Raises ValueError for a folder that is none or holds none, and for a tile that is damaged, or unlike the first. Raises
    Missing without tifffile.
    """
    from impls.read_batch import arguments  # imported here, because asv imports every file of the suite

    if importlib.util.find_spec("tifffile") is None:
        raise Missing("tiles are checked with tifffile: pip install tifffile")
    if most > MAX_TILES:
        raise ValueError(f"a batch has at most {MAX_TILES} tiles, not {most}")
    if not Path(folder).is_dir():
        raise ValueError(f"{folder} is not a folder" if Path(folder).exists() else f"folder {folder} does not exist")
    below = (path for path in Path(folder).rglob("*") if path.suffix.lower() in SUFFIXES and not path.is_dir())
    paths = sorted(below)[:most]
    if not paths:
        raise ValueError(f"folder {folder} holds no tiles: no file below it is called {' or '.join(SUFFIXES)}")
    known = None
    try:
        for path in map(str, paths):
            pixels, compression = arguments.named(path, _checked)
            count, height, width = pixels.shape
            found = arguments.TileFormat(count, height, width, pixels.dtype.name)
            # Of tiles with fewer bands than the operation's own need, the first ones.
            wanted = tuple(bands or (BANDS if count >= max(BANDS) else range(1, min(count, len(BANDS)) + 1)))
            arguments.check_tile(path, found, str(paths[0]), known, wanted)
            known = found
    except (OSError, NotImplementedError) as error:
        raise ValueError(str(error)) from error
    return Tiles(tuple(paths), pixels.shape, wanted, compression)


def _checked(path: str) -> tuple[np.ndarray, str]:
    """A tile's pixels and how they are compressed. Raises what arguments.named() has words for."""
    from impls.read_batch import arguments, tiff

    compression = tiff.check(path).compression
    arguments.require_compression(compression, "none", "deflate")  # others take one more library than tifffile
    return _pixels(path), compression


def _pixels(path: str) -> np.ndarray:
    """The first image of a TIFF as (bands, height, width). Raises whatever tifffile raises."""
    import tifffile

    # What is read as another format may have further directories read, which are not checked.
    with tifffile.TiffFile(path, is_lsm=False, is_ndpi=False, is_scanimage=False) as file:
        pixels = file.pages[0].asarray(squeeze=False)  # (bands apart, depth, height, width, bands together)
    return np.moveaxis(pixels[:, 0], -1, 1).reshape(-1, *pixels.shape[2:4])


@dataclass(frozen=True)
class Picture(Frames):
    """One JPEG and a region of it."""

    jpeg: bytes = field(default=b"", repr=False)
    top: int = 0
    left: int = 0

    def images(self) -> list[bytes]:
        return [self.jpeg]

    def places(self) -> list[tuple[int, int, int, int]]:
        return [(self.top, self.left, self.region_height, self.region_width)]


def picture(path: str, region: Sequence[int] | None, size: int) -> Picture:
    """A JPEG and a region of it, top, left, height and width, or all of it, resized to patches of size x size.

    Raises ValueError for a file that is none or is damaged, and for a region outside of it. Raises Missing without Pillow.
    """
    from impls import checks  # imported here, because asv imports every file of the suite
    from impls.decode_jpeg import jpeg

    try:
        if not Path(path).is_file():  # a named pipe would be waited for
            raise ValueError(f"{path} is not a file" if Path(path).exists() else f"{path} does not exist")
        checks.require_memory(Path(path).stat().st_size, path)
        content = Path(path).read_bytes()
        height, width = jpeg.shape(content)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except jpeg.BadImage as error:
        raise ValueError(f"{path} {error}") from error
    _require_decodable(path, content)
    top, left, high, wide = region or (0, 0, height, width)
    if min(high, wide) < 1 or top + high > height or left + wide > width:
        raise ValueError(
            f"region {high}x{wide} at row {top}, column {left} lies outside of {path}, which has {height}x{width} pixels"
        )
    return Picture(1, height, width, high, wide, size, jpeg=content, top=top, left=left)


def _require_decodable(path: str, content: bytes) -> None:
    try:
        from PIL import Image
    except ImportError as error:
        raise Missing("pictures are checked with Pillow: pip install pillow") from error
    try:
        Image.open(io.BytesIO(content), formats=["JPEG"]).convert("RGB")
    except Exception as error:  # Pillow has kinds of its own, and struct.error, IndexError and the like besides
        raise ValueError(f"{path} is damaged: it cannot be decoded") from error
