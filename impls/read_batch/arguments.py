"""Checks the arguments of read_batch, and describes faults of tiles.

Bands are numbered from 1, as rasterio has them: https://rasterio.readthedocs.io/en/stable/topics/reading.html
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from operator import index
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from impls import checks

BANDS = (4, 3, 2)  # red, green and blue of Sentinel-2
SCALE = 4000.0  # the value of white
PIXELS = ("uint8", "uint16")
MIN_SCALE, MAX_SCALE = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)  # by what can be divided in float32
# By the number that a TIFF has for it; GDAL's names.
COMPRESSIONS = {1: "none", 5: "lzw", 7: "jpeg", 8: "deflate", 32773: "packbits", 32946: "deflate", 34887: "lerc"}
COMPRESSIONS |= {34925: "lzma", 50000: "zstd", 50001: "webp", 50002: "jxl"}


class BadTile(ValueError):
    """A tile is damaged, or unlike the first of its batch; the text names the file."""


class NoSuchBand(ValueError):
    """`bands` names one that the tiles do not have."""


class TileFormat(NamedTuple):
    """What all tiles of a batch have in common."""

    bands: int
    height: int
    width: int
    dtype: str

    def __str__(self) -> str:
        return f"{self.bands} bands of {self.height}x{self.width} {self.dtype}"


def checker(arrays: str, limits: Mapping[str, Any], unchecked: Callable[..., Any] = checks.together) -> Callable[..., Any]:
    """Make the check for one implementation, which calls `unchecked` with read_batch's arguments in one form.

    The form: paths as a list of str, bands as a tuple of int, scale as float. Whether there are such bands, and what the
    limits are about, is known when a tile is opened.
    """
    if arrays != "numpy":
        raise ValueError(f'arrays must be "numpy": read_batch returns a NumPy array, not one of {arrays}')
    checks.require_limits(limits, "axes", "compression")

    def read_batch(
        tiles: Sequence[str | os.PathLike[str]], bands: Sequence[int] = BANDS, scale: float = SCALE, workers: int = 1
    ) -> tuple[list[str], tuple[int, ...], float, int]:
        return unchecked(paths(tiles), _bands(bands), _scale(scale), _workers(workers))

    return read_batch  # by this name, Python's own message about a missing argument names the operation


def unsupported(
    limits: Mapping[str, Any],
    tiles_shape: tuple[int, int, int, int],
    bands: Sequence[int] = BANDS,
    scale: float = SCALE,
    workers: int = 1,
    dtype: Any = "float32",
    compression: str = "none",
) -> str | None:
    """Return the part of tiles (N, C, H, W) outside `limits`, or None. Raises as a call would for unsupported tiles.

    dtype: the batch's. compression: the tiles', "none", "deflate" or "lzw" for example.
    """
    checks.dtype_name(dtype, ("float32",))
    if len(tiles_shape) != 4 or min(tiles_shape) < 1:
        raise ValueError(f"tiles must have a shape (N, C, H, W) without zeros, not {tiles_shape}")
    _, count, height, width = tiles_shape
    require_bands(_bands(bands), count, "the tiles")
    _scale(scale)
    _workers(workers)
    actual = {"axes": "evident" if evident(count, height, width) else "ambiguous", "compression": compression}
    for argument, only in limits.items():
        if actual[argument] not in only:
            return _outside(argument, actual[argument], only)
    return None


def evident(bands: int, height: int, width: int) -> bool:
    """Whether the shape of an array tells which of its axes holds the bands.

    It does where images are square and bands not as many as rows; one band, or one row, has lost its axis. skimage.io takes
    three or four rows for the bands of a colour image.
    """
    return 1 < bands != height == width > 4


def check_tile(path: str, tile_format: TileFormat, first: str, known: TileFormat | None, bands: tuple[int, ...]) -> None:
    """Raise BadTile for a tile that is unlike the first of its batch, NoSuchBand where the first has no such bands.

    known: the format of the first tile, None for that tile itself.
    """
    if tile_format == known:
        return
    if min(tile_format[:3]) < 1:
        raise damaged(path)
    if tile_format.dtype not in PIXELS:
        raise BadTile(f"tile {path} has pixels of {tile_format.dtype}, not {' or '.join(PIXELS)}")
    if known is not None:
        raise BadTile(f"tile {path} has {tile_format}, unlike the first tile, {first}, which has {known}")
    require_bands(bands, tile_format.bands, f"tile {path}")


def require_bands(bands: tuple[int, ...], count: int, owner: str) -> None:
    """Raise NoSuchBand for a band beyond the last."""
    if max(bands) > count:
        raise NoSuchBand(f"bands must be from 1 to {count}, the bands of {owner}, not {bands}")


def damaged(path: str) -> BadTile:
    """The error for a file that is not a complete TIFF."""
    return BadTile(f"tile {path} is damaged, cut short, or not a TIFF")


def named(path: str, read: Callable[..., Any], *more: Any) -> Any:
    """Call read(path, *more) with errors that name the tile, in the same words for every library."""
    try:
        return read(path, *more)
    except (BadTile, NoSuchBand, MemoryError):
        raise
    except NotImplementedError as error:
        raise NotImplementedError(f"tile {path}: {error}") from error
    except Exception as error:  # every library has kinds of its own, and struct.error, IndexError and the like besides
        raise _unreadable(path) from error


def require_compression(compression: str, *supported: str) -> None:
    """Raise NotImplementedError, in the words of unsupported(), for a tile that is compressed in another way."""
    if compression not in supported:
        raise NotImplementedError(_outside("compression", compression, supported))


def _outside(argument: str, actual: str, only: Sequence[str]) -> str:
    return f"{argument}={actual}: only {argument}={' or '.join(only)} is supported"


def _unreadable(path: str) -> Exception:
    if not Path(path).exists():
        return FileNotFoundError(f"tile {path} does not exist")
    if not os.access(path, os.R_OK):
        return PermissionError(f"tile {path} may not be read")
    return damaged(path)


def paths(tiles: Any) -> list[str]:
    if isinstance(tiles, (str, bytes, os.PathLike)) or not isinstance(tiles, Sequence):
        raise TypeError(f"tiles must be a list of paths, not {type(tiles).__name__}")
    if not tiles:
        raise ValueError("tiles must name at least one file: the shape of a batch is that of its tiles")
    for path in tiles:
        if not isinstance(path, str) and (not isinstance(path, os.PathLike) or not isinstance(os.fspath(path), str)):
            raise TypeError(f"tiles must hold paths, not {path!r}")
    return [os.fspath(path) for path in tiles]


def _bands(bands: Any) -> tuple[int, ...]:
    try:
        found = tuple(index(band) for band in bands)
    except TypeError:
        raise TypeError(f"bands must be a tuple of integers, not {bands!r}") from None
    if not found:
        raise ValueError(f"bands must name at least one band, not {bands!r}")
    if min(found) < 1:
        raise ValueError(f"bands must be at least 1, not {found}: the first band is 1")
    if len(set(found)) < len(found):
        raise ValueError(f"bands must name each band once, not {found}")
    return found


def _scale(scale: Any) -> float:
    number = isinstance(scale, Real)
    if not number:
        raise TypeError(f"scale must be a positive number, not {scale!r}")
    if not MIN_SCALE <= scale <= MAX_SCALE:  # so is not a number
        words = f"from {MIN_SCALE:.3g} to {MAX_SCALE:.3g}" if scale > 0 else "a positive number"
        raise ValueError(f"scale must be {words}, not {scale!r}")
    return float(scale)


def _workers(workers: Any) -> int:
    try:
        return checks.positive("workers", index(workers))
    except TypeError:
        raise TypeError(f"workers must be a positive integer, not {workers!r}") from None
