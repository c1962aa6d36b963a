"""Sparse or unusual GeoTIFFs: every reader gives GDAL's answer, or one sentence."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hostile_tiles import LONG, PIXELS, SHORT, STRIP, block, lay, made, text
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_batches import EUROSAT, each, expected, load, rasterio, read, right, write

pytestmark = pytest.mark.filterwarnings("ignore:Dataset has no geotransform", "ignore:This DataLoader will create")
NOTHING = {273: (LONG, [0]), 279: (LONG, [0])}


def by_gdal(path):
    """A tile as GDAL has it, (1, bands, height, width)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with rasterio.open(path) as file:
            return file.read()[None]


@st.composite
def sparse(draw):
    """A tile of 5 or 6 pixels a side of which whole strips, blocks or bands have no data, and the form to write it in."""
    bands, side, rows = draw(st.integers(2, 4)), draw(st.integers(5, 6)), draw(st.integers(1, 7))
    dtype, nodata = draw(st.sampled_from(["u1", "u2"])), draw(st.sampled_from([None, 0, 7, 255]))
    pixels = np.random.default_rng(draw(st.integers(0, 9))).integers(1, 200, (bands, side, side)).astype(dtype)
    for band, row in draw(st.sets(st.tuples(st.integers(0, bands - 1), st.integers(0, side - 1)))):
        pixels[band, row] = nodata or 0
    if draw(st.booleans()):
        pixels[...] = nodata or 0
    interleave = draw(st.sampled_from(["pixel", "band"]))
    return pixels, {"nodata": nodata, "blockysize": rows, "interleave": interleave, "SPARSE_OK": "TRUE"}


@each
def test_left_out_parts_are_what_gdal_has(name):
    function = load(name)

    @settings(max_examples=40, deadline=None)
    @given(sparse())
    def agrees(tile):
        pixels, form = tile
        count, height, width = pixels.shape
        if "skimage" in name and count == height:
            return
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "a.tif"))
            form = form | {"count": count, "height": height, "width": width, "dtype": pixels.dtype}
            with rasterio.open(path, "w", driver="GTiff", **form) as file:
                file.write(pixels)
            right(
                read(function, [path], tuple(range(count, 0, -1)), 255),
                expected(pixels[None, ::-1], range(1, count + 1), 255),
            )

    agrees()


ODD = {
    **{
        f"{value!r} left out": made(NOTHING | {42113: text(value)})
        for value in ("-9", "7.6", "nan", "300", "1e2", " 5", "2.5")
    },
    "big end first": made(NOTHING | {258: (SHORT, [16] * 5), 42113: text("258")}, order=">"),
    "a strip of two, big end first": made(
        {278: (LONG, [4]), 273: (LONG, [0, 400]), 279: (LONG, [0, 320]), 258: (SHORT, [16] * 5), 42113: text("258")},
        [STRIP],
        order=">",
        behind=bytes(300),
    ),
    "deflated": made(NOTHING | {259: (SHORT, [8])}),
    "BigTIFF": made(NOTHING, big=True),
    "blocks": made(block(16, 16) | {324: (LONG, [0]), 325: (LONG, [0])}),
    "bits in reverse": made({266: (SHORT, [2])}),
    "pixels of no said kind": made({339: (SHORT, [4] * 5)}),
    "upside down": made({274: (SHORT, [3])}),
    "light on dark": made({262: (SHORT, [0])}),
}
RAW = {"deflated": "compression=deflate", "BigTIFF": "a BigTIFF", "blocks": "stored in blocks", "bits in reverse": "the bits"}


@pytest.mark.parametrize("kind", ODD)
def test_odd_tiles_are_what_gdal_has(kind, tmp_path, readers):
    path = lay(tmp_path, ODD[kind])
    known = expected(by_gdal(path), (1, 5), 255)
    for name, reader in readers.items():
        if name == "cpu.raw_numba" and kind in RAW:
            with pytest.raises(NotImplementedError, match=RAW[kind]):
                reader([path], (1, 5), 255)
        else:
            right(reader([path], (1, 5), 255), known)


def test_a_batch_of_sparse_and_whole_tiles(tmp_path, readers):
    """Their directories are the same; the places of the strips are stored elsewhere in the file."""

    def tile(offsets, counts):
        return made({278: (LONG, [4]), 42113: text("9"), 273: (LONG, offsets), 279: (LONG, counts)}, [STRIP])

    place = len(tile([0, 0], [0, 0])) - len(STRIP)
    layouts = ([place, place + 160], [160, 160]), ([0, place], [0, 160]), ([0, 0], [0, 0])
    tiles = [tmp_path / f"{i}.tif" for i in (0, 1, 2, 0)]
    for path, layout in zip(tiles, layouts, strict=False):
        path.write_bytes(tile(*layout))
    pixels = PIXELS.transpose(2, 0, 1)
    lower = np.concatenate([np.full_like(pixels[:, :4], 9), pixels[:, :4]], 1)
    known = expected([pixels, lower, np.full_like(pixels, 9), pixels], (1, 5), 255)
    for reader in readers.values():
        right(reader(tiles, (1, 5), 255), known)


def test_a_codec_that_gdal_lacks_is_named(tmp_path):
    path = lay(tmp_path, made({259: (SHORT, [65000])}))
    with pytest.raises(NotImplementedError, match=r"a\.tif: compression=65000: GDAL is built without it$"):
        load("cpu.rasterio")([path], (1,))


@each
def test_other_compressions_are_read_or_named(name, tmp_path):
    path = write(tmp_path / "a.tif", EUROSAT, compression="zstd")
    try:
        right(read(load(name), [path]), expected([EUROSAT]))
    except NotImplementedError as error:
        assert str(error).startswith(f"tile {path}: compression=zstd: only compression=none")  # noqa: PT017
