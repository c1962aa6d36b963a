"""Where a tile's pixels lie in its file, for the implementation that reads them itself: the tags of TIFF 6.0 that say so.

Adobe, TIFF Revision 6.0, 1992: sections 2 (structure), 7 (strips) and 8 (baseline tags).
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

from impls.read_batch.arguments import COMPRESSIONS, Layout, require_compression

WIDTH, HEIGHT, BITS, COMPRESSION, OFFSETS, SAMPLES = 256, 257, 258, 259, 273, 277
ROWS, COUNTS, PLANAR, BLOCK_WIDTH, FORMAT = 278, 279, 284, 322, 339
KNOWN = {WIDTH, HEIGHT, BITS, COMPRESSION, OFFSETS, SAMPLES, ROWS, COUNTS, PLANAR, BLOCK_WIDTH, FORMAT}
TYPES = {1: "B", 3: "H", 4: "I"}
FORMATS = {1: "uint", 2: "int", 3: "float"}


class Strips(NamedTuple):
    """A tile's strips of rows: where each begins, and of how many rows the strips are but for the last.

    order: "<" or ">", the order of a number's bytes. together: whether a pixel's bands lie side by side; otherwise the strips
    of the first band come first. header: what of the file says all this, as pairs of place and bytes; in files where the same
    bytes lie there the strips lie alike. size: bytes that the file has at least.
    """

    layout: Layout
    order: str
    together: bool
    rows: int
    offsets: tuple[int, ...]
    header: tuple[tuple[int, bytes], ...]
    size: int


def strips(file: int) -> Strips:
    """Parse the header of an open file.

    Raises NotImplementedError for what is stored in another way, and ValueError, KeyError or struct.error for what is no
    whole TIFF; callers go through arguments.named().
    """
    length = os.fstat(file).st_size
    header: list[tuple[int, bytes]] = []

    def get(place: int, count: int) -> bytes:
        if place + count > length:
            raise ValueError("the file is cut short")
        header.append((place, os.pread(file, count, place)))
        return header[-1][1]

    order = {b"II": "<", b"MM": ">"}[get(0, 2)]
    (version,) = struct.unpack(order + "H", get(2, 2))
    if version == 43:
        raise NotImplementedError("a BigTIFF: only TIFF is supported")
    if version != 42:
        raise ValueError("not a TIFF")
    (directory,) = struct.unpack(order + "I", get(4, 4))
    (entries,) = struct.unpack(order + "H", get(directory, 2))
    tags: dict[int, tuple[int, ...]] = {}
    for tag, kind, count, value in struct.iter_unpack(order + "HHI4s", get(directory + 2, 12 * entries)):
        if tag in KNOWN:
            size = count * struct.calcsize(TYPES[kind])
            data = value[:size] if size <= 4 else get(struct.unpack(order + "I", value)[0], size)
            tags[tag] = struct.unpack(f"{order}{count}{TYPES[kind]}", data)
    if BLOCK_WIDTH in tags:
        raise NotImplementedError("stored in blocks: only strips are supported")
    (compression,) = tags.get(COMPRESSION, (1,))
    require_compression(COMPRESSIONS.get(compression, str(compression)), "none")
    (height,), (width,), (bands,) = tags[HEIGHT], tags[WIDTH], tags.get(SAMPLES, (1,))
    (bits,), (form,) = set(tags.get(BITS, (1,))), set(tags.get(FORMAT, (1,)))  # of all bands the same
    layout = Layout(bands, height, width, f"{FORMATS[form]}{bits}")
    (planar,), (rows,), offsets, counts = tags.get(PLANAR, (1,)), tags.get(ROWS, (height,)), tags[OFFSETS], tags[COUNTS]
    rows, together = min(rows, height), planar == 1
    # Strips of all rows but the last are full.
    line = width * bits // 8 * (bands if together else 1)
    full, rest = divmod(height, rows)
    needed = ([rows * line] * full + [rest * line] * (rest > 0)) * (1 if together else bands)
    if len(offsets) != len(needed) or any(count < least for count, least in zip(counts, needed, strict=True)):
        raise ValueError("there are strips missing")
    size = max(offset + count for offset, count in zip(offsets, needed, strict=True))
    if size > length:
        raise ValueError("the file is cut short")
    return Strips(layout, order, together, rows, offsets, tuple(header), size)
