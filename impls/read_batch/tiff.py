"""What the first directory of a TIFF says: the check before a library reads a tile, and where its strips lie in the file.

Adobe, TIFF Revision 6.0, 1992: sections 2 (structure), 7 (strips), 8 (baseline tags) and 15 (blocks, which it calls tiles).
BigTIFF: https://libtiff.gitlab.io/libtiff/specification/bigtiff.html

Libraries make room for what a file claims. Here each claim is held against the bytes that the file has, before a library
reads it and before anything is allocated.
"""

from __future__ import annotations

import io
import os
import stat
from operator import add, lt
from struct import Struct, unpack
from typing import NamedTuple

from impls.read_batch.arguments import COMPRESSIONS, TileFormat, require_compression

WIDTH, HEIGHT, BITS, COMPRESSION, OFFSETS, SAMPLES = 256, 257, 258, 259, 273, 277
ROWS, COUNTS, PLANAR, FORMAT = 278, 279, 284, 339
BLOCK_WIDTH, BLOCK_HEIGHT, BLOCK_OFFSETS, BLOCK_COUNTS = 322, 323, 324, 325
STRIPS, BLOCKS = {OFFSETS, COUNTS}, {BLOCK_WIDTH, BLOCK_HEIGHT, BLOCK_OFFSETS, BLOCK_COUNTS}
SUBDIRECTORIES = 330
DEPTHS = 32997, 32998  # planes of an image and of a block, by which tifffile multiplies its size
MICROSCOPES = {33628, 34412, 65420}  # tags of MetaMorph, Zeiss and Hamamatsu, with which tifffile reads by other rules
NUMBERS = {1: "B", 3: "H", 4: "I", 16: "Q"}  # the types that the tags above have
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
FORMATS = {1: "uint", 2: "int", 3: "float"}
# Bytes of pixels that a byte of the file can hold. deflate: 258 bytes that repeat take two codes of at least a bit each
# (https://zlib.net/zlib_tech.html). lzw: a code of 12 bits stands for a string of the table, the longest of 3,837 bytes.
# Others: the densest known is zstd, which has four bytes for a block of 128 KiB that are alike.
DENSITY = {"none": 1, "deflate": 1032, "lzw": 2560}
DENSEST = 32768
MAX_DIRECTORIES = 32  # that GDAL may find behind the first: images at half the size, a quarter and so on, and their masks
START = 4096  # bytes that are read first, which is all of the header where it lies at the beginning
Entry = tuple[int, int, int, int]  # of a directory: type, how many, the value or its place, bytes
Header = tuple[tuple[int, bytes], ...]
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY  # a named pipe is not waited for, and no terminal is taken over


class Image(NamedTuple):
    """What the first directory says of an image.

    order: "<" or ">", the order of a number's bytes. together: whether a pixel's bands lie side by side; otherwise the parts
    of the first band come first. blocks: whether the parts are blocks, not strips. rows: of a part, but for the last strip of
    a band. following: where the next directory lies, 0 where there is none. tags: of the directory. texts: the values of the
    tags that were asked for, b"" for a missing one. offsets, counts: the entries that say where the parts lie and how long
    they are. page: bytes of all parts when they are not compressed. least: how many bytes each part has at least. header: the
    bytes that say all this, as pairs of place and bytes; a file of at least `size` bytes that has them too says the same.
    """

    order: str
    big: bool
    bands: int
    height: int
    width: int
    bits: int
    formats: tuple[int, ...]
    compression: str
    together: bool
    blocks: bool
    rows: int
    following: int
    tags: frozenset[int]
    texts: tuple[bytes, ...]
    offsets: Entry
    counts: Entry
    page: int
    least: tuple[int, ...]
    header: Header
    size: int


class Parts(NamedTuple):
    """Where the parts of an image begin; header and size as of an Image."""

    offsets: tuple[int, ...]
    header: Header
    size: int


class Strips(NamedTuple):
    """A tile's strips of rows: where each begins, and of how many rows the strips are but for the last.

    order: "<" or ">", the order of a number's bytes. together: whether a pixel's bands lie side by side; otherwise the strips
    of the first band come first. header: what of the file says all this, as pairs of place and bytes; in files where the same
    bytes lie there the strips lie alike. size: bytes that the file has at least.
    """

    tile_format: TileFormat
    order: str
    together: bool
    rows: int
    offsets: tuple[int, ...]
    header: Header
    size: int


class _Form:
    """How TIFF or BigTIFF writes its directory, in one order of bytes."""

    def __init__(self, order: str, big: bool) -> None:
        self.order, self.big = order, big
        self.first = Struct(order + ("4xHHQ" if big else "4xI"))
        self.count = Struct(order + ("Q" if big else "H"))
        self.entry = Struct(order + ("HHQQ" if big else "HHII"))
        self.offset = Struct(order + ("Q" if big else "I"))
        self.short = 0 if order == "<" else 8 * (self.offset.size - 2)  # bits behind a number of two bytes


FORMS = {
    b"II*\0": _Form("<", big=False),
    b"MM\0*": _Form(">", big=False),
    b"II+\0": _Form("<", big=True),
    b"MM\0+": _Form(">", big=True),
}


class _File:
    """An open file, and what was read of it. Raises ValueError where it is none, or ends before what is read."""

    def __init__(self, file: int) -> None:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a regular file")
        self.file, self.length, self.start = file, status.st_size, os.pread(file, START, 0)
        self.header: list[tuple[int, bytes]] = []

    def get(self, place: int, count: int) -> bytes:
        end = place + count
        if end > self.length:
            raise ValueError("the file is cut short")
        data = self.start[place:end] if end <= len(self.start) else os.pread(self.file, count, place)
        if len(data) < count:
            raise ValueError("the file is cut short")
        self.header.append((place, data))
        return data

    def value(self, form: _Form, entry: Entry) -> bytes:
        _, _, value, size = entry
        return form.offset.pack(value)[:size] if size <= form.offset.size else self.get(value, size)

    def numbers(self, form: _Form, entry: Entry) -> tuple[int, ...]:
        kind, number, value, _ = entry
        if number == 1 and kind == 3:
            return (value >> form.short & 0xFFFF,)
        return unpack(f"{form.order}{number}{NUMBERS[kind]}", self.value(form, entry))

    def read(self) -> Header:
        """What was read since it was asked last."""
        header, self.header = self.header, []
        return tuple(header)

    def says(self, header: Header, size: int) -> bool:
        """Whether the file says what another with this header does."""
        return self.length >= size and all(self.start[place : place + len(data)] == data for place, data in header)


_known: dict[tuple[tuple[int, ...], bool], tuple[Image, Parts]] = {}  # of the last file: most of a batch are alike


class Tile(io.BufferedReader):
    """A file that is open for its check and for the library that reads it then, so that it is opened once.

    skimage.io tells formats apart by how a name ends, and asks a file for nothing but lower().
    """

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(io.FileIO(path, opener=lambda path, _: os.open(path, READ)))

    def lower(self) -> str:
        return self.path.lower()


def check(path: str, texts: tuple[int, ...] = (), all_directories: bool = False) -> Image:
    """check_file() of a file that is opened for that alone."""
    with Tile(path) as file:
        return check_file(file, texts, all_directories)


def check_file(tile: Tile, texts: tuple[int, ...] = (), all_directories: bool = False) -> Image:
    """Hold what a file claims against its bytes, before a library reads it.

    texts: tags whose values are wanted as bytes. all_directories: whether the library reads the directories behind the first.
    Raises NotImplementedError for what no implementation reads, and OSError, ValueError or KeyError for what is no regular
    file or no whole TIFF; callers go through arguments.named().
    """
    file = _File(tile.fileno())
    image, parts = _known.get((texts, all_directories), (None, None))
    if image is None or not file.says(image.header, image.size):
        image, parts = _image(file, texts, all_directories), None
    if parts is None or not file.says(parts.header, parts.size):
        _known[texts, all_directories] = image, _parts(file, image)
    return image


def local(path: str) -> str:
    """The path of a file, which no library takes for a URL, for a file of GDAL's below /vsi, or for options of a driver."""
    path = path if path.startswith("/") else f"{os.getcwd()}/{path}"  # noqa: PTH109  # links stay as they are spelt
    return f"/.{path}" if path.startswith("/vsi") else path


def strips(file: int) -> Strips:
    """Where the strips of an open file lie.

    Raises NotImplementedError for what is stored in another way, and OSError, ValueError or KeyError for what is no whole
    TIFF; callers go through arguments.named().
    """
    opened = _File(file)
    image = _image(opened)
    parts = _parts(opened, image)
    if image.big:
        raise NotImplementedError("a BigTIFF: only TIFF is supported")
    if image.blocks:
        raise NotImplementedError("stored in blocks: only strips are supported")
    require_compression(image.compression, "none")
    (form,) = set(image.formats)  # of all bands the same
    tile_format = TileFormat(image.bands, image.height, image.width, f"{FORMATS[form]}{image.bits}")
    header, size = (*image.header, *parts.header), max(image.size, parts.size)
    return Strips(tile_format, image.order, image.together, image.rows, parts.offsets, header, size)


def _image(file: _File, texts: tuple[int, ...] = (), all_directories: bool = False) -> Image:
    """Read the first directory: the image has pixels, and there are as many parts as they take."""
    form = FORMS[file.start[:4]]
    *constants, place = form.first.unpack(file.get(0, form.first.size))
    if constants not in ([], [8, 0]):
        raise ValueError("not a TIFF")
    entries, following, last = _entries(file, form, place)
    if not MICROSCOPES.isdisjoint(entries):
        raise NotImplementedError("a format of microscopes: only TIFF is supported")
    if all_directories:
        last = max(last, _further(file, form, entries, following))

    def numbers(tag: int, *default: int) -> tuple[int, ...]:
        return default if tag not in entries and default else file.numbers(form, entries[tag])

    (height,), (width,), (bands,), (planar,) = numbers(HEIGHT), numbers(WIDTH), numbers(SAMPLES, 1), numbers(PLANAR, 1)
    (bits,), (code,) = set(numbers(BITS, 1)), numbers(COMPRESSION, 1)  # bits: of all bands the same
    blocks, offsets, counts = not BLOCKS.isdisjoint(entries), OFFSETS, COUNTS
    if blocks:
        (across,), (rows,), offsets, counts = numbers(BLOCK_WIDTH), numbers(BLOCK_HEIGHT), BLOCK_OFFSETS, BLOCK_COUNTS
    else:
        across, (rows,) = width, numbers(ROWS, height)
        rows = min(rows, height)
    if min(height, width, bands, bits, across, rows) < 1 or planar not in (1, 2):
        raise ValueError("an image without pixels")
    if blocks and not STRIPS.isdisjoint(entries):
        raise ValueError("strips and blocks at once")
    if any(numbers(tag, 1) != (1,) for tag in DEPTHS):
        raise NotImplementedError("a stack of images: only one image is supported")
    together = planar == 1
    samples, planes = (bands, 1) if together else (1, bands)
    along, down = -(-width // across), -(-height // rows)
    if not along * down * planes == entries[offsets][1] == entries[counts][1]:
        raise ValueError("there are parts missing")
    if not {entries[offsets][0], entries[counts][0]} <= NUMBERS.keys():  # of others it is not known that the file holds them
        raise ValueError("the places of the parts are no integers")
    line = -(-across * bits * samples // 8)  # bytes of a row of a part
    compression = COMPRESSIONS.get(code, str(code))
    least: tuple[int, ...] = ()
    if compression == "none" and not blocks:
        least = (*[rows * line] * (down - 1), (height - (down - 1) * rows) * line) * planes
    return Image(
        order=form.order,
        big=form.big,
        bands=bands,
        height=height,
        width=width,
        bits=bits,
        formats=numbers(FORMAT, 1),
        compression=compression,
        together=together,
        blocks=blocks,
        rows=rows,
        following=following,
        tags=frozenset(entries),
        texts=tuple(file.value(form, entries[tag]) if tag in entries else b"" for tag in texts),
        offsets=entries[offsets],
        counts=entries[counts],
        page=planes * line * (along * down * rows if blocks else height),
        least=least,
        header=file.read(),
        size=last,
    )


def _parts(file: _File, image: Image) -> Parts:
    """Read where the parts lie: they have data, in the file, do not overlap, and can hold the page."""
    form = FORMS[file.start[:4]]
    offsets, counts = file.numbers(form, image.offsets), file.numbers(form, image.counts)
    if not all(counts) or not all(offsets):
        raise NotImplementedError("parts left out (sparse): only files that hold all pixels are supported")
    # Without overlaps parts are no longer together than the file; a sum is cheaper than to look at each pair.
    stored, end = sum(counts), max(map(add, offsets, counts))
    if max(stored, end) > file.length or min(offsets) < form.first.size:
        raise ValueError("the file is cut short")
    if image.page > DENSITY.get(image.compression, DENSEST) * stored or any(map(lt, counts, image.least)):
        raise ValueError("there are parts missing")
    return Parts(offsets, file.read(), max(stored, end))


def _further(file: _File, form: _Form, entries: dict[int, Entry], following: int) -> int:
    """Read the directories behind the first, as the first; returns the length that they need."""
    if SUBDIRECTORIES in entries:
        raise NotImplementedError("directories below the first: only directories behind it are supported")
    last = count = 0
    while following:
        _, following, end = _entries(file, form, following)
        last, count = max(last, end), count + 1
        if count > MAX_DIRECTORIES:
            raise NotImplementedError(f"over {MAX_DIRECTORIES} images behind the first: only fewer are supported")
    return last


def _entries(file: _File, form: _Form, place: int) -> tuple[dict[int, Entry], int, int]:
    """A directory's entries by tag, where the next directory lies, and the length that the values need.

    A tag comes once, and the values together are no longer than the file, which would hold them: a library may read them all.
    """
    inline = form.offset.size
    (count,) = form.count.unpack(file.get(place, form.count.size))
    data = file.get(place + form.count.size, count * form.entry.size + inline)
    (following,) = form.offset.unpack(data[-inline:])
    entries: dict[int, Entry] = {}
    last = total = 0
    for tag, kind, number, value in form.entry.iter_unpack(data[:-inline]):
        size = number * SIZES.get(kind, 0)
        entries[tag] = kind, number, value, size
        if size > inline:
            total += size
            if value + size > last:
                last = value + size
    if len(entries) < count:
        raise ValueError("a tag comes twice")
    last = max(last, total)
    if last > file.length:
        raise ValueError("the file is cut short")
    return entries, following, last
