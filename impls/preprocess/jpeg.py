"""What the markers of a JPEG say, without decoding it: its size, and whether it is all there.

ITU-T T.81, annex B. Decoders make up what is missing of a file that was cut short, and say nothing.
"""

from __future__ import annotations

import struct

START, END, SCAN = 0xD8, 0xD9, 0xDA
FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # but tables, extensions and conditioning
LARGEST = (1 << 28) // 3  # pixels: what Pillow decodes without taking the image for a trap, and OpenCV's limit lies above
ALONE = {0x01, *range(0xD0, 0xD8)}  # markers without a segment


class BadImage(ValueError):
    """Bytes are no JPEG, not the whole of one, or of a kind that is not read here; the text names the image."""


def shape(jpeg: bytes) -> tuple[int, int]:
    """Height and width. Raises BadImage in words that follow the image's name."""
    if jpeg[:2] != bytes((0xFF, START)):
        raise BadImage("is not a JPEG")
    found, place = None, 2
    try:
        while jpeg[place : place + 2] != bytes((0xFF, SCAN)):
            if jpeg[place] != 0xFF:
                raise BadImage("is damaged: its segments do not follow one another")
            marker = jpeg[place + 1]
            if marker == 0xFF or marker in ALONE:  # fill bytes, and markers without a length
                place += 1 if marker == 0xFF else 2
                continue
            (length,) = struct.unpack_from(">H", jpeg, place + 2)
            if marker in FRAMES:
                _, height, width, components = struct.unpack_from(">BHHB", jpeg, place + 4)
                if components not in (1, 3):
                    raise BadImage(f"has {components} components; grey and colour images, of 1 and 3, are read here")
                found = height, width
            place += 2 + length
    except (IndexError, struct.error):
        raise BadImage("is cut short") from None
    if found is None or not all(found):
        raise BadImage("is damaged: it does not say its size before its pixels")
    if found[0] * found[1] > LARGEST:
        raise BadImage(f"has {found[0]} x {found[1]} pixels, and up to {LARGEST} are read here")
    # A thumbnail in a segment before has an end of its own.
    if jpeg.find(bytes((0xFF, END)), place) < 0:
        raise BadImage("is cut short")
    return found
