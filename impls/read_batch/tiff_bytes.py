"""The bytes of a TIFF: its two forms in either order, and an open file of which no more is read than it has.

Adobe, TIFF Revision 6.0, 1992, section 2. BigTIFF: https://libtiff.gitlab.io/libtiff/specification/bigtiff.html
"""

from __future__ import annotations

import os
import stat
from struct import Struct, unpack

NUMBERS = {1: "B", 3: "H", 4: "I", 16: "Q"}  # the types that the tags above have
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
START = 4096  # bytes that are read first, which is all of the header where it lies at the beginning
Entry = tuple[int, int, int, int]  # of a directory: type, how many, the value or its place, bytes
Header = tuple[tuple[int, bytes], ...]


class Form:
    """How TIFF or BigTIFF writes its directory, in one order of bytes."""

    def __init__(self, order: str, big: bool) -> None:
        self.order, self.big = order, big
        self.first = Struct(order + ("4xHHQ" if big else "4xI"))
        self.count = Struct(order + ("Q" if big else "H"))
        self.entry = Struct(order + ("HHQQ" if big else "HHII"))
        self.offset = Struct(order + ("Q" if big else "I"))
        self.short = 0 if order == "<" else 8 * (self.offset.size - 2)  # bits behind a number of two bytes


FORMS = {
    b"II*\0": Form("<", big=False),
    b"MM\0*": Form(">", big=False),
    b"II+\0": Form("<", big=True),
    b"MM\0+": Form(">", big=True),
}


class File:
    """An open file with the bytes read so far. Raises ValueError if it is not a regular file or too short."""

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

    def value(self, form: Form, entry: Entry) -> bytes:
        _, _, value, size = entry
        return form.offset.pack(value)[:size] if size <= form.offset.size else self.get(value, size)

    def numbers(self, form: Form, entry: Entry) -> tuple[int, ...]:
        kind, number, value, _ = entry
        if number == 1 and kind == 3:
            return (value >> form.short & 0xFFFF,)
        return unpack(f"{form.order}{number}{NUMBERS[kind]}", self.value(form, entry))

    def read(self) -> Header:
        """The bytes read since the last call."""
        header, self.header = self.header, []
        return tuple(header)

    def says(self, header: Header, size: int) -> bool:
        """Whether the file agrees with another one with this header."""
        return self.length >= size and all(self.start[place : place + len(data)] == data for place, data in header)
