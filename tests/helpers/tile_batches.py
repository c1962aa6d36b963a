"""GeoTIFF tiles, implementations of read_batch, and the batch that is right."""

from pathlib import Path

import numpy as np
import pytest

import impls
from impls.read_batch import packing

rasterio = pytest.importorskip("rasterio", reason="the tiles of these tests are written with rasterio")


tifffile = pytest.importorskip("tifffile", reason="and with tifffile")


NAMES = impls.names("read_batch")


PACKED = {"cpu.memmap", "cpu.mmap_numba"}


each = pytest.mark.parametrize("name", NAMES)


RANDOM = np.random.default_rng(0)


EUROSAT = RANDOM.integers(0, 6000, (13, 64, 64)).astype("u2")


def load(name):
    try:
        return impls.load(name, "read_batch")
    except impls.Unavailable as reason:
        pytest.skip(str(reason))


def write(path, pixels, interleaving="pixel", compression="none", rows=4):
    """A tile by GDAL, of pixels (bands, height, width)."""
    count, height, width = pixels.shape
    form = {"driver": "GTiff", "count": count, "height": height, "width": width, "dtype": pixels.dtype}
    form |= {"interleave": interleaving, "compress": compression, "blockysize": rows}
    with rasterio.open(path, "w", **form) as file:
        file.write(pixels)
    return str(path)


def some(folder, count=3, pixels=EUROSAT, **form):
    """Tiles of one layout, each with other pixels."""
    return [write(Path(folder, f"{i}.tif"), np.roll(pixels, i, axis=2), **form) for i in range(count)]


def read(function, tiles, *settings, **keywords):
    """One call, after the tiles were packed where that is what the implementation reads."""
    if function.name in PACKED:
        packing.pack(Path(tiles[0]).parent)
    return function(tiles, *settings, **keywords)


def expected(pixels, bands=(4, 3, 2), scale=4000.0):
    """The definition in float64, of pixels (N, C, H, W)."""
    return np.clip(np.asarray(pixels, "f8")[:, [band - 1 for band in bands]] / scale, 0, 1)


def right(batch, known):
    assert type(batch) is np.ndarray
    assert (batch.shape, batch.dtype) == (known.shape, "float32")
    assert batch.flags.c_contiguous
    assert batch.flags.writeable
    assert batch.min() >= 0
    assert batch.max() <= 1
    assert np.allclose(batch, known, rtol=3e-7, atol=0)
