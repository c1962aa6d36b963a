"""Tiles of others: what a file claims costs no memory and no time, and every reader says in one sentence what is wrong."""

import functools
import json
import os
import socket
import struct
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_batches import EUROSAT, NAMES, PACKED, expected, load, right, some, write

import impls
from impls.read_batch import packing, tiff
from impls.read_batch.arguments import BadTile, NoSuchBand, named

pytestmark = pytest.mark.filterwarnings("ignore:Dataset has no geotransform", "ignore:This DataLoader will create")
READERS = [name for name in NAMES if name not in PACKED]
LIBRARIES = [name for name in READERS if name != "cpu.raw_numba"]
SKIMAGE = [name for name in NAMES if "skimage" in name]

# Files are made of tags: (type, numbers) each, or (type, count, place) for one whose numbers lie elsewhere, or nowhere.
BYTE, ASCII, SHORT, LONG, RATIONAL, UNDEFINED, LONG8 = 1, 2, 3, 4, 5, 7, 16
CODES = {BYTE: "B", SHORT: "H", LONG: "I", LONG8: "Q"}
SIDE, BANDS = 8, 5
PLAIN = {
    256: (LONG, [SIDE]),
    257: (LONG, [SIDE]),
    258: (SHORT, [8] * BANDS),
    259: (SHORT, [1]),
    262: (SHORT, [1]),
    277: (SHORT, [BANDS]),
    278: (LONG, [SIDE]),
    284: (SHORT, [1]),
    338: (SHORT, [0] * (BANDS - 1)),
}
PIXELS = np.random.default_rng(3).integers(0, 256, (SIDE, SIDE, BANDS)).astype("u1")
STRIP = PIXELS.tobytes()


def made(tags=(), parts=(STRIP,), order="<", big=False, following=0, repeated=(), behind=b"", tail=b""):
    """A TIFF of these parts, one after the other behind its directory, and with these tags instead of those of a plain one.

    A tag that is None is left out; repeated are further entries; behind lies between the directory and the parts, tail at the
    end.
    """
    number, entry, inline = ("Q", "HHQ", 8) if big else ("I", "HHI", 4)
    wanted = PLAIN | {273: (LONG8 if big else LONG, None), 279: (LONG8 if big else LONG, list(map(len, parts)))} | dict(tags)
    entries = [(tag, *value) for tag, value in sorted(wanted.items()) if value is not None] + list(repeated)
    begin = 16 if big else 8
    size = struct.calcsize(order + entry) + inline
    place = begin + (8 if big else 2) + size * len(entries) + inline
    values, table = b"", b""
    where = {273, 324}
    for tag, kind, *rest in entries:
        if len(rest) == 2:
            count, data = rest[0], struct.pack(order + number, rest[1])
        else:
            numbers = rest[0]
            if numbers is None:
                numbers = [0] * len(parts)
            count = len(numbers)
            data = bytes(numbers) if kind in (ASCII, UNDEFINED) else struct.pack(f"{order}{count}{CODES[kind]}", *numbers)
            if len(data) > inline:
                values, data = values + data, struct.pack(order + number, place + len(values))
        table += struct.pack(order + entry, tag, kind, count) + data.ljust(inline, b"\0")
    first = place + len(values) + len(behind)
    if any(tag in where and rest == [None] for tag, _, *rest in entries):
        offsets = [first + sum(map(len, parts[:i])) for i in range(len(parts))]
        tag = next(tag for tag, _, *rest in entries if tag in where and rest == [None])
        return made(
            {**dict(tags), tag: (LONG8 if big else LONG, offsets)}, parts, order, big, following, repeated, behind, tail
        )
    mark = (b"II" if order == "<" else b"MM") + struct.pack(order + "H", 43 if big else 42)
    head = mark + (struct.pack(order + "HHQ", 8, 0, 16) if big else struct.pack(order + "I", 8))
    count = struct.pack(order + ("Q" if big else "H"), len(entries))
    return head + count + table + struct.pack(order + number, following) + values + behind + b"".join(parts) + tail


def text(words):
    return ASCII, words.encode() + b"\0"


NONE = {257: (LONG, [200_000_000]), 278: (LONG, [1])}
ZEROS = zlib.compress(bytes(1 << 20), 9)
BLOCK = {273: None, 278: None, 279: None, 324: (LONG, None), 325: (LONG, [len(STRIP)])}
DEFLATE, LZW = {259: (SHORT, [8])}, {259: (SHORT, [5])}


def block(width, height):
    return BLOCK | {322: (LONG, [width]), 323: (LONG, [height])}


def one_strip(times):
    """A deflated tile of 500 MB whose strips are the same 1 KB, so many times."""
    tags = DEFLATE | {257: (LONG, [times * 26_214]), 278: (LONG, [26_214]), 279: (LONG, [len(ZEROS)] * times)}
    place = made(tags | {273: (LONG, [0] * times)}, [ZEROS]).index(ZEROS)
    return made(tags | {273: (LONG, [place] * times)}, [ZEROS])


DAMAGED = {
    "200 million strips": made(NONE, [STRIP]),
    "200 million strips, BigTIFF": made(NONE, [STRIP], big=True),
    "200 million strips of an unknown type": made(NONE | {273: (99, 200_000_000, 8), 279: (99, 200_000_000, 8)}),
    "4 billion of 4 billion": made({256: (LONG, [2**32 - 1]), 257: (LONG, [2**32 - 1])}),
    "a page of 18 exabytes": made({256: (LONG8, [2**63]), 257: (LONG8, [2**63])}, big=True),
    "65535 bands": made({277: (SHORT, [65535]), 258: (SHORT, [8])}),
    "a page larger than its file": made({257: (LONG, [1_000_000]), 278: (LONG, [1_000_000])}),
    "a page larger than its strip": made({257: (LONG, [SIDE + 1]), 278: (LONG, [SIDE + 1])}, tail=bytes(9999)),
    "a deflated page of 2 GB": made(DEFLATE | {257: (LONG, [50_000_000]), 278: (LONG, [50_000_000])}, [ZEROS]),
    "a page of 2 GB by LZW": made(LZW | {257: (LONG, [50_000_000]), 278: (LONG, [50_000_000])}, [bytes(9999)]),
    "a page of 4 GB by ZSTD": made({259: (SHORT, [50000]), 257: (LONG, [10**8]), 278: (LONG, [10**8])}, [bytes(999)]),
    "strips that are one strip 500 times": one_strip(500),
    "strips that overlap": made({278: (LONG, [4]), 273: (LONG, [300, 301]), 279: (LONG, [320, 320])}, [STRIP]),
    "a tag 3,000 times": made(repeated=[(273, LONG, 2000, 8)] * 3000, tail=bytes(16384)),
    "an unknown tag 3,000 times": made(repeated=[(40000, UNDEFINED, 40000, 8)] * 3000, tail=bytes(16384)),
    "a tag twice": made(repeated=[(259, SHORT, [8])]),
    "5,000 tags of 60 KB in the same bytes": made(
        repeated=[(t, UNDEFINED, 60000, 8) for t in range(40000, 44000)], tail=bytes(60000)
    ),
    "a value behind the end": made({40000: (UNDEFINED, 9, 10**9)}),
    "a value that ends behind the end": made({40000: (UNDEFINED, 2**32 - 1, 8)}),
    "a directory behind the end": b"II*\0" + struct.pack("<I", 10**9) + bytes(99),
    "2 to the 60 entries": b"II+\0\x08\0\0\0" + struct.pack("<QQ", 16, 2**60) + bytes(99),
    "more entries than bytes": b"II*\0" + struct.pack("<IH", 8, 65535) + bytes(99),
    "BigTIFF of another width": b"II+\0\x04\0\0\0" + made(big=True)[8:],
    "a block of 900 million pixels": made(block(30000, 30000) | {325: (LONG, [len(STRIP)])}),
    "a deflated block of 900 million pixels": made(block(30000, 30000) | DEFLATE | {325: (LONG, [len(ZEROS)])}, [ZEROS]),
    "strips and blocks": made({322: (LONG, [16]), 323: (LONG, [16])}),
    "block offsets for strips": made({324: (LONG, [300]), 325: (LONG, [8])}),
    "a strip behind the end": made({273: (LONG, [10**9])}),
    "a strip that ends behind the end": made({279: (LONG, [2**32 - 1])}),
    "a strip in the header": made({273: (LONG, [4])}),
    "two offsets, one count": made({273: (LONG, [300, 300])}),
    "no rows in a strip": made({278: (LONG, [0])}),
    "no width": made({256: (LONG, [0])}),
    "no bands": made({277: (SHORT, [0])}),
    "no bits": made({258: (SHORT, [0] * BANDS)}),
    "no numbers": made({256: (LONG, 0, 0)}),
    "two numbers of rows": made({278: (LONG, [SIDE, SIDE])}),
    "two widths": made({256: (LONG, [SIDE, SIDE])}),
    "a width in words": made({256: text("8")}),
    "a width in eighths": made({256: (RATIONAL, 1, 8)}),
    "bands of 8 and of 16 bits": made({258: (SHORT, [8, 16, 8, 8, 8])}),
    "bands neither together nor apart": made({284: (SHORT, [3])}),
    "no height": made({257: None}),
    "no counts": made({279: None}),
}
LEFT_OUT = "parts left out (sparse): only files that hold all pixels are supported"
STACK = "a stack of images: only one image is supported"
UNSUPPORTED = {
    "sparse": (made({273: (LONG, [0]), 279: (LONG, [0])}), LEFT_OUT),
    "sparse, of 4 billion of 4 billion": (
        made(
            {256: (LONG, [2**32 - 1]), 257: (LONG, [2**32 - 1]), 278: (LONG, [2**32 - 1]), 273: (LONG, [0]), 279: (LONG, [0])}
        ),
        LEFT_OUT,
    ),
    "sparse blocks": (made(block(16, 16) | {324: (LONG, [0]), 325: (LONG, [0])}), LEFT_OUT),
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
HARMLESS = {
    "plain": made(),
    "big end first": made(order=">"),
    "BigTIFF": made(big=True),
    "BigTIFF, big end first": made(big=True, order=">"),
    "strips": made({278: (LONG, [3])}, [STRIP[:120], STRIP[120:240], STRIP[240:]]),
    "strips with room behind": made({278: (SHORT, [5])}, [STRIP[:200] + b"..", STRIP[200:] + bytes(300)]),
    "rows without end": made({278: (LONG, [2**32 - 1])}),
    "deflated": made(DEFLATE | {279: (LONG, [len(zlib.compress(STRIP))])}, [zlib.compress(STRIP)]),
    "short numbers": made({256: (SHORT, [SIDE]), 273: (SHORT, [400]), 279: (SHORT, [len(STRIP)])}, behind=bytes(400 - 164)),
    "a description": made({270: text("of a field, sown [2019] with <wheat> & barley")}),
    "tifffile's description": made({270: text('{"shape": [8, 8, 5]}'), 305: text("tifffile.py")}),
    "GDAL's metadata": made({42112: text("<GDALMetadata></GDALMetadata>"), 42113: text("0")}),
    "an unknown type": made({1000: (99, 2**30, 2**30)}),
}


def lay(folder, data):
    path = Path(folder, "a.tif")
    path.write_bytes(data)
    return str(path)


@pytest.fixture(scope="module")
def readers():
    found = {}
    for name in READERS:
        try:
            found[name] = impls.load(name, "read_batch")
        except impls.Unavailable:
            continue
    return found


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


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    global FOLDER
    FOLDER = tmp_path_factory.mktemp("changed")


@functools.cache
def loaded():
    return [load(name) for name in ("cpu.raw_numba", "cpu.rasterio", "cpu.tifffile", "cpu.skimage")]


# Only files


@pytest.mark.parametrize("name", NAMES)
def test_only_regular_files_are_opened(name, tmp_path, monkeypatch):
    function, whole = load(name), "tile {} is damaged, cut short, or not a TIFF"
    os.mkfifo(tmp_path / "pipe.tif")
    (tmp_path / "link.tif").symlink_to(tmp_path / "pipe.tif")
    (tmp_path / "zero.tif").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(tmp_path)
        listening.bind("socket.tif")
        for path in ("pipe.tif", "link.tif", "zero.tif", "socket.tif", "/dev/zero", "/dev/null"):
            with pytest.raises(packing.NotPacked if name in PACKED else BadTile) as caught:
                function([str(path)])
            assert name in PACKED or str(caught.value) == whole.format(path)
    gone = (
        "http://127.0.0.1:9/a.tif",
        "/vsicurl/http://127.0.0.1:9/a.tif",
        "/vsimem/a.tif",
        "GTIFF_DIR:1:a.tif",
        "s3://a/a.tif",
    )
    for path in gone:
        with pytest.raises(FileNotFoundError, match=r"does not exist$"):
            function([path])


@pytest.mark.parametrize(
    "path", ["http:/127.0.0.1:9/a.tif", "zip:/a.zip/a.tif", "GTIFF_DIR:2:a.tif", "GTIFF_RAW:a.tif", "a#b.tif"]
)
def test_a_file_is_read_whose_name_looks_like_another_thing(path, tmp_path, monkeypatch, readers):
    monkeypatch.chdir(tmp_path)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(made())
    for spelt in (path, path.replace(":/", "://")):
        for reader in readers.values():
            right(reader([spelt], (1, 5), 255), expected(PIXELS.transpose(2, 0, 1)[None], (1, 5), 255))


@pytest.mark.parametrize("name", SKIMAGE)
def test_a_pattern_in_a_name_finds_no_other_files(name, tmp_path):
    lay(tmp_path, made())
    for path in ("?.tif", "*.tif", "a.dat"):
        (tmp_path / path).write_bytes(made(parts=(bytes(len(STRIP)),)))
        with pytest.raises(NotImplementedError, match=r"a name that ends in neither \.tif nor \.tiff, or has \* or \? in it"):
            load(name)([str(tmp_path / path)], (1,), 255)
        (tmp_path / path).unlink()


def test_paths_are_never_urls_nor_virtual(monkeypatch):
    monkeypatch.chdir("/tmp")
    assert tiff.local("http://a/b.tif") == "/tmp/http://a/b.tif"
    assert tiff.local("/vsicurl/http://a/b.tif") == "/./vsicurl/http://a/b.tif"
    assert tiff.local("/a/b.tif") == "/a/b.tif"


def test_a_file_with_another_header_is_checked_anew(tmp_path):
    """Most tiles of a batch have one header; the check remembers it, and compares."""
    path = lay(tmp_path, HARMLESS["strips"])
    assert tiff.check(path) is tiff.check(path)
    for data in (HARMLESS["strips"][:-1], HARMLESS["plain"], *DAMAGED.values()):
        tiff.check(path)
        other = tmp_path / "b.tif"
        other.write_bytes(data)
        if data == HARMLESS["plain"]:
            assert tiff.check(str(other)).rows == SIDE
        else:
            with pytest.raises(BadTile):
                named(str(other), tiff.check)


def test_strips_far_apart_take_no_memory(tmp_path):
    """A file with a hole of 1 TB, which takes no room on the disk."""
    reader = load("cpu.raw_numba")
    far = 4_000_000_000
    data = made({278: (LONG, [4]), 273: (LONG, [1000, far]), 279: (LONG, [160, 160])}, [])
    path = lay(tmp_path, data)
    with Path(path).open("r+b") as file:
        file.seek(1000)
        file.write(STRIP[:160])
        file.seek(far)
        file.write(STRIP[160:])
    right(reader([path], (1, 5), 255), expected(PIXELS.transpose(2, 0, 1)[None], (1, 5), 255))


# Packed tiles of others


def pack(folder):
    tiles = some(folder)
    packing.pack(folder)
    return tiles


def damaged(function, tiles):
    packing._open.cache_clear()
    with pytest.raises(packing.NotPacked, match=r"^the packed tiles in .* are damaged: pack them anew with impls"):
        function(tiles)


GOOD_INDEX = {"names": ["0.tif", "1.tif", "2.tif"], "stamps": [[1, 1]] * 3}
INDEXES = {
    "nested": '{"names": ' + "[" * 100_000,
    "a list": "[]",
    "names that are no texts": json.dumps({**GOOD_INDEX, "names": [0, 1, 2]}),
    "names that are lists": json.dumps({**GOOD_INDEX, "names": [[], [], []]}),
    "names in one text": json.dumps({**GOOD_INDEX, "names": "012"}),
    "names twice": json.dumps({**GOOD_INDEX, "names": ["0.tif"] * 3}),
    "names by name": json.dumps({**GOOD_INDEX, "names": {"0.tif": 0}}),
    "stamps in words": json.dumps({**GOOD_INDEX, "stamps": [["1", "1"]] * 3}),
    "stamps of three": json.dumps({**GOOD_INDEX, "stamps": [[1, 1, 1]] * 3}),
    "stamps that are true": json.dumps({**GOOD_INDEX, "stamps": [[True, 1]] * 3}),
    "a number of 5,000 digits": '{"names": [], "stamps": [' + "9" * 5000 + "]}",
    "two tiles": json.dumps({"names": ["0.tif", "1.tif"], "stamps": [[1, 1]] * 2}),
    "no text at all": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("kind", INDEXES)
def test_an_index_of_others_is_damaged_at_worst(kind, tmp_path):
    tiles = pack(tmp_path)
    said = INDEXES[kind]
    (tmp_path / "tiles.json").write_bytes(said if isinstance(said, bytes) else said.encode())
    damaged(load("cpu.memmap"), tiles)


def header(**form):
    form = {"descr": "<u2", "fortran_order": False, "shape": (3, 13, 64, 64)} | form
    data = repr(form).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(data).to_bytes(2, "little") + data


ARRAYS = {
    "of objects": header(descr="|O"),
    "of floats": header(descr="<f2"),
    "big end first": header(descr=">u2"),
    "by columns": header(fortran_order=True),
    "flat": header(shape=(3 * 13 * 64 * 64,)),
    "without tiles": header(shape=(0, 13, 64, 64)),
    "of negative sides": header(shape=(-3, -13, 64, 64)),
    "of exabytes": header(shape=(3, 1 << 40, 1 << 20, 64)),
    "nested": header()[:10] + b"(" * 118,
    "not an array": b"PK\x03\x04" + bytes(999),
    "a pickle": b"\x80\x04" + bytes(999),
}


@pytest.mark.parametrize("name", sorted(PACKED))
@pytest.mark.parametrize("kind", ARRAYS)
def test_an_array_of_others_is_damaged_at_worst(name, kind, tmp_path):
    tiles = pack(tmp_path)
    (tmp_path / "tiles.npy").write_bytes(ARRAYS[kind] + bytes(3 * 13 * 64 * 64 * 2))
    damaged(load(name), tiles)


@pytest.mark.parametrize("file", ["tiles.json", "tiles.npy"])
def test_packed_tiles_in_a_pipe_are_none(file, tmp_path):
    tiles = pack(tmp_path)
    (tmp_path / file).unlink()
    os.mkfifo(tmp_path / file)
    damaged(load("cpu.memmap"), tiles)


def test_packing_writes_through_no_link(tmp_path, monkeypatch):
    secret = tmp_path / "secret"
    secret.write_text("precious")
    shared = tmp_path / "shared"
    shared.mkdir()
    tiles = some(shared)
    for name in ("tiles.npy", "tiles.json"):
        (shared / f".{name}.{os.getpid()}").symlink_to(secret)
        (shared / name).symlink_to(secret)
    mask = os.umask(0o027)
    try:
        packing.pack(shared)
    finally:
        os.umask(mask)
    assert secret.read_text() == "precious"
    for name in ("tiles.npy", "tiles.json"):
        assert (shared / name).stat().st_mode & 0o777 == 0o640
    right(load("cpu.memmap")(tiles), expected([np.roll(EUROSAT, i, axis=2) for i in range(3)]))
    assert len(list(shared.iterdir())) == 7  # tiles, links, array and index: nothing is left half done


# Whose packed tiles

ME = os.geteuid()


@pytest.fixture
def owners(monkeypatch):
    """Users by the beginning of a path: what os.stat says is another's."""
    users, real = {}, os.stat

    def stat(path, *more, **keywords):
        found = real(path, *more, **keywords)
        user = next((user for begin, user in users.items() if os.fspath(path).startswith(begin)), None)
        return found if user is None else os.stat_result((*found[:4], user, *found[5:]), found_times(found))

    def found_times(found):
        return {name: getattr(found, name) for name in dir(found) if name.startswith("st_") and name not in PLACES}

    monkeypatch.setattr(os, "stat", stat)
    return users


PLACES = ("st_mode", "st_ino", "st_dev", "st_nlink", "st_uid", "st_gid", "st_size")


@pytest.mark.parametrize("name", sorted(PACKED))
def test_an_index_further_up_is_of_the_tiles_owner_or_ones_own(name, tmp_path, owners):
    function, below = load(name), tmp_path / "victim" / "data"
    below.mkdir(parents=True)
    tiles = some(below)
    packing.pack(tmp_path)
    packed, array = str(tmp_path / "tiles."), str(tmp_path / "tiles.npy")
    known = expected([np.roll(EUROSAT, i, axis=2) for i in range(3)])
    right(function(tiles), known)  # one's own
    for strangers in ({packed: ME + 1}, {array: ME + 1}):
        owners.clear()
        owners.update(strangers)
        with pytest.raises(
            packing.NotPacked, match=r"0\.tif is not packed: pack its folder once with impls.*pack\(folder\)$"
        ):
            function(tiles)
    owners.update({packed: ME + 1, str(below): ME + 1})
    right(function(tiles), known)  # the tiles' owner's
    owners.update({tiles[1]: ME + 2})
    owners.update({str(below): owners.pop(str(below))})  # the first that matches counts
    with pytest.raises(packing.NotPacked, match=r"0\.tif is not packed"):
        function(tiles)
    right(function([tiles[0], tiles[2]]), known[[0, 2]])


@pytest.mark.parametrize("name", sorted(PACKED))
def test_an_index_beside_the_tiles_counts_and_ones_own_further_up(name, tmp_path, owners):
    function, below = load(name), tmp_path / "data"
    below.mkdir()
    tiles = pack(below)
    owners[str(below / "tiles.")] = ME + 1
    known = expected([np.roll(EUROSAT, i, axis=2) for i in range(3)])
    right(function(tiles), known)
    (below / "more").mkdir()
    further = write(below / "more" / "0.tif", EUROSAT)
    with pytest.raises(packing.NotPacked, match=r"more/0\.tif is not packed: pack its folder once"):
        function([further])
    packing.pack(tmp_path)
    right(function([further]), expected([EUROSAT]))
    right(function([further, *tiles]), np.concatenate([expected([EUROSAT]), known]))
