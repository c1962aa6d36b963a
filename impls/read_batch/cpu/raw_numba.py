"""The bytes of each tile read by the system's own call, no library between, and one compiled pass from them to the batch.

The header is parsed for the first tile; the others' are compared with it, byte by byte, and have their pixels in the same
places. Of a tile are read the header and the strips that the bands are in, with what lies between: 2 C H W bytes where a
pixel's bands lie side by side. Two calls open and close the file, one reads it; extra memory: one tile.
Adobe, TIFF Revision 6.0, 1992.
"""

import os
import threading
from functools import lru_cache

import numpy as np
from numba import njit

from impls.contract import implementation
from impls.read_batch import tiff
from impls.read_batch.arguments import damaged
from impls.read_batch.reading import fill

GAP = 16384  # bytes that are rather read than jumped over: as long as a second call takes


@njit(cache=True, nogil=True)
def _normalise(file, starts, step, low, high, factor, values):
    """clip(x * factor, 0, 1) of every x whose bytes lie at low and high from starts[band, row] + column * step."""
    for y in range(values.shape[1]):
        for i in range(values.shape[0]):
            place = starts[i, y]
            for x in range(values.shape[2]):
                pixel = np.int64(file[place + low])
                if high >= 0:
                    pixel |= np.int64(file[place + high]) << 8
                values[i, y, x] = min(pixel * factor, 1.0)
                place += step


@lru_cache(maxsize=64)
def _plan(strips, bands):
    """Where each row of the bands begins, bytes from pixel to pixel, and the ranges of the file to read."""
    count, height, width, dtype = strips.layout
    size = np.dtype(dtype).itemsize
    step = size * (count if strips.together else 1)
    offsets, wanted = np.array(strips.offsets, np.int64), np.array(bands)[:, None] - 1
    strip, row = np.divmod(np.arange(height), strips.rows)
    if strips.together:
        starts = offsets[strip] + row * width * step + wanted * size
    else:
        starts = offsets[wanted * (len(offsets) // count) + strip] + row * width * step
    needed = [(place, place + len(data)) for place, data in strips.header]
    needed += [(int(start), int(start) + (width - 1) * step + size) for start in starts.flat]
    ranges: list[list[int]] = []
    for begin, stop in sorted(needed):
        if ranges and begin <= ranges[-1][1] + GAP:
            ranges[-1][1] = max(ranges[-1][1], stop)
        else:
            ranges.append([begin, stop])
    return np.ascontiguousarray(starts), step, tuple(map(tuple, ranges))


class _Reader:
    """Reads tiles whose strips lie as those of one tile that it has seen, into memory of its own."""

    def __init__(self, strips, bands):
        self.strips = strips
        self.starts, self.step, ranges = _plan(strips, bands)
        self.memory = np.empty(ranges[-1][1], np.uint8)
        bytes_read = self.memory.data
        self.ranges = [([bytes_read[begin:stop]], begin, stop - begin) for begin, stop in ranges]
        self.header = [(bytes_read[place : place + len(data)], data) for place, data in strips.header]
        self.low, self.high = (0, -1) if strips.layout.dtype == "uint8" else (0, 1) if strips.order == "<" else (1, 0)

    def read(self, file):
        """Read a tile; False where it is cut short or its strips may lie elsewhere."""
        if os.fstat(file).st_size < self.strips.size:
            return False
        whole = all(os.preadv(file, into, place) == count for into, place, count in self.ranges)
        return whole and all(found == data for found, data in self.header)


@implementation(
    device="cpu",
    family="raw",
    summary="the system's own read, Numba from the file's bytes to the batch",
    limits={"compression": ("none",)},
)
def read_batch(tiles, bands=(4, 3, 2), scale=4000.0, workers=1):
    """Read N tiles into a batch (N, len(bands), H, W) of clip(x / scale, 0, 1)."""
    kept, factor = threading.local(), 1 / scale

    def read(path, place):
        file = os.open(path, os.O_RDONLY)
        try:
            reader = getattr(kept, "reader", None)
            if reader is None or not reader.read(file):
                strips = tiff.strips(file)
                place(strips.layout)  # refuses what is no part of this batch, before anything is made for it
                reader = kept.reader = _Reader(strips, bands)
                if not reader.read(file):
                    raise damaged(path)
        finally:
            os.close(file)
        values = place(reader.strips.layout)
        _normalise(reader.memory, reader.starts, reader.step, reader.low, reader.high, factor, values)

    return fill(read, tiles, bands, workers)
