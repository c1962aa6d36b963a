"""TIFF files made of single tags, damaged or harmless."""

import struct
import zlib
from pathlib import Path

import numpy as np
from tile_batches import NAMES, PACKED

READERS = [name for name in NAMES if name not in PACKED]


SKIMAGE = [name for name in NAMES if "skimage" in name]


# Files are made of tags: (type, numbers) each, or (type, count, place) for one whose numbers lie elsewhere, or nowhere.
BYTE, ASCII, SHORT, LONG, RATIONAL, UNDEFINED, LONG8 = 1, 2, 3, 4, 5, 7, 16


CODES = {BYTE: "B", SHORT: "H", LONG: "I", LONG8: "Q"}


SIDE, BANDS = 8, 5


PLAIN = {
    256: (LONG, [SIDE]),
    257: (LONG, [SIDE]),
    258: (SHORT, [8] * BANDS),
    259: (SHORT, [1]),
    262: (SHORT, [1]),
    277: (SHORT, [BANDS]),
    278: (LONG, [SIDE]),
    284: (SHORT, [1]),
    338: (SHORT, [0] * (BANDS - 1)),
}


PIXELS = np.random.default_rng(3).integers(0, 256, (SIDE, SIDE, BANDS)).astype("u1")


STRIP = PIXELS.tobytes()


def made(tags=(), parts=(STRIP,), order="<", big=False, following=0, repeated=(), behind=b"", tail=b""):
    """A TIFF of these parts, one after the other behind its directory, and with these tags instead of those of a plain one.

    A tag that is None is left out; repeated are further entries; behind lies between the directory and the parts, tail at the
    end.
    """
    number, entry, inline = ("Q", "HHQ", 8) if big else ("I", "HHI", 4)
    wanted = PLAIN | {273: (LONG8 if big else LONG, None), 279: (LONG8 if big else LONG, list(map(len, parts)))} | dict(tags)
    entries = [(tag, *value) for tag, value in sorted(wanted.items()) if value is not None] + list(repeated)
    begin = 16 if big else 8
    size = struct.calcsize(order + entry) + inline
    place = begin + (8 if big else 2) + size * len(entries) + inline
    values, table = b"", b""
    where = {273, 324}
    for tag, kind, *rest in entries:
        if len(rest) == 2:
            count, data = rest[0], struct.pack(order + number, rest[1])
        else:
            numbers = rest[0]
            if numbers is None:
                numbers = [0] * len(parts)
            count = len(numbers)
            data = bytes(numbers) if kind in (ASCII, UNDEFINED) else struct.pack(f"{order}{count}{CODES[kind]}", *numbers)
            if len(data) > inline:
                values, data = values + data, struct.pack(order + number, place + len(values))
        table += struct.pack(order + entry, tag, kind, count) + data.ljust(inline, b"\0")
    first = place + len(values) + len(behind)
    if any(tag in where and rest == [None] for tag, _, *rest in entries):
        offsets = [first + sum(map(len, parts[:i])) for i in range(len(parts))]
        tag = next(tag for tag, _, *rest in entries if tag in where and rest == [None])
        return made(
            {**dict(tags), tag: (LONG8 if big else LONG, offsets)}, parts, order, big, following, repeated, behind, tail
        )
    mark = (b"II" if order == "<" else b"MM") + struct.pack(order + "H", 43 if big else 42)
    head = mark + (struct.pack(order + "HHQ", 8, 0, 16) if big else struct.pack(order + "I", 8))
    count = struct.pack(order + ("Q" if big else "H"), len(entries))
    return head + count + table + struct.pack(order + number, following) + values + behind + b"".join(parts) + tail


def text(words):
    return ASCII, words.encode() + b"\0"


NONE = {257: (LONG, [200_000_000]), 278: (LONG, [1])}


ZEROS = zlib.compress(bytes(1 << 20), 9)


BLOCK = {273: None, 278: None, 279: None, 324: (LONG, None), 325: (LONG, [len(STRIP)])}


DEFLATE, LZW = {259: (SHORT, [8])}, {259: (SHORT, [5])}


def block(width, height):
    return BLOCK | {322: (LONG, [width]), 323: (LONG, [height])}


def one_strip(times):
    """A deflated tile of 500 MB with strips that all point to the same 1 KB."""
    tags = DEFLATE | {257: (LONG, [times * 26_214]), 278: (LONG, [26_214]), 279: (LONG, [len(ZEROS)] * times)}
    place = made(tags | {273: (LONG, [0] * times)}, [ZEROS]).index(ZEROS)
    return made(tags | {273: (LONG, [place] * times)}, [ZEROS])


DAMAGED = {
    "200 million strips": made(NONE, [STRIP]),
    "200 million strips, BigTIFF": made(NONE, [STRIP], big=True),
    "200 million strips of an unknown type": made(NONE | {273: (99, 200_000_000, 8), 279: (99, 200_000_000, 8)}),
    "4 billion of 4 billion": made({256: (LONG, [2**32 - 1]), 257: (LONG, [2**32 - 1])}),
    "a page of 18 exabytes": made({256: (LONG8, [2**63]), 257: (LONG8, [2**63])}, big=True),
    "65535 bands": made({277: (SHORT, [65535]), 258: (SHORT, [8])}),
    "a page larger than its file": made({257: (LONG, [1_000_000]), 278: (LONG, [1_000_000])}),
    "a page larger than its strip": made({257: (LONG, [SIDE + 1]), 278: (LONG, [SIDE + 1])}, tail=bytes(9999)),
    "a deflated page of 2 GB": made(DEFLATE | {257: (LONG, [50_000_000]), 278: (LONG, [50_000_000])}, [ZEROS]),
    "a page of 2 GB by LZW": made(LZW | {257: (LONG, [50_000_000]), 278: (LONG, [50_000_000])}, [bytes(9999)]),
    "a page of 4 GB by ZSTD": made({259: (SHORT, [50000]), 257: (LONG, [10**8]), 278: (LONG, [10**8])}, [bytes(999)]),
    "strips that are one strip 500 times": one_strip(500),
    "strips that overlap": made({278: (LONG, [4]), 273: (LONG, [300, 301]), 279: (LONG, [320, 320])}, [STRIP]),
    "a tag 3,000 times": made(repeated=[(273, LONG, 2000, 8)] * 3000, tail=bytes(16384)),
    "an unknown tag 3,000 times": made(repeated=[(40000, UNDEFINED, 40000, 8)] * 3000, tail=bytes(16384)),
    "a tag twice": made(repeated=[(259, SHORT, [8])]),
    "5,000 tags of 60 KB in the same bytes": made(
        repeated=[(t, UNDEFINED, 60000, 8) for t in range(40000, 44000)], tail=bytes(60000)
    ),
    "a value behind the end": made({40000: (UNDEFINED, 9, 10**9)}),
    "a value that ends behind the end": made({40000: (UNDEFINED, 2**32 - 1, 8)}),
    "a directory behind the end": b"II*\0" + struct.pack("<I", 10**9) + bytes(99),
    "2 to the 60 entries": b"II+\0\x08\0\0\0" + struct.pack("<QQ", 16, 2**60) + bytes(99),
    "more entries than bytes": b"II*\0" + struct.pack("<IH", 8, 65535) + bytes(99),
    "BigTIFF of another width": b"II+\0\x04\0\0\0" + made(big=True)[8:],
    "a block of 900 million pixels": made(block(30000, 30000) | {325: (LONG, [len(STRIP)])}),
    "a deflated block of 900 million pixels": made(block(30000, 30000) | DEFLATE | {325: (LONG, [len(ZEROS)])}, [ZEROS]),
    "strips and blocks": made({322: (LONG, [16]), 323: (LONG, [16])}),
    "block offsets for strips": made({324: (LONG, [300]), 325: (LONG, [8])}),
    "a strip behind the end": made({273: (LONG, [10**9])}),
    "a strip that ends behind the end": made({279: (LONG, [2**32 - 1])}),
    "a strip in the header": made({273: (LONG, [4])}),
    "two offsets, one count": made({273: (LONG, [300, 300])}),
    "no rows in a strip": made({278: (LONG, [0])}),
    "no width": made({256: (LONG, [0])}),
    "no bands": made({277: (SHORT, [0])}),
    "no bits": made({258: (SHORT, [0] * BANDS)}),
    "no numbers": made({256: (LONG, 0, 0)}),
    "two numbers of rows": made({278: (LONG, [SIDE, SIDE])}),
    "two widths": made({256: (LONG, [SIDE, SIDE])}),
    "a width in words": made({256: text("8")}),
    "a width in eighths": made({256: (RATIONAL, 1, 8)}),
    "bands of 8 and of 16 bits": made({258: (SHORT, [8, 16, 8, 8, 8])}),
    "bands neither together nor apart": made({284: (SHORT, [3])}),
    "no height": made({257: None}),
}


HARMLESS = {
    "plain": made(),
    "big end first": made(order=">"),
    "BigTIFF": made(big=True),
    "BigTIFF, big end first": made(big=True, order=">"),
    "strips": made({278: (LONG, [3])}, [STRIP[:120], STRIP[120:240], STRIP[240:]]),
    "strips with room behind": made({278: (SHORT, [5])}, [STRIP[:200] + b"..", STRIP[200:] + bytes(300)]),
    "rows without end": made({278: (LONG, [2**32 - 1])}),
    "deflated": made(DEFLATE | {279: (LONG, [len(zlib.compress(STRIP))])}, [zlib.compress(STRIP)]),
    "short numbers": made({256: (SHORT, [SIDE]), 273: (SHORT, [400]), 279: (SHORT, [len(STRIP)])}, behind=bytes(400 - 164)),
    "a description": made({270: text("of a field, sown [2019] with <wheat> & barley")}),
    "tifffile's description": made({270: text('{"shape": [8, 8, 5]}'), 305: text("tifffile.py")}),
    "GDAL's metadata": made({42112: text("<GDALMetadata></GDALMetadata>"), 42113: text("0")}),
    "an unknown type": made({1000: (99, 2**30, 2**30)}),
}


def lay(folder, data):
    path = Path(folder, "a.tif")
    path.write_bytes(data)
    return str(path)
