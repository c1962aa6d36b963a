"""The content of a shared object, without the build's identity and debug information."""

from __future__ import annotations

import struct
from typing import NamedTuple

ELF64 = b"\x7fELF\x02\x01"  # little-endian, as every machine has it that builds wheels of 64 bits
HEADER = struct.Struct(
    "<40xQ10xHHH"
)  # where the table of sections lies, the size of an entry, how many, whose text are names
SECTION = struct.Struct("<IIQQQQIIQQ")
ALLOCATED = 2  # flag of a section that is loaded
NO_BITS = 8  # type of a section that has no bytes in the file
BUILD_ID = ".note.gnu.build-id"


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


def loaded(data: bytes) -> object:
    """The sections that a process loads, but for the build's identity; the bytes as they are where it is no ELF file."""
    if not data.startswith(ELF64):
        return data
    try:
        where, size, count, names = HEADER.unpack_from(data)
        sections = [_Section(*SECTION.unpack_from(data, where + size * i)) for i in range(count)]
        texts = sections[names].offset
    except (struct.error, IndexError):
        return data
    found = []
    for section in sections:
        name = data[texts + section.name : data.find(b"\0", texts + section.name)].decode("ascii", "replace")
        if section.flags & ALLOCATED and name != BUILD_ID:
            content = b"" if section.type == NO_BITS else data[section.offset : section.offset + section.size]
            found.append((name, section.type, section.flags, section.address, section.size, content))
    return found
