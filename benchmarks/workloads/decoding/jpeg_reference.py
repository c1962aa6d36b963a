"""A reference decoder of sequential JPEGs in float64: from T.81 and T.871, sharing no code with libjpeg.

It reads what the suite makes: one scan, Huffman codes, colours stored whole or with half as many samples along the rows, or
along both axes. A component is never rounded; where a value leaves 0..255 it is clipped, as every decoder does.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np

# From places along a block's diagonals to those along its rows (T.81, figure A.6).
ZIGZAG = sorted(range(64), key=lambda k: (k // 8 + k % 8, k // 8 if (k // 8 + k % 8) % 2 else k % 8))
# The inverse transform along one axis: values of a block's eight places from its eight frequencies (T.81, A.3.3).
COSINES = np.cos((2 * np.arange(8)[:, None] + 1) * np.arange(8) * np.pi / 16) * np.where(np.arange(8), 0.5, 0.125**0.5)
LENGTHS = 16  # bits of the longest Huffman code

Sides = tuple[int, int]  # along the columns, along the rows
Table = list[tuple[int, int]]  # by the next 16 bits: how many of them are a code, and what it stands for


@dataclass
class Component:
    """A component of an image: its sampling factors, its tables, and its coefficients.

    places, values: the coefficients that are not zero, by their places in all of the component's.
    """

    high: int
    wide: int
    quantisation: int
    huffman: tuple[int, int] = (0, 0)
    places: array[int] = field(default_factory=lambda: array("q"))
    values: array[int] = field(default_factory=lambda: array("i"))


def decode(jpeg: bytes, scale: int = 1) -> np.ndarray:
    """The image (ceil(H / scale), ceil(W / scale), 3) of red, green and blue, from 0 to 255."""
    quantisation: dict[int, np.ndarray] = {}
    huffman: dict[int, Table] = {}
    components: dict[int, Component] = {}
    height = width = 0
    place = 2
    while True:
        marker, length = jpeg[place + 1], int.from_bytes(jpeg[place + 2 : place + 4], "big")
        data = jpeg[place + 4 : place + 2 + length]
        place += 2 + length
        if marker == 0xDB:
            for i in range(0, len(data), 65):
                quantisation[data[i]] = np.array(list(data[i + 1 : i + 65]), np.float64)
        elif marker == 0xC4:
            while data:
                counts, total = data[1:17], sum(data[1:17])
                huffman[data[0]] = _codes(counts, data[17 : 17 + total])
                data = data[17 + total :]
        elif marker == 0xC0:
            height, width = int.from_bytes(data[1:3], "big"), int.from_bytes(data[3:5], "big")
            for i in range(6, len(data), 3):
                components[data[i]] = Component(data[i + 1] & 15, data[i + 1] >> 4, data[i + 2])
        elif marker == 0xDA:
            break
        elif marker < 0xE0:
            raise ValueError(f"the reference does not read marker 0x{marker:02X}")
    for i in range(1, 2 * len(components), 2):
        components[data[i]].huffman = data[i + 1] >> 4, 16 | data[i + 1] & 15
    parts = list(components.values())
    if len(parts) == 1:
        parts[0].high = parts[0].wide = 1  # of one component alone, a unit is a block (T.81, A.2.2)
    most = max(part.high for part in parts), max(part.wide for part in parts)
    units = -(-height // (8 * most[0])), -(-width // (8 * most[1]))
    _entropy(jpeg[place : jpeg.rindex(b"\xff\xd9")], parts, huffman, units)
    planes = [_plane(part, quantisation[part.quantisation], units, most, (height, width), scale) for part in parts]
    if len(planes) == 1:
        return np.repeat(planes[0][..., None], 3, axis=2)
    luma, blue, red = planes[0], planes[1] - 128, planes[2] - 128
    pixels = luma + 1.402 * red, luma - (0.114 * 1.772 * blue + 0.299 * 1.402 * red) / 0.587, luma + 1.772 * blue
    return np.clip(np.stack(pixels, axis=2), 0, 255)


def _codes(counts: bytes, symbols: bytes) -> Table:
    """The code at the start of each 16 bits (T.81, annex C)."""
    table: Table = []
    rest = iter(symbols)
    for length, count in enumerate(counts, 1):
        for _ in range(count):
            table += [(length, next(rest))] * (1 << LENGTHS - length)
    return table + [(LENGTHS, 0)] * ((1 << LENGTHS) - len(table))


def _entropy(data: bytes, parts: list[Component], tables: dict[int, Table], units: Sides) -> None:
    """Read the coefficients of all blocks, unit by unit (T.81, annex F.2)."""
    bits = np.unpackbits(np.frombuffer(data.replace(b"\xff\0", b"\xff") + b"\xff" * 8, np.uint8))
    windows = np.zeros(len(bits) - LENGTHS, np.uint16)
    for i in range(LENGTHS):
        windows |= bits[i : i + len(windows)].astype(np.uint16) << (LENGTHS - 1 - i)
    ahead = array("H", windows.tobytes())  # of each bit, it and the 15 after it
    before = [0] * len(parts)
    at = 0
    for unit in range(units[0] * units[1]):
        row, column = divmod(unit, units[1])
        for p, part in enumerate(parts):
            direct, others = tables[part.huffman[0]], tables[part.huffman[1]]
            note_place, note_value = part.places.append, part.values.append
            for block in range(part.high * part.wide):
                y, x = row * part.high + block // part.wide, column * part.wide + block % part.wide
                base = 64 * (y * units[1] * part.wide + x)
                length, size = direct[ahead[at]]
                at += length
                if size:
                    value = ahead[at] >> (LENGTHS - size)
                    before[p] += value if value >> (size - 1) else value - (1 << size) + 1
                    at += size
                note_place(base)
                note_value(before[p])
                k = 1
                while k < 64:
                    length, symbol = others[ahead[at]]
                    at += length
                    size = symbol & 15
                    if size:
                        k += symbol >> 4
                        value = ahead[at] >> (LENGTHS - size)
                        at += size
                        note_place(base + ZIGZAG[k])
                        note_value(value if value >> (size - 1) else value - (1 << size) + 1)
                        k += 1
                    elif symbol == 0xF0:
                        k += 16
                    else:
                        break


def _plane(
    part: Component,
    quantisation: np.ndarray,
    units: tuple[int, int],
    most: tuple[int, int],
    image: tuple[int, int],
    scale: int,
) -> np.ndarray:
    """A component's values (ceil(H / scale), ceil(W / scale)): transformed, averaged, and interpolated if it has fewer."""
    rows, columns = units[0] * part.high, units[1] * part.wide
    coefficients = np.zeros(rows * columns * 64)
    coefficients[np.frombuffer(part.places, np.int64)] = np.frombuffer(part.values, np.int32)
    factors = np.zeros(64)
    factors[ZIGZAG] = quantisation
    blocks = (coefficients.reshape(-1, 64) * factors).reshape(rows, columns, 8, 8)
    # Averaging commutes with the transform, whose matrix is made smaller instead. What is stored with half as many samples
    # on both axes is averaged over half as many.
    fewer = most[0] // part.high, most[1] // part.wide
    own = scale // 2 if fewer == (2, 2) and scale > 1 else scale
    cosines = COSINES.reshape(8 // own, own, 8).mean(axis=1)
    values = np.einsum("yu,abuv,xv->aybx", cosines, blocks, cosines, optimize=True) + 128
    plane = np.clip(values.reshape(rows * len(cosines), columns * len(cosines)), 0, 255)
    height, width = (-(-side // scale) for side in image)
    # libjpeg repeats where a block is a single sample, or a row has no inner ones.
    smooth = scale < 8 and -(-image[1] // (scale * fewer[1])) > 2
    for axis, (times, wanted) in enumerate(zip(fewer, (height, width), strict=True)):
        if times == 1 or own < scale:
            plane = np.take(plane, range(wanted), axis)
        elif not smooth:
            plane = np.take(np.repeat(plane, times, axis), range(wanted), axis)
        else:
            plane = _between(plane, axis, -(-image[axis] // (scale * times)), wanted)
    return plane


def _between(plane: np.ndarray, axis: int, there: int, wanted: int) -> np.ndarray:
    """Twice as many samples along an axis, a quarter of a step from those that are there; beyond the border it repeats."""
    places = np.clip((np.arange(wanted) + 0.5) / 2 - 0.5, 0, there - 1)
    first = places.astype(int)
    share = np.expand_dims(places - first, 1 - axis)
    second = np.minimum(first + 1, there - 1)
    return np.take(plane, first, axis) * (1 - share) + np.take(plane, second, axis) * share
