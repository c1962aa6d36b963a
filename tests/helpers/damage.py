"""What hypothesis damages: bytes, images, tiles, JSON documents, and how arrays lie in memory."""

import io
import json
import struct

import numpy as np
from hypothesis import strategies as st

from impls.decode_jpeg import jpeg


@st.composite
def damaged(draw, whole):
    """Bytes with a few of them changed, taken out, repeated, or replaced by a number of consequence."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 4))):
        at, length = draw(st.integers(0, len(data))), draw(st.integers(0, 16))
        number = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x10000]))
        order = draw(st.sampled_from("<>"))
        piece = {
            "flip": lambda at=at: bytes([data[at] ^ draw(st.integers(1, 255))]) if at < len(data) else b"",
            "number": lambda n=number, o=order: struct.pack(o + ("I" if n > 0xFFFF else "H"), n),
            "noise": lambda: draw(st.binary(max_size=16)),
            "out": lambda: b"",
            "again": lambda at=at, length=length: bytes(data[at : at + length]) * draw(st.integers(1, 3)),
        }
        kind = draw(st.sampled_from(sorted(piece)))
        new = piece[kind]()
        data[at : at + (length if kind in ("out", "again") else len(new))] = new
    if draw(st.integers(0, 5)) == 0:
        del data[draw(st.integers(0, len(data))) :]
    return bytes(data)


@st.composite
def jpegs(draw):
    """Images of every kind that is read, whose segments are dropped, repeated, moved, hidden, or given another size."""
    from PIL import Image

    height, width = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    random = np.random.default_rng(draw(st.integers(0, 9)))
    channels = draw(st.sampled_from([(3,), ()]))
    image = Image.fromarray(random.integers(0, 255, (height, width, *channels), np.uint8))
    stream = io.BytesIO()
    exif = draw(st.sampled_from([b"", b"Exif\0\0MM\0*\0\0\0\x08\0\0"]))
    image.save(stream, "JPEG", progressive=draw(st.booleans()), quality=draw(st.integers(1, 100)), exif=exif)
    data = stream.getvalue()
    parts, place = [data[:2]], 2
    while data[place + 1] != jpeg.SCAN:
        (length,) = struct.unpack_from(">H", data, place + 2)
        parts.append(data[place : place + 2 + length])
        place += 2 + length
    parts.append(data[place:])
    frame = next(i for i, part in enumerate(parts) if part[1] in jpeg.FRAMES)
    for _ in range(draw(st.integers(0, 3))):
        i, j = draw(st.integers(1, len(parts) - 1)), draw(st.integers(1, len(parts) - 1))
        size = struct.pack(">HH", *draw(st.tuples(*[st.sampled_from([0, 1, 8, 41, 3000, 30000, 65535])] * 2)))
        claimed = parts[min(frame, len(parts) - 1)]
        claimed = claimed[:5] + size + claimed[9:]
        match draw(st.sampled_from(["drop", "again", "swap", "size", "hide", "marker", "fill"])):
            case "drop":
                del parts[i]
            case "again":
                parts.insert(j, parts[i])
            case "swap":
                parts[i], parts[j] = parts[j], parts[i]
            case "size":
                parts[min(frame, len(parts) - 1)] = claimed
            case "hide":
                marker = bytes([0xFF, draw(st.sampled_from([0x00, 0x01, 0x02, 0xBF, 0xE1, 0xF0, 0xFE]))])
                parts.insert(i, marker + struct.pack(">H", 2 + len(claimed)) + claimed)
            case "marker":
                parts[i] = b"\xff" + bytes([draw(st.integers(0, 255))]) + parts[i][2:]
            case "fill":
                parts.insert(i, b"\xff" * draw(st.integers(1, 3)))
        if len(parts) < 3:
            break
    return draw(damaged(st.just(b"".join(parts))))


@st.composite
def tiffs(draw):
    """Tiles of every kind that is read, whose tags are repeated, dropped, or given other numbers."""
    import tifffile

    random = np.random.default_rng(draw(st.integers(0, 9)))
    shape = draw(st.sampled_from([(13, 8, 8), (4, 16, 16), (1, 8, 8), (5, 20, 12)]))
    kind = draw(st.sampled_from(["uint8", "uint16"]))
    pixels = random.integers(0, 255, shape).astype(kind)
    together = draw(st.booleans()) or shape[0] == 1
    stream = io.BytesIO()
    with tifffile.TiffWriter(stream, byteorder=draw(st.sampled_from("<>")), bigtiff=draw(st.integers(0, 4)) == 0) as file:
        file.write(
            pixels[0] if shape[0] == 1 else np.moveaxis(pixels, 0, 2) if together else pixels,
            photometric="minisblack",
            planarconfig=None if shape[0] == 1 else "contig" if together else "separate",
            compression=draw(st.sampled_from([None, "zlib"])),
            rowsperstrip=draw(st.sampled_from([1, 4, shape[1]])),
            metadata=None,
        )
    data = bytearray(stream.getvalue())
    order = "<" if data[:2] == b"II" else ">"
    big = struct.unpack_from(order + "H", data, 2)[0] == 43
    start = struct.unpack_from(order + ("Q" if big else "I"), data, 8 if big else 4)[0]
    first, size = start + (8 if big else 2), 20 if big else 12
    count = struct.unpack_from(order + ("Q" if big else "H"), data, start)[0]
    for _ in range(draw(st.integers(0, 3))):
        at, other = (first + size * draw(st.integers(0, count - 1)) for _ in range(2))
        number = draw(st.sampled_from([0, 1, 2, 3, 8, 255, 256, 65535, 65536, 200_000_000, 0xFFFFFFFF]))
        match draw(st.sampled_from(["again", "kind", "count", "value", "tag", "entries"])):
            case "again":
                data[at : at + size] = data[other : other + size]
            case "kind":
                struct.pack_into(order + "H", data, at + 2, draw(st.integers(0, 20)))
            case "count":
                struct.pack_into(order + ("Q" if big else "I"), data, at + 4, number)
            case "value":
                struct.pack_into(order + "I", data, at + size - 4, number)
            case "tag":
                struct.pack_into(
                    order + "H",
                    data,
                    at,
                    draw(st.sampled_from([256, 257, 258, 259, 273, 277, 278, 279, 284, 322, 324, 325, 339])),
                )
            case "entries":
                struct.pack_into(order + ("Q" if big else "H"), data, start, min(number, 65535))
    return draw(damaged(st.just(bytes(data))))


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from([10**400, "\x1b[2J", "[/x]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def documents(draw, whole):
    """JSON of which a few values are others, or missing, or which is damaged as text."""
    found = json.loads(json.dumps(whole))
    for _ in range(draw(st.integers(0, 3))):
        node = found
        while isinstance(node, (dict, list)) and node:
            key = draw(st.sampled_from(sorted(node))) if isinstance(node, dict) else draw(st.integers(0, len(node) - 1))
            if not isinstance(node[key], (dict, list)) or not node[key] or draw(st.integers(0, 3)) == 0:
                if draw(st.booleans()) and isinstance(node, dict):
                    del node[key]
                else:
                    node[key] = draw(anything)
                break
            node = node[key]
    text = json.dumps(found)
    return draw(damaged(st.just(text.encode()))) if draw(st.booleans()) else text.encode()


@st.composite
def laid_out(draw, array):
    """The same numbers, laid out in memory in any way."""
    match draw(
        st.sampled_from(["as it is", "Fortran", "reversed", "every other", "last axis first", "unaligned", "read-only"])
    ):
        case "Fortran":
            return np.asfortranarray(array)
        case "reversed":
            axis = draw(st.integers(0, array.ndim - 1))
            return np.flip(np.flip(array, axis).copy(), axis)
        case "every other":
            wide = np.full([2 * size for size in array.shape], np.nan, array.dtype)
            places = (slice(draw(st.integers(0, 1)), None, 2),) * array.ndim
            wide[places] = array
            return wide[places]
        case "last axis first":
            return np.moveaxis(np.moveaxis(array, -1, 0).copy(), 0, -1)
        case "unaligned":
            memory = np.zeros(array.nbytes + 1, np.uint8)
            moved = memory[1:].view(array.dtype).reshape(array.shape)
            moved[...] = array
            return moved
        case "read-only":
            array.setflags(write=False)
    return array
