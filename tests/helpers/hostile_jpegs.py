"""JPEGs with false claims about their content, and JPEGs with content that no decoder needs."""

import re

import numpy as np
from jpegs import GOOD, claiming, encoded


def segment(marker, data=b""):
    return bytes((0xFF, marker)) + (len(data) + 2).to_bytes(2, "big") + data


def before_the_pixels(*parts, jpeg=GOOD):
    """A JPEG with more between its first marker and the others."""
    return jpeg[:2] + b"".join(parts) + jpeg[2:]


def frame(height, width, marker=0xC0, bits=8):
    return segment(marker, bytes((bits, *height.to_bytes(2, "big"), *width.to_bytes(2, "big"), 1, 1, 0x11, 0)))


def changed(place, *values):
    """A JPEG with other bytes in its frame, counted from its marker."""
    at = GOOD.index(b"\xff\xc0") + place
    return GOOD[:at] + bytes(values) + GOOD[at + len(values) :]


def hidden(height, width):
    """A JPEG that libjpeg, which passes over FF 00, reads as GOOD, and a walk through lengths as one of another size."""
    begin = GOOD.index(b"\xff\xc0")
    own = GOOD[begin : begin + 19]
    other = own[:5] + height.to_bytes(2, "big") + width.to_bytes(2, "big") + own[9:]
    inner = own + segment(0xE1, other)[:4]
    return GOOD[:begin] + b"\xff\x00" + (len(inner) + 2).to_bytes(2, "big") + inner + other + GOOD[begin + 19 :]


def many_scans(count):
    """A progressive JPEG with its last scan repeated."""
    jpeg = encoded(np.zeros((8, 8, 3), np.uint8), progressive=True)
    return jpeg[:-2] + jpeg[jpeg.rindex(b"\xff\xda") : -2] * count + jpeg[-2:]


def arithmetic():
    """A grey JPEG of 8x8 pixels, coded arithmetically: nothing but the middle value needs no bit."""
    tables = segment(0xDB, bytes((0, *[1] * 64)))
    return b"\xff\xd8" + tables + frame(8, 8, 0xC9) + segment(0xDA, bytes((1, 1, 0, 0, 63, 0))) + b"\xff\xd9"


UNREADABLE = {
    **{f"a size hidden from libjpeg, {side}": (hidden(side, side), "is damaged: marker 0x00") for side in (64, 3000)},
    **{
        f"marker {m:#x}": (before_the_pixels(segment(m)), f"is damaged: marker 0x{m:02X}")
        for m in (0, 2, 0xBF, 0xC8, 0xDE, 0xF7)
    },
    "a second start": (before_the_pixels(b"\xff\xd8"), "is damaged: marker 0xD8"),
    "an end before the pixels": (before_the_pixels(b"\xff\xd9"), "is damaged: marker 0xD9"),
    **{f"a length of {n}": (before_the_pixels(b"\xff\xe1\0" + bytes((n,))), "is damaged: segment 0xE1") for n in (0, 1)},
    "two sizes": (before_the_pixels(frame(8, 8)), "is damaged: it says its size twice"),
    "two sizes, one huge": (before_the_pixels(frame(30000, 30000)), "is damaged: it says its size twice"),
    **{f"frame {m:#x}": (changed(1, m), f"is of a kind that is not read here, 0x{m:X}") for m in (0xC3, 0xC5, 0xCB, 0xCF)},
    "12 bits": (changed(4, 12), "has 12 bits a component"),
    "a frame too long": (
        before_the_pixels(segment(0xC0, frame(8, 8)[4:] + b"\0")),
        "is damaged: its size stands in a segment of",
    ),
    "more pixels than bytes": (claiming(9000, 9000), "has 9000 x 9000 pixels and "),
    "a hundred thousand scans": (many_scans(100_000), "has more than 100 scans"),
}


READABLE = {
    "fill bytes": before_the_pixels(b"\xff" * 9),
    "markers alone": before_the_pixels(b"\xff\x01", *(bytes((0xFF, m)) for m in range(0xD0, 0xD8))),
    "every application": before_the_pixels(*(segment(m, b"anything" * 9) for m in {*range(0xE0, 0xF0), 0xFE} - {0xE0, 0xEE})),
    "tables and settings": before_the_pixels(segment(0xCC), segment(0xDD, bytes(2)), segment(0xDC, bytes((0, 8)))),
    "a size in a thumbnail": before_the_pixels(segment(0xE1, b"Exif\0\0" + GOOD)),
    "a film behind it": GOOD + b"\xff\xda" * 500,
    "scan markers in a comment behind it": GOOD[:-2] + segment(0xFE, b"\xff\xda" * 500) + GOOD[-2:],
}


def cut(jpeg):
    """A JPEG, and what is left of it where its pixels are cut: all over, within the last bytes, and between scans."""
    begin, end = jpeg.index(b"\xff\xda") + 24, len(jpeg) - 2
    scans = [match.start() for match in re.finditer(b"\xff\xda", jpeg)][1:]
    places = {*np.linspace(begin, end - 1, 9, dtype=int).tolist(), *range(end - 5, end), *scans}
    return [jpeg, *(jpeg[:place] + jpeg[end:] for place in sorted(places))]


PHOTO = np.random.default_rng(4).integers(0, 256, (40, 56, 3)).astype(np.uint8)
CUT = {
    "sequential": cut(encoded(PHOTO)),
    "with fewer colours": cut(encoded(PHOTO, subsampling=2)),
    "grey": cut(encoded(PHOTO[:, :, 0])),
    "progressive": cut(encoded(PHOTO, progressive=True)),
    "with restarts": cut(encoded(PHOTO, restart_marker_rows=1)),
}
