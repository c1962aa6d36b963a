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
from impls.read_batch.batch import fill

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
    """The plan of reading a tile into memory: rows of the bands, bytes from pixel to pixel, ranges of the file, the
    header, and the bytes of a row that is left out of the file, which lie behind what is read.

    The ranges lie side by side in memory, so that this is as large as what is read, however far apart they are in the file.
    """
    count, height, width, dtype = strips.tile_format
    size = np.dtype(dtype).itemsize
    step = size * (count if strips.together else 1)
    offsets, wanted = np.array(strips.offsets, np.int64), np.array(bands)[:, None] - 1
    strip, row = np.divmod(np.arange(height), strips.rows)
    if strips.together:
        begins = np.broadcast_to(offsets[strip], (len(bands), height))
        starts = begins + row * width * step + wanted * size
    else:
        begins = offsets[wanted * (len(offsets) // count) + strip]
        starts = begins + row * width * step
    there, blank = begins > 0, np.empty(0, np.uint8)
    if not there.all():
        blank = np.full(width * step // size, strips.blank, np.dtype(dtype).newbyteorder(strips.order)).view(np.uint8)
    begins = np.concatenate([starts[there], [place for place, _ in strips.header]])
    stops = np.concatenate([starts[there] + (width - 1) * step + size, [place + len(data) for place, data in strips.header]])
    order = np.argsort(begins)
    begins, stops = begins[order], np.maximum.accumulate(stops[order])
    gaps = np.flatnonzero(begins[1:] > stops[:-1] + GAP)
    begins, stops = begins[[0, *(gaps + 1)]], stops[[*gaps, -1]]
    moved = begins - np.cumsum([0, *(stops - begins)])[:-1]  # by how much each range lies further forward in memory

    def place(of):
        return of - moved[np.searchsorted(begins, of, "right") - 1]

    header = tuple((int(place(begin)), data) for begin, data in strips.header)
    starts = np.where(there, place(starts), np.sum(stops - begins))
    return starts, step, list(zip(begins.tolist(), stops.tolist(), strict=True)), header, blank


class _Reader:
    """Reads tiles whose strips lie as those of one tile that it has seen, into memory of its own."""

    def __init__(self, strips, bands):
        self.strips = strips
        self.starts, self.step, ranges, header, blank = _plan(strips, bands)
        self.memory = np.concatenate([np.empty(sum(stop - begin for begin, stop in ranges), np.uint8), blank])
        bytes_read, self.ranges, filled = self.memory.data, [], 0
        for begin, stop in ranges:
            into = bytes_read[filled : filled + stop - begin]
            self.ranges.append(([into], begin, len(into)))
            filled += len(into)
        self.header = [(bytes_read[place : place + len(data)], data) for place, data in header]
        self.low, self.high = (0, -1) if strips.tile_format.dtype == "uint8" else (0, 1) if strips.order == "<" else (1, 0)

    def read(self, file):
        """Read a tile; False if it is cut short or its strips may lie elsewhere."""
        if os.fstat(file).st_size < self.strips.size:
            return False
        whole = all(os.preadv(file, into, place) == count for into, place, count in self.ranges)
        return whole and all(found == data for found, data in self.header)


@implementation(
    device="cpu",
    family="raw",
    summary="files read as bytes, decoded and scaled by Numba",
    limits={"compression": ("none",)},
)
def read_batch(tiles, bands=(4, 3, 2), scale=4000.0, workers=1):
    """Read N tiles into a batch (N, len(bands), H, W) of clip(x / scale, 0, 1)."""
    kept, factor = threading.local(), 1 / scale

    def read(path, place):
        file = os.open(path, tiff.READ)
        try:
            reader = getattr(kept, "reader", None)
            if reader is None or not reader.read(file):
                strips = tiff.strips(file)
                place(strips.tile_format)  # refuses a tile that does not fit the batch, before anything is allocated for it
                reader = kept.reader = _Reader(strips, bands)
                if not reader.read(file):
                    raise damaged(path)
        finally:
            os.close(file)
        values = place(reader.strips.tile_format)
        _normalise(reader.memory, reader.starts, reader.step, reader.low, reader.high, factor, values)

    return fill(read, tiles, bands, workers)
