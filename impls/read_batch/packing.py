"""All tiles of a folder packed once into one array, whose bands are read by mapping the file into memory.

>>> from impls.read_batch.packing import pack
>>> pack("EuroSAT")  # writes tiles.npy and tiles.json into the folder

The array (tiles, C, H, W) holds the pixels as they are, band after band, so that only those that are wanted are read.
"""

from __future__ import annotations

import functools
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from impls.contract import CURES, Unavailable
from impls.read_batch.arguments import PIXELS, TileFormat, check_tile, named

ARRAY, INDEX = "tiles.npy", "tiles.json"
File = tuple[int, int, int]  # device, inode and time of change: another file has others


class NotPacked(ValueError):
    """A tile is not packed, or was changed since; the message has the cure."""


class Packed(NamedTuple):
    """A folder's packed tiles: the array, the row of each tile by its name below the folder, and each file's stamp."""

    array: np.ndarray
    rows: dict[str, int]
    stamps: list[tuple[int, int]]


def pack(folder: str | os.PathLike[str]) -> Path:
    """Pack all files below a folder whose names end in .tif; returns the array's path. What was packed before is replaced.

    Raises ValueError if there are no tiles, BadTile for one that is damaged or unlike the first.
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
    known = tifffiles.tile_format(named(first, tifffiles.pixels))
    check_tile(first, known, first, None, (1,))
    (folder / INDEX).unlink(missing_ok=True)  # without the index the array is ignored, if this is interrupted
    stamps = []
    with _replacing(folder / ARRAY) as file:
        form = {"descr": np.dtype(known.dtype).str, "fortran_order": False, "shape": (len(names), *known[:3])}
        np.lib.format.write_array_header_1_0(file, form)
        for name in names:
            path = str(folder / name)
            stamps.append(_look(path)[0])
            tile = named(path, tifffiles.pixels)
            check_tile(path, tifffiles.tile_format(tile), first, known, (1,))
            file.write(np.ascontiguousarray(tile).data)
    with _replacing(folder / INDEX) as file:
        file.write(json.dumps({"names": names, "stamps": stamps}).encode())
    return folder / ARRAY


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes a path's place once it is written; if that fails, nothing is left of it."""
    # A random name of a file that does not exist yet: under a known one a link of another user could lie in wait.
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with unfinished.open("xb") as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def find(tiles: list[str], bands: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, TileFormat]:
    """The packed array that holds these tiles, the row of each, and what they have in common.

    Raises FileNotFoundError, NotPacked, or NoSuchBand. Every file is looked at, and none is opened.
    """
    looks = [named(path, _look) for path in tiles]
    folder, *files = _home(tiles, [owner for _, owner in looks])
    packed = _open(folder, *files)
    rows = np.array([_row(path, stamp, folder, packed) for path, (stamp, _) in zip(tiles, looks, strict=True)])
    _, count, height, width = packed.array.shape
    tile_format = TileFormat(count, height, width, packed.array.dtype.name)
    check_tile(tiles[0], tile_format, tiles[0], None, bands)
    return packed.array, rows, tile_format


def _look(path: str) -> tuple[tuple[int, int], int]:
    """A file's stamp, and the user that owns it."""
    found = os.stat(path)  # noqa: PTH116  # a Path for each tile would take twice as long
    return (found.st_size, found.st_mtime_ns), found.st_uid


def _home(tiles: list[str], owners: list[int]) -> tuple[str, File, File]:
    """The nearest folder above the first tile that has packed tiles to be trusted, with its index and array."""
    for folder in Path(os.path.abspath(tiles[0])).parents:  # noqa: PTH100  # links stay as they are spelt
        try:
            index, array = (folder / INDEX).lstat(), (folder / ARRAY).lstat()
        except OSError:
            continue
        if _trusted(str(folder), {index.st_uid, array.st_uid}, tiles, owners):
            return str(folder), _file(index), _file(array)
    raise NotPacked(f"tile {tiles[0]} is not packed: pack its folder once with impls.read_batch.packing.pack(folder)")


def _trusted(folder: str, users: set[int], tiles: list[str], owners: list[int]) -> bool:
    """Whether files of these users can be trusted for the tiles.

    Those of this process's user may, of a tile's owner, and beside a tile. Others would supply the pixels of any tile below a
    folder that they may write to.
    """
    others = users - {os.geteuid()}
    if not others or others == {*owners}:
        return True
    return all(
        others == {owner} or os.path.dirname(os.path.abspath(path)) == folder  # noqa: PTH100, PTH120  # as they are spelt
        for path, owner in zip(tiles, owners, strict=True)
    )


def _row(path: str, stamp: tuple[int, int], folder: str, packed: Packed) -> int:
    begin = len(folder) + 1
    row = packed.rows.get(path[begin:]) if path.startswith(folder + os.sep) else None
    if row is None:  # spelt in another way, or not there
        row = packed.rows.get(os.path.relpath(path, folder))
    if row is None or packed.stamps[row] != stamp:
        what = "not packed" if row is None else "newer than the packed tiles"
        raise NotPacked(f"tile {path} is {what}: pack its folder again with impls.read_batch.packing.pack({folder!r})")
    return row


@functools.lru_cache(maxsize=4)
def _open(folder: str, index: File, array: File) -> Packed:
    """Map the array and read the index: 20 ms for 27,000 names, so both are kept until one is another file."""
    try:
        with _opened(Path(folder, INDEX), index) as file:
            said = json.loads(file.read())
        with _opened(Path(folder, ARRAY), array) as file:
            pixels = _mapped(file)
        names, stamps = said["names"], [(size, changed) for size, changed in said["stamps"]]
        rows = {name: row for row, name in enumerate(names)}
        if type(names) is not list or {*map(type, names)} != {str} or {type(n) for stamp in stamps for n in stamp} != {int}:
            raise TypeError("names must be strings, and stamps pairs of integers")
        if not len(pixels) == len(names) == len(rows) == len(stamps):
            raise ValueError("the index is of another array")
    except Exception as error:  # another user's files: RecursionError, MemoryError and the errors of every wrong type
        cure = f"pack them again with impls.read_batch.packing.pack({folder!r})"
        raise NotPacked(f"the packed tiles in {folder} are damaged: {cure}") from error
    return Packed(pixels, rows, stamps)


def _file(status: os.stat_result) -> File:
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _opened(path: Path, known: File) -> BinaryIO:
    """The regular file that was looked at before, open; no other, and no named pipe is waited for."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    status = os.fstat(file.fileno())
    if _file(status) != known or not stat.S_ISREG(status.st_mode):
        file.close()
        raise ValueError("not the file that was looked at")
    return file


def _mapped(file: BinaryIO) -> np.ndarray:
    """The array of a file as NumPy writes it, of pixels as tiles have them, which end where the file does."""
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, fortran, dtype = read[np.lib.format.read_magic(file)](file)
    if fortran or dtype not in map(np.dtype, PIXELS) or len(shape) != 4 or min(shape) < 1:
        raise ValueError("not an array of tiles")
    begin = file.tell()
    if begin + math.prod(shape) * dtype.itemsize != os.fstat(file.fileno()).st_size:
        raise ValueError("not as long as its header says")
    return np.memmap(file, dtype, "r", begin, shape).view(np.ndarray)
