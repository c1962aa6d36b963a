"""All tiles of a folder packed once into one array, whose bands are read by mapping the file into memory.

>>> from impls.read_batch.packing import pack
>>> pack("EuroSAT")  # writes tiles.npy and tiles.json into the folder

The array (tiles, C, H, W) holds the pixels as they are, band after band, so that only those that are wanted are read.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from impls.contract import CURES, Unavailable
from impls.read_batch.arguments import Layout, check_tile, named

ARRAY, INDEX = "tiles.npy", "tiles.json"


class NotPacked(ValueError):
    """A tile is not packed, or was changed since; the text says what to do."""


class Packed(NamedTuple):
    """A folder's packed tiles: the array, the row of each tile by its name below the folder, and each file's stamp."""

    array: np.ndarray
    rows: dict[str, int]
    stamps: list[tuple[int, int]]


def pack(folder: str | os.PathLike[str]) -> Path:
    """Pack all files below a folder whose names end in .tif; returns the array's path. What was packed before is replaced.

    Raises ValueError where there are no tiles, BadTile for one that is damaged or unlike the first.
    """
    try:
        from impls.read_batch import tifffiles
    except ImportError as error:
        raise Unavailable(f"tiles are packed with tifffile: {CURES['tifffile']}") from error
    folder = Path(folder).absolute()
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.tif"))
    if not names:
        raise ValueError(f"folder {folder} holds no tiles: no file below it is called .tif")
    first = str(folder / names[0])
    known = tifffiles.layout(named(first, tifffiles.pixels))
    check_tile(first, known, first, None, (1,))
    (folder / INDEX).unlink(missing_ok=True)  # without it the array counts for nothing, should this be interrupted
    unfinished = folder / f".{ARRAY}.{os.getpid()}"
    try:
        shape = len(names), *known[:3]
        array = np.lib.format.open_memmap(unfinished, mode="w+", dtype=known.dtype, shape=shape)
        stamps = []
        for row, name in enumerate(names):
            path = str(folder / name)
            stamps.append(_stamp(path))
            tile = named(path, tifffiles.pixels)
            check_tile(path, tifffiles.layout(tile), first, known, (1,))
            array[row] = tile
        array.flush()
        unfinished.replace(folder / ARRAY)
    finally:
        unfinished.unlink(missing_ok=True)
    unfinished = folder / f".{INDEX}.{os.getpid()}"
    unfinished.write_text(json.dumps({"names": names, "stamps": stamps}), encoding="utf-8")
    unfinished.replace(folder / INDEX)
    return folder / ARRAY


def find(tiles: list[str], bands: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, Layout]:
    """The packed array that holds these tiles, the row of each, and what they have in common.

    Raises FileNotFoundError, NotPacked, or NoSuchBand. Every file is looked at, and none is opened.
    """
    stamps = [named(path, _stamp) for path in tiles]
    folder = _home(tiles[0])
    index = Path(folder, INDEX).stat()
    packed = _open(folder, index.st_ino, index.st_mtime_ns)
    rows = np.array([_row(path, stamp, folder, packed) for path, stamp in zip(tiles, stamps, strict=True)])
    _, count, height, width = packed.array.shape
    layout = Layout(count, height, width, packed.array.dtype.name)
    check_tile(tiles[0], layout, tiles[0], None, bands)
    return packed.array, rows, layout


def _stamp(path: str) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116  # a Path for each tile would take twice as long
    return found.st_size, found.st_mtime_ns


def _home(path: str) -> str:
    """The nearest folder above a tile that has packed tiles."""
    for folder in Path(os.path.abspath(path)).parents:  # noqa: PTH100  # links stay as they are spelt
        if (folder / INDEX).is_file():
            return str(folder)
    raise NotPacked(f"tile {path} is not packed: pack its folder once with impls.read_batch.packing.pack(folder)")


def _row(path: str, stamp: tuple[int, int], folder: str, packed: Packed) -> int:
    begin = len(folder) + 1
    row = packed.rows.get(path[begin:]) if path.startswith(folder + os.sep) else None
    if row is None:  # spelt in another way, or not there
        row = packed.rows.get(os.path.relpath(path, folder))
    if row is None or packed.stamps[row] != stamp:
        what = "not packed" if row is None else "newer than the packed tiles"
        raise NotPacked(f"tile {path} is {what}: pack its folder anew with impls.read_batch.packing.pack({folder!r})")
    return row


@functools.lru_cache(maxsize=4)
def _open(folder: str, inode: int, modified: int) -> Packed:
    """Map the array and read the index: 20 ms for 27,000 names, so both are kept until the index is another file."""
    try:
        index = json.loads(Path(folder, INDEX).read_text(encoding="utf-8"))
        array = np.load(Path(folder, ARRAY), mmap_mode="r").view(np.ndarray)
        rows = {name: row for row, name in enumerate(index["names"])}
        stamps = [(size, changed) for size, changed in index["stamps"]]
        if not array.shape[0] == len(rows) == len(stamps) or array.ndim != 4:
            raise ValueError("the index is of another array")
    except (OSError, ValueError, KeyError, TypeError) as error:
        cure = f"pack them anew with impls.read_batch.packing.pack({folder!r})"
        raise NotPacked(f"the packed tiles in {folder} are damaged: {cure}") from error
    return Packed(array, rows, stamps)
