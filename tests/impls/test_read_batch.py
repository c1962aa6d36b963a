"""read_batch: every implementation gives the right batch, or says in the same words as all others why it does not."""

import importlib.util
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_batches import EUROSAT, RANDOM, each, expected, load, read, right, some, tifffile, write

from impls.contract import declaration
from impls.read_batch.arguments import checker

# A tile of these tests lies nowhere on earth, which rasterio remarks.
pytestmark = pytest.mark.filterwarnings("ignore:Dataset has no geotransform", "ignore:This DataLoader will create")


# Right answers


@each
@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("interleaving", ["pixel", "band"])
def test_tiles_as_eurosat_has_them(name, interleaving, workers, tmp_path):
    function = load(name)
    tiles = some(tmp_path, 5, interleaving=interleaving)
    known = [np.roll(EUROSAT, i, axis=2) for i in range(5)]
    right(read(function, tiles, workers=workers), expected(known))
    assert read(function, tiles[2:3], workers=workers).shape == (1, 3, 64, 64)
    right(read(function, list(map(Path, tiles[::-1]))), expected(known[::-1]))
    right(read(function, tuple([tiles[1]] * 3), [13], 1), expected([known[1]] * 3, [13], 1))
    right(read(function, tiles, range(1, 14), np.float32(1e4), np.int8(workers)), expected(known, range(1, 14), 1e4))


# With one more library tifffile reads what is declared to be beyond it.
COMPRESSIONS = ["none", "none", "deflate", *(["lzw"] if importlib.util.find_spec("imagecodecs") is None else [])]
LARGEST = {"uint8": 255, "uint16": 65535}


@st.composite
def batches(draw):
    count, height = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    # Equal lengths are where axes are taken for one another.
    width = draw(st.one_of(st.just(height), st.integers(1, 12)))
    channels = draw(st.one_of(st.integers(1, 6), st.sampled_from([height, width])))
    dtype = draw(st.sampled_from(sorted(LARGEST)))
    pixels = np.random.default_rng(draw(st.integers(0, 2**16))).integers(
        0, draw(st.sampled_from([1, 100, LARGEST[dtype]])) + 1, (count, channels, height, width), dtype
    )
    bands = draw(st.permutations(range(1, channels + 1)))[: draw(st.integers(1, channels))]
    form = {
        "interleaving": draw(st.sampled_from(["pixel", "band"])),
        "compression": draw(st.sampled_from(COMPRESSIONS)),
        "rows": draw(st.integers(1, 13)),
    }
    scale = draw(st.one_of(st.sampled_from([1, 255, 4000.0, 65535]), st.floats(1e-3, 1e6)))
    return pixels, tuple(bands), scale, draw(st.sampled_from([1, 1, 1, 2])), form


@each
def test_any_tiles(name):
    function = load(name)

    @settings(max_examples=30, deadline=None)
    @given(batch=batches())
    def agrees(batch):
        pixels, bands, scale, workers, form = batch
        with tempfile.TemporaryDirectory() as folder:
            tiles = [write(Path(folder, f"{i}.tif"), tile, **form) for i, tile in enumerate(pixels)]
            reason = function.unsupported(pixels.shape, bands, scale, workers, compression=form["compression"])
            if reason is None:
                right(read(function, tiles, bands, scale, workers), expected(pixels, bands, scale))
                return
            with pytest.raises(NotImplementedError) as caught:
                read(function, tiles, bands, scale, workers)
            assert str(caught.value) == f"tile {tiles[0]}: {reason}"

    agrees()


@pytest.mark.parametrize("name", ["cpu.skimage", "cpu.skimage_torch"])
@pytest.mark.parametrize("interleaving", ["pixel", "band"])
def test_axes_are_never_mistaken(name, interleaving, tmp_path):
    function = load(name)
    read_ones = 0
    for shape in itertools.product(range(1, 7), repeat=3):
        pixels = RANDOM.integers(0, 256, (1, *shape)).astype("u1")
        tile = write(tmp_path / "tile.tif", pixels[0], interleaving)
        try:
            right(function([tile], (1,), 255), expected(pixels, (1,), 255))
            read_ones += 1
        except NotImplementedError:
            assert function.unsupported(pixels.shape, (1,), 255)
    assert read_ones == 8  # 5x5 and 6x6 pixels of two to six bands, not as many as rows


@each
@pytest.mark.parametrize("planar", ["contig", "separate"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_tiles_by_another_writer(name, order, dtype, planar, tmp_path):
    function = load(name)
    pixels = RANDOM.integers(0, 256, (2, 5, 8, 8)).astype(dtype)
    pixels[1, 3] = LARGEST[dtype]
    for i, tile in enumerate(pixels if planar == "separate" else pixels.transpose(0, 2, 3, 1)):
        form = {"photometric": "minisblack", "planarconfig": planar, "byteorder": order, "metadata": None}
        # A description of another length moves everything behind it.
        tifffile.imwrite(tmp_path / f"{i}.tif", tile, description="field" * i, rowsperstrip=3, **form)
    right(read(function, [tmp_path / "0.tif", tmp_path / "1.tif"], (5, 1, 4), 200), expected(pixels, (5, 1, 4), 200))


@each
def test_layouts_may_differ_where_shapes_do_not(name, tmp_path):
    function = load(name)
    form = {"interleaving": ["pixel", "band", "band", "pixel"], "rows": [4, 7, 64, 1]}
    tiles = [
        write(tmp_path / f"{i}.tif", EUROSAT, *case)
        for i, case in enumerate((interleaving, "none", rows) for interleaving, rows in zip(*form.values(), strict=True))
    ]
    right(read(function, tiles, (13, 1)), expected([EUROSAT] * 4, (13, 1)))
    right(read(function, tiles, (13, 1), workers=2), expected([EUROSAT] * 4, (13, 1)))


@each
def test_tiles_are_only_read(name, tmp_path):
    function = load(name)
    tiles = some(tmp_path)
    before = [(Path(tile).read_bytes(), Path(tile).stat().st_mtime_ns) for tile in tiles]
    first = read(function, tiles)
    first[:] = -1
    right(read(function, tiles), expected([np.roll(EUROSAT, i, axis=2) for i in range(3)]))
    assert before == [(Path(tile).read_bytes(), Path(tile).stat().st_mtime_ns) for tile in tiles]


# The contract


@each
def test_declarations(name):
    declared = declaration(name, "read_batch")
    assert (declared["device"], declared["arrays"]) == ("cpu", "numpy")
    assert 0 < len(declared["summary"]) < 80
    loaded = load(name)
    assert {key: getattr(loaded, key) for key in declared} == declared
    assert (loaded.operation, loaded.prepare) == ("read_batch", None)
    assert loaded.unsupported((32, 13, 64, 64)) is None
    with pytest.raises(TypeError, match="dtype must be float32, not float64"):
        loaded.unsupported((32, 13, 64, 64), dtype="float64")


def test_limits_are_of_tiles():
    with pytest.raises(ValueError, match="limits may name axes and compression, not stride"):
        checker("numpy", {"stride": (1,)})
    with pytest.raises(ValueError, match="read_batch returns a NumPy array"):
        checker("torch", {})


NEEDS = {
    "cpu.mmap_numba": "numba",
    "cpu.rasterio": "rasterio",
    "cpu.raw_numba": "numba",
    "cpu.skimage": "skimage",
    "cpu.skimage_torch": "torch",
    "cpu.tifffile": "tifffile",
    "cpu.tifffile_numba": "numba",
    "cpu.torch_dataloader": "torch",
}
CURE = {"skimage": "scikit-image", "torch": "torch==2.13.0"}


def test_missing_libraries():
    code = """
import json, sys
sys.modules.update(dict.fromkeys(["rasterio", "skimage", "tifffile", "torch", "numba"]))
import impls
from impls.read_batch.packing import pack
said = {}
for name in impls.names("read_batch"):
    try:
        said[name] = impls.load(name, "read_batch").name
    except impls.Unavailable as reason:
        said[name] = str(reason)
try:
    pack(".")
except impls.Unavailable as reason:
    said["pack"] = str(reason)
print(json.dumps(said))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    said = json.loads(done.stdout)
    assert said.pop("cpu.memmap") == "cpu.memmap"  # NumPy alone
    assert said.pop("pack").endswith("pip install tifffile")
    assert sorted(said) == sorted(NEEDS)
    for name, library in NEEDS.items():
        assert said[name].startswith(f"{name} cannot be imported")
        assert said[name].endswith(f"pip install {CURE.get(library, library)}")
