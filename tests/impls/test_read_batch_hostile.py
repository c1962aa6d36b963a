"""Untrusted tiles: false claims cost no memory and no time, and every reader reports them in one sentence."""

import functools
import json
import struct
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hostile_tiles import (
    DAMAGED,
    HARMLESS,
    LONG,
    PIXELS,
    READERS,
    SHORT,
    SIDE,
    SKIMAGE,
    UNDEFINED,
    block,
    lay,
    made,
    text,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_batches import EUROSAT, expected, load, right, write

from impls.read_batch.arguments import BadTile, NoSuchBand

pytestmark = pytest.mark.filterwarnings("ignore:Dataset has no geotransform", "ignore:This DataLoader will create")


LIBRARIES = [name for name in READERS if name != "cpu.raw_numba"]


LEFT_OUT = "parts left out (sparse): only up to 32768 bytes of pixels to one of the file are supported"


LENGTHS = "parts without a length (StripByteCounts): only those that have one are supported"


STACK = "a stack of images: only one image is supported"


UNSUPPORTED = {
    "sparse, of 4 billion of 4 billion": (
        made(
            {256: (LONG, [2**32 - 1]), 257: (LONG, [2**32 - 1]), 278: (LONG, [2**32 - 1]), 273: (LONG, [0]), 279: (LONG, [0])}
        ),
        LEFT_OUT,
    ),
    "sparse, one strip of two, of 900 million": (
        made(
            {
                256: (LONG, [30000]),
                257: (LONG, [30000]),
                278: (LONG, [29999]),
                273: (LONG, [0, 200]),
                279: (LONG, [0, 150_000]),
            }
        )
        + bytes(150_000 - 320),
        "damaged",
    ),
    "sparse blocks of 900 million pixels": (made(block(30000, 30000) | {324: (LONG, [0]), 325: (LONG, [0])}), LEFT_OUT),
    "sparse floats": (
        made({258: (SHORT, [32] * 5), 339: (SHORT, [3] * 5), 273: (LONG, [0]), 279: (LONG, [0])}),
        "parts left out (sparse) of pixels of float32: only uint8 or uint16 is supported",
    ),
    "sparse, of an odd value": (
        made({273: (LONG, [0]), 279: (LONG, [0]), 42113: text("7abc")}),
        "parts left out (sparse) whose value is b'7abc': only numbers are supported",
    ),
    "no counts": (made({279: None}), LENGTHS),
    "a count of 0": (made({279: (LONG, [0])}), LENGTHS),
    "a count of 0 of two": (made({278: (LONG, [4]), 273: (LONG, [300, 300]), 279: (LONG, [160, 0])}), LENGTHS),
    "a predictor alone": (
        made({317: (SHORT, [2])}),
        "a predictor without compression: only compressed tiles may have one",
    ),
    **{
        f"colours {number}": (
            made({262: (SHORT, [number])}),
            f"colours as {name}: only pixels that are read as they are stored are supported",
        )
        for number, name in ((5, "CMYK"), (6, "YCbCr"), (8, "Lab"), (9, "Lab"), (10, "Lab"))
    },
    "a million planes": (made({32997: (LONG, [1_000_000])}), STACK),
    "a block of a million planes": (made(block(16, 16) | {32998: (LONG, [1_000_000])}, [bytes(1280)]), STACK),
    **{
        f"tag {tag}": (made({tag: (LONG, [9])}), "a format of microscopes: only TIFF is supported")
        for tag in (33628, 34412, 65420)
    },
}


SEVERAL = "several images in a file: only one is supported"


DESCRIBED = "a description that says how to read the file: only other ones are supported"


PRIVATE = "private tag 51123: only those of GeoTIFF, GDAL and EXIF are supported"


BELOW = "directories below the first: only directories behind it are supported"


BEHIND = "over 32 images behind the first: only fewer are supported"


def chain(count, tags=(), tail=b""):
    """A tile with so many directories behind its first, of these entries (tag, type, count, place) each."""
    tile = made()
    place, tile = len(tile), made(following=len(tile))
    for i in range(count):
        size = 6 + 12 * len(tags)
        entries = b"".join(struct.pack("<HHII", *entry) for entry in tags)
        tile += struct.pack("<H", len(tags)) + entries + struct.pack("<I", 0 if i == count - 1 else place + (i + 1) * size)
    return tile + tail


# What some readers leave to others, which take the first directory alone: what those of scikit-image say, and rasterio's.
MORE = {
    "a directory that is followed by itself": (made(following=8), SEVERAL, BEHIND),
    "a directory behind the first": (chain(1, [(254, LONG, 1, 1)]), SEVERAL, None),
    "10,000 directories behind the first": (chain(10_000), SEVERAL, BEHIND),
    "a directory of 60 MB behind the first": (
        chain(1, [(tag, UNDEFINED, 60000, 8) for tag in range(1000, 2000)], bytes(60000)),
        SEVERAL,
        "damaged",
    ),
    "20,000 directories below the first": (made({330: (LONG, [8] * 20000)}), SEVERAL, BELOW),
    "a shape of 8 TB": (made({270: text('{"shape": [200000000000, 8, 5]}')}), DESCRIBED, None),
    "a shape behind spaces": (made({270: text(' \u2003{"shape": [100, 8, 8, 5]}')}), DESCRIBED, None),
    "shape=": (made({270: text("shape=(200000000000, 8, 5)")}), DESCRIBED, None),
    "a nested shape": (made({270: text('{"shape": ' + "[" * 50000)}), DESCRIBED, None),
    "10 million images": (made({270: text("ImageJ=1.11a\nimages=10000000\nslices=10000000\n")}), DESCRIBED, None),
    "another file's pixels": (
        made({270: text('<OME><TiffData><UUID FileName="/dev/zero"/></TiffData></OME>')}),
        DESCRIBED,
        None,
    ),
    "ScanImage": (made({305: text("SI.5")}), DESCRIBED, None),
    "Micro-Manager": (made({51123: text("{}")}), PRIVATE, None),
}


CHILD = """
import json, pathlib, resource, sys, time, warnings
warnings.simplefilter("error")
warnings.filterwarnings("ignore", "Dataset has no geotransform")
import impls
names, good, tiles = json.load(sys.stdin)
readers = [impls.load(name, "read_batch") for name in names]
for reader in readers:
    reader([good], (1, 2), 255)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
size = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 30), -1))
for tile in tiles:
    for reader in readers:
        before, start = peak(), time.perf_counter()
        try:
            said = ["batch", list(reader([tile], (1, 2), 255).shape)]
        except Exception as error:
            said = [type(error).__name__, str(error)]
        print(json.dumps([tile, reader.name, *said, (peak() - before) / 1024, time.perf_counter() - start]), flush=True)
"""


def asked(names, good, tiles):
    """What each reader says of each tile, MiB that it took and seconds, in a process that warns by errors; and its stderr."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input=json.dumps([names, good, tiles]), capture_output=True, text=True, timeout=250
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.mark.slow
def test_what_a_file_claims_costs_nothing(tmp_path, readers):
    cases = DAMAGED | {kind: data for kind, (data, *_) in (UNSUPPORTED | MORE).items()}
    known = {}
    for i, (kind, data) in enumerate(cases.items()):
        path = tmp_path / f"{i}.tif"
        path.write_bytes(data)
        known[str(path)] = kind
    good = tmp_path / "good.tif"
    good.write_bytes(HARMLESS["strips"])
    answers, shown = asked(list(readers), str(good), list(known))
    assert shown == ""
    assert len(answers) == len(known) * len(readers)
    wrong = []
    for path, name, error, words, more, seconds in answers:
        kind = known[path]
        reason = "damaged" if kind in DAMAGED else (UNSUPPORTED.get(kind) or MORE[kind])[1]
        if kind in MORE and name not in SKIMAGE:
            reason = MORE[kind][2] if name == "cpu.rasterio" else None
        said = ["NotImplementedError", f"tile {path}: {reason}"]
        if reason is None:
            said = ["batch", [1, 2, SIDE, SIDE]]
        elif reason == "damaged":
            said = ["BadTile", f"tile {path} is damaged, cut short, or not a TIFF"]
        if [error, words] != said or more > 50 or seconds > 2:
            wrong.append(f"{kind}, {name}: {error}: {words}, {more:.0f} MiB, {seconds:.1f} s")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", HARMLESS)
def test_the_check_refuses_nothing_that_is_right(kind, tmp_path, readers):
    path = lay(tmp_path, HARMLESS[kind])
    for name, reader in readers.items():
        reason = {"deflated": "compression=deflate", "BigTIFF": "a BigTIFF"}.get(kind.split(",")[0])
        if name == "cpu.raw_numba" and reason:
            with pytest.raises(NotImplementedError, match=reason):
                reader([path], (1, 5), 255)
        else:
            right(reader([path], (1, 5), 255), expected(PIXELS.transpose(2, 0, 1)[None], (1, 5), 255))


@pytest.mark.parametrize("compression", ["none", "deflate", "lzw", "packbits", "zstd", "lzma"])
@pytest.mark.parametrize("shape", [(1, 4000, 4000), (13, 64, 64), (1, 1, 1), (3, 1, 9999)])
def test_the_emptiest_tiles_are_read(compression, shape, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    pixels = np.zeros(shape, "u2")
    try:
        path = write(tmp_path / "a.tif", pixels, compression=compression, rows=shape[1])
    except rasterio.errors.RasterioError:
        pytest.skip(f"GDAL is built without {compression}")
    right(load("cpu.rasterio")([path], (1,)), np.zeros((1, 1, *shape[1:])))


def test_gdals_overviews_are_passed_over(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    path = write(tmp_path / "a.tif", EUROSAT)
    with rasterio.open(path, "r+") as file:
        file.build_overviews([2, 4, 8])
    for name in ("cpu.rasterio", "cpu.tifffile", "cpu.raw_numba"):
        right(load(name)([path]), expected([EUROSAT]))
    with pytest.raises(NotImplementedError, match=SEVERAL):
        load("cpu.skimage")([path])


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    global FOLDER
    FOLDER = tmp_path_factory.mktemp("changed")


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(sorted(HARMLESS)),
    st.lists(st.tuples(st.integers(0, 400), st.binary(min_size=1, max_size=4)), max_size=4),
    st.integers(0, 40),
)
def test_any_change_gives_pixels_or_a_sentence(kind, changes, less):
    data = HARMLESS[kind][: len(HARMLESS[kind]) - less]
    for place, some_bytes in changes:
        data = data[:place] + some_bytes + data[place + len(some_bytes) :]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = lay(FOLDER, data)
        for reader in loaded():
            try:
                values = reader([path], (1,), 255)
            except (BadTile, NotImplementedError, NoSuchBand) as error:
                words = str(error)
            else:
                words = f"tile {path}" if values.size <= 32768 * len(data) else "more values than the file could hold"
            assert f"tile {path}" in words


@functools.cache
def loaded():
    return [load(name) for name in ("cpu.raw_numba", "cpu.rasterio", "cpu.tifffile", "cpu.skimage")]
