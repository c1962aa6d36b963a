"""Reads the first directory of a TIFF: checks a tile before a library reads it, and finds its strips in the file.

Adobe, TIFF Revision 6.0, 1992: sections 2 (structure), 7 (strips), 8 (baseline tags) and 15 (blocks, which it calls tiles).
BigTIFF: https://libtiff.gitlab.io/libtiff/specification/bigtiff.html

Libraries allocate what a file claims. Here each claim is checked against the file's bytes before a library reads it and
before anything is allocated.
"""

from __future__ import annotations

import io
import itertools
import math
import os
import re
from operator import add, lt, or_
from typing import NamedTuple

from impls.read_batch.arguments import COMPRESSIONS, PIXELS, TileFormat, require_compression
from impls.read_batch.tiff_bytes import FORMS, NUMBERS, SIZES, Entry, File, Form, Header

WIDTH, HEIGHT, BITS, COMPRESSION, COLOURS = 256, 257, 258, 259, 262
BIT_ORDER, OFFSETS, SAMPLES = 266, 273, 277
ROWS, COUNTS, PLANAR, PREDICTOR, FORMAT = 278, 279, 284, 317, 339
BLOCK_WIDTH, BLOCK_HEIGHT, BLOCK_OFFSETS, BLOCK_COUNTS = 322, 323, 324, 325
STRIPS, BLOCKS = {OFFSETS, COUNTS}, {BLOCK_WIDTH, BLOCK_HEIGHT, BLOCK_OFFSETS, BLOCK_COUNTS}
SUBDIRECTORIES = 330
NODATA = 42113  # GDAL's text of the value that pixels without data have
NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan", re.IGNORECASE)
DEPTHS = 32997, 32998  # planes of an image and of a block, by which tifffile multiplies its size
MICROSCOPES = {33628, 34412, 65420}  # tags of MetaMorph, Zeiss and Hamamatsu, with which tifffile reads by other rules
CONVERTED = {5: "CMYK", 6: "YCbCr", 8: "Lab", 9: "Lab", 10: "Lab"}  # of which, in 8 bits, GDAL makes red, green and blue
FORMATS = {1: "uint", 2: "int", 3: "float", 4: "uint"}  # 4: not said
# Bytes of pixels that a byte of the file can hold. deflate: 258 bytes that repeat take two codes of at least a bit each
# (https://zlib.net/zlib_tech.html). lzw: a code of 12 bits stands for a string of the table, the longest of 3,837 bytes.
# Others: the densest known is zstd, which has four bytes for a block of 128 KiB that are alike.
DENSITY = {"none": 1, "deflate": 1032, "lzw": 2560}
DENSEST = 32768
MAX_DIRECTORIES = 32  # that GDAL may find behind the first: images at half the size, a quarter and so on, and their masks
WITHOUT_LENGTHS = "parts without a length (StripByteCounts): only those that have one are supported"
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY  # a named pipe is not waited for, and no terminal is taken over


class Image(NamedTuple):
    """The properties of an image in the first directory.

    order: "<" or ">", the order of a number's bytes. reversed: whether a byte's first bit is its lowest. together: whether a
    pixel's bands lie side by side; otherwise the parts of the first band come first. blocks: whether the parts are blocks,
    not strips. rows: of a part, but for the last strip of a band. following: where the next directory lies, 0 if there is
    none. tags: of the directory. texts: the values of the requested tags, b"" for a missing one. offsets, counts:
    the entries that say where the parts lie and how long they are. nodata: GDAL's entry of that name. page: bytes of all
    parts when they are not compressed. least: how many bytes each part has at least. header: the bytes that say all this, as
    pairs of place and bytes; a file of at least `size` bytes that has them too says the same. blank: the value of all pixels
    of the parts that a sparse file leaves out, None if it holds all. stored: whether it holds any.
    """

    order: str
    big: bool
    bands: int
    height: int
    width: int
    bits: int
    formats: tuple[int, ...]
    compression: str
    reversed: bool
    together: bool
    blocks: bool
    rows: int
    following: int
    tags: frozenset[int]
    texts: tuple[bytes, ...]
    offsets: Entry
    counts: Entry
    nodata: Entry | None
    page: int
    least: tuple[int, ...]
    header: Header
    size: int
    blank: int | None = None
    stored: bool = True

    @property
    def dtype(self) -> str:
        """NumPy's name for the pixels' type. Raises ValueError or KeyError if there is none."""
        (form,) = set(self.formats)  # of all bands the same
        return f"{FORMATS[form]}{self.bits}"


class Parts(NamedTuple):
    """Where the parts of an image begin, 0 for one that is left out; blank, header and size as of an Image."""

    offsets: tuple[int, ...]
    blank: int | None
    header: Header
    size: int


class Strips(NamedTuple):
    """A tile's strips of rows: where each begins, and of how many rows the strips are but for the last.

    A strip that is left out has the offset 0, and its pixels the value `blank`. order: "<" or ">", the order of a number's
    bytes. together: whether a pixel's bands lie side by side; otherwise the strips of the first band come first. header:
    what of the file says all this, as pairs of place and bytes; in files where the same bytes lie there the strips lie
    alike. size: bytes that the file has at least.
    """

    tile_format: TileFormat
    order: str
    together: bool
    rows: int
    offsets: tuple[int, ...]
    blank: int | None
    header: Header
    size: int


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
    """Check a file's directory against its size before a library reads it.

    texts: tags whose values are wanted as bytes. all_directories: whether the library reads the directories behind the first.
    Raises NotImplementedError for what no implementation reads, and OSError, ValueError or KeyError for what is not a regular
    file or no whole TIFF; callers go through arguments.named().
    """
    file = File(tile.fileno())
    image, parts = _known.get((texts, all_directories), (None, None))
    if image is None or not file.says(image.header, image.size):
        image, parts = _image(file, texts, all_directories), None
    if parts is None or not file.says(parts.header, parts.size):
        parts = _parts(file, image)
        image = image._replace(blank=parts.blank, stored=any(parts.offsets))
        _known[texts, all_directories] = image, parts
    return image


def local(path: str) -> str:
    """The path of a file, which no library takes for a URL, for a file of GDAL's below /vsi, or for options of a driver."""
    path = path if path.startswith("/") else f"{os.getcwd()}/{path}"  # noqa: PTH109  # links stay as they are spelt
    return f"/.{path}" if path.startswith("/vsi") else path


def strips(file: int) -> Strips:
    """Where the strips of an open file lie.

    Raises NotImplementedError for what is stored in another way, and OSError, ValueError or KeyError for what is not a whole
    TIFF; callers go through arguments.named().
    """
    opened = File(file)
    image = _image(opened)
    parts = _parts(opened, image)
    if image.big:
        raise NotImplementedError("a BigTIFF: only TIFF is supported")
    if image.blocks:
        raise NotImplementedError("stored in blocks: only strips are supported")
    require_compression(image.compression, "none")
    if image.reversed:
        raise NotImplementedError("the bits of a byte in reverse (FillOrder): only the usual order is supported")
    tile_format = TileFormat(image.bands, image.height, image.width, image.dtype)
    header, size = (*image.header, *parts.header), max(image.size, parts.size)
    return Strips(tile_format, image.order, image.together, image.rows, parts.offsets, parts.blank, header, size)


def _image(file: File, texts: tuple[int, ...] = (), all_directories: bool = False) -> Image:
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
    if offsets in entries and counts not in entries:
        raise NotImplementedError(WITHOUT_LENGTHS)
    together = planar == 1
    samples, planes = (bands, 1) if together else (1, bands)
    along, down = -(-width // across), -(-height // rows)
    if not along * down * planes == entries[offsets][1] == entries[counts][1]:
        raise ValueError("there are parts missing")
    if not {entries[offsets][0], entries[counts][0]} <= NUMBERS.keys():  # of others it is not known that the file holds them
        raise ValueError("the offsets of the parts are not integers")
    line = -(-across * bits * samples // 8)  # bytes of a row of a part
    compression, (colours,) = COMPRESSIONS.get(code, str(code)), numbers(COLOURS, 1)
    if colours in CONVERTED and bits == 8 and compression != "jpeg":  # those of a JPEG all libraries convert
        raise NotImplementedError(
            f"colours as {CONVERTED[colours]}: only pixels that are read as they are stored are supported"
        )
    if compression == "none" and numbers(PREDICTOR, 1) != (1,):  # which only some libraries then apply
        raise NotImplementedError("a predictor without compression: only compressed tiles may have one")
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
        reversed=numbers(BIT_ORDER, 1) == (2,),
        together=together,
        blocks=blocks,
        rows=rows,
        following=following,
        tags=frozenset(entries),
        texts=tuple(file.value(form, entries[tag]) if tag in entries else b"" for tag in texts),
        offsets=entries[offsets],
        counts=entries[counts],
        nodata=entries.get(NODATA),
        page=planes * line * (along * down * rows if blocks else height),
        least=least,
        header=file.read(),
        size=last,
    )


def _parts(file: File, image: Image) -> Parts:
    """Read where the parts lie: they have data, in the file, do not overlap, and can hold the page.

    A sparse file says 0 for both offset and length of a part that it leaves out (GDAL's SPARSE_OK).
    """
    form = FORMS[file.start[:4]]
    offsets, counts = file.numbers(form, image.offsets), file.numbers(form, image.counts)
    blank, begins, lengths, least = None, offsets, counts, image.least
    if not all(counts):
        blank = _blank(file, form, image)
        least = least or (0,) * len(counts)
        there = [*map(bool, map(or_, offsets, counts))]
        begins, lengths, least = (tuple(itertools.compress(each, there)) for each in (offsets, counts, least))
    if not all(lengths):
        raise NotImplementedError(WITHOUT_LENGTHS)
    # Without overlaps parts are no longer together than the file; a sum is cheaper than to look at each pair.
    stored, end = sum(lengths), max(map(add, begins, lengths), default=0)
    if max(stored, end) > file.length or min(begins, default=form.first.size) < form.first.size:
        raise ValueError("the file is cut short")
    if any(map(lt, lengths, least)):
        raise ValueError("there are parts missing")
    if blank is not None and image.page > DENSEST * file.length:
        raise NotImplementedError(
            f"parts left out (sparse): only up to {DENSEST} bytes of pixels to one of the file are supported"
        )
    if blank is None and image.page > DENSITY.get(image.compression, DENSEST) * stored:
        raise ValueError("there are parts missing")
    return Parts(offsets, blank, file.read(), max(stored, end))


def _blank(file: File, form: Form, image: Image) -> int:
    """The value of pixels that a sparse file leaves out: GDAL's for no data, rounded to one that they can have, or 0."""
    if image.dtype not in PIXELS:
        raise NotImplementedError(
            f"parts left out (sparse) of pixels of {image.dtype}: only {' or '.join(PIXELS)} is supported"
        )
    if image.nodata is None:
        return 0
    text = file.value(form, image.nodata).rstrip(b"\0").strip()
    if not NUMBER.fullmatch(text):
        raise NotImplementedError(f"parts left out (sparse) whose value is {text[:20]!r}: only numbers are supported")
    value = float(text)
    return 0 if math.isnan(value) else math.floor(min(max(value, 0), 2**image.bits - 1) + 0.5)


def _further(file: File, form: Form, entries: dict[int, Entry], following: int) -> int:
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


def _entries(file: File, form: Form, place: int) -> tuple[dict[int, Entry], int, int]:
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
