"""Reads the markers of a JPEG without decoding it: its size, whether it is complete, and how much work it is.

ITU-T T.81, annex B; which markers a decoder takes, and how, is libjpeg's jdmarker.c. Markers that it would pass over, or read
in another way, are refused, so that the size that is checked is the size that is decoded. Decoders make up what is missing of
a file that was cut short, and say nothing; so all codes of an image are read once by libjpeg, when it is first decoded in a
process, which takes about as long as to decode it. Where the compiled part is missing this cannot be done.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

START, END, SCAN, FILL = 0xD8, 0xD9, 0xDA, 0xFF
SEQUENTIAL, PROGRESSIVE = {0xC0, 0xC1, 0xC9}, {0xC2, 0xCA}  # by Huffman and by arithmetic coding, as both decoders read them
FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # but tables, extensions and conditioning
ALONE = {0x01, *range(0xD0, 0xD8)}  # markers without a segment
TABLES = {0xC4, 0xCC, 0xDB, 0xDC, 0xDD, 0xE0, 0xEE}  # and those of JFIF and Adobe, which say what the components are
METADATA = {*range(0xE1, 0xEE), 0xEF, 0xFE}  # applications' segments and comments: no decoder needs them for pixels
MAX_PIXELS = (1 << 28) // 3  # pixels: what Pillow decodes without taking the image for a trap, and OpenCV's limit lies above
DENSEST = 512  # pixels to a byte: of each 8 x 8 block a Huffman code has a bit
MAX_KNOWN = 65536  # images that are remembered to be whole
MAX_SCANS = 100  # each is a pass over all blocks; progressive files have about 10
# A marker that ends a scan: no stuffed byte, no fill byte and no restart.
_MARKER = re.compile(rb"\xff[\xc0-\xcf\xd8-\xfe]")


class BadImage(ValueError):
    """The bytes are not a JPEG, not a complete one, or of an unsupported kind; the text names the image."""


class _Header(NamedTuple):
    """The size in pixels, and where segments and markers begin and end that no decoder needs."""

    height: int
    width: int
    metadata: list[tuple[int, int]]


def shape(jpeg: bytes) -> tuple[int, int]:
    """Height and width. Raises BadImage in words that follow the image's name."""
    return _header(jpeg)[:2]


def reduced(image: tuple[int, int], scale: int) -> tuple[int, int]:
    """Height and width of an image that is decoded at 1 / scale."""
    height, width = image
    return -(-height // scale), -(-width // scale)


def decoded(
    jpegs: list[bytes],
    i: int,
    read: Callable[[bytes], np.ndarray | None],
    scale: int = 1,
    region: tuple[int, int] | None = None,
) -> np.ndarray:
    """The pixels (H, W, 3) that a decoder makes of image i, which has the size that its markers say.

    read: decodes the image's bytes, without its metadata, at 1 / scale; of a region alone if that has a height and width.
    Raises BadImage that names the image, and MemoryError.
    """
    try:
        header = _header(jpegs[i])
        jpeg = _without(jpegs[i], header.metadata) if header.metadata else jpegs[i]
        _require_whole(jpegs[i], jpeg, header)
    except BadImage as error:
        raise BadImage(f"jpegs[{i}] {error}") from None
    height, width = region or reduced(header[:2], scale)
    try:
        pixels = read(jpeg)
    except MemoryError as error:
        raise MemoryError(f"no memory is left for the {height} x {width} pixels of jpegs[{i}]") from error
    except Exception as error:  # every library has kinds of its own, and struct.error, IndexError and the like besides
        raise BadImage(f"jpegs[{i}] is damaged: it cannot be decoded") from error
    if pixels is None:
        raise BadImage(f"jpegs[{i}] is damaged: it cannot be decoded")
    if pixels.shape != (height, width, 3):
        found = " x ".join(map(str, pixels.shape))
        raise BadImage(f"jpegs[{i}] is damaged: its markers say {height} x {width} pixels, and {found} values were decoded")
    return pixels


_whole: set[tuple[int, int]] = set()  # lengths and hashes, for the images themselves may be large


def _require_whole(given: bytes, jpeg: bytes, header: _Header) -> None:
    """Raise BadImage if a JPEG without its metadata has codes of fewer pixels than its header says. given: with it."""
    known = len(given), hash(given)
    if known in _whole or (whole := _reader()) is None:
        return
    if not whole(jpeg, header.height, header.width):
        raise BadImage("is damaged: its pixels end before the image does")
    if len(_whole) >= MAX_KNOWN:
        _whole.clear()
    _whole.add(known)


@functools.cache
def _reader() -> Callable[[bytes, int, int], bool] | None:
    try:
        from impls.decode_jpeg.cpu._cython_jpeg import whole  # type: ignore[import-not-found]
    except ImportError:
        return None
    return whole


def _header(jpeg: bytes) -> _Header:
    if jpeg[:2] != bytes((FILL, START)):
        raise BadImage("is not a JPEG")
    try:
        return _segments(jpeg)
    except IndexError:
        raise BadImage("is cut short") from None


def _segments(jpeg: bytes) -> _Header:
    """Walk through the segments before the pixels. Raises BadImage, and IndexError if the bytes end."""
    metadata: list[tuple[int, int]] = []
    height = width = components = frame = 0
    place = 2
    while True:
        if jpeg[place] != FILL:
            raise BadImage("is damaged: its segments do not follow one another")
        marker = jpeg[place + 1]
        if marker == FILL:
            place += 1
            continue
        if marker in ALONE:
            metadata.append((place, place + 2))
            place += 2
            continue
        length = jpeg[place + 2] << 8 | jpeg[place + 3]
        end = place + 2 + length
        if length < 2:
            raise BadImage(f"is damaged: segment 0x{marker:02X} has a length of {length} bytes, which its own two exceed")
        if marker in METADATA:
            metadata.append((place, end))
        elif marker in FRAMES:
            if frame:
                raise BadImage("is damaged: it says its size twice")
            if marker not in SEQUENTIAL and marker not in PROGRESSIVE:
                raise BadImage(f"is of a kind that is not read here, 0x{marker:02X}: sequential and progressive ones are")
            frame, bits, components = marker, jpeg[place + 4], jpeg[place + 9]
            height, width = jpeg[place + 5] << 8 | jpeg[place + 6], jpeg[place + 7] << 8 | jpeg[place + 8]
            if components not in (1, 3):
                raise BadImage(f"has {components} components; grey and colour images, of 1 and 3, are read here")
            if bits != 8:
                raise BadImage(f"has {bits} bits a component, and 8 are read here")
            if length != 8 + 3 * components:
                raise BadImage(f"is damaged: its size stands in a segment of {length} bytes, not {8 + 3 * components}")
        elif marker == SCAN:
            break
        elif marker not in TABLES:
            raise BadImage(f"is damaged: marker 0x{marker:02X} does not belong before its pixels")
        place = end
    if not height or not width:
        raise BadImage("is damaged: it does not say its size before its pixels")
    if height * width > MAX_PIXELS:
        raise BadImage(f"has {height} x {width} pixels, and up to {MAX_PIXELS} are read here")
    # A thumbnail in a segment before has an end of its own.
    whole = jpeg.endswith(bytes((FILL, END))) and len(jpeg) >= end + 2
    if not whole and jpeg.find(bytes((FILL, END)), end) < 0:
        raise BadImage("is cut short")
    rest = len(jpeg) - end
    if height * width > DENSEST * rest:
        raise BadImage(
            f"has {height} x {width} pixels and {rest} bytes that hold them; up to {DENSEST} pixels to a byte are read here"
        )
    single = frame in SEQUENTIAL and jpeg[place + 4] == components  # decoders take one scan then
    if not single and _scans(jpeg, end) > MAX_SCANS:
        raise BadImage(f"has more than {MAX_SCANS} scans, and up to {MAX_SCANS} are read here")
    return _Header(height, width, metadata)


def _scans(jpeg: bytes, place: int) -> int:
    """How many scans there are, the first of which has its pixels at `place`; counted until there are too many."""
    count = 1
    while count <= MAX_SCANS and (found := _MARKER.search(jpeg, place)):
        place, marker = found.end(), jpeg[found.end() - 1]
        if marker == END:
            break
        count += marker == SCAN
        place += int.from_bytes(jpeg[place : place + 2], "big")
    return count


def _without(jpeg: bytes, ranges: list[tuple[int, int]]) -> bytes:
    begins = [0, *(end for _, end in ranges)]
    ends = [*(begin for begin, _ in ranges), len(jpeg)]
    return b"".join(jpeg[begin:end] for begin, end in zip(begins, ends, strict=True))
