"""Paths of tiles that are not regular files, or not the intended ones."""

import os
import socket
from pathlib import Path

import pytest
from hostile_tiles import DAMAGED, HARMLESS, LONG, PIXELS, READERS, SIDE, SKIMAGE, STRIP, lay, made
from tile_batches import NAMES, PACKED, expected, load, right

from impls.read_batch import packing, tiff
from impls.read_batch.arguments import BadTile, named


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


@pytest.mark.parametrize("name", [name for name in READERS if name != "cpu.rasterio"])  # GDAL opens files by their names
def test_a_tile_is_opened_once(name, tmp_path, monkeypatch):
    function, opened = load(name), []
    tiles = [lay(tmp_path, made())]
    function(tiles, (1, 5), 255)
    monkeypatch.setattr(os, "open", lambda *given, real=os.open: opened.append(given[0]) or real(*given))
    monkeypatch.setattr("builtins.open", lambda *given, real=open, **more: opened.append(given[0]) or real(*given, **more))
    right(function(tiles, (1, 5), 255), expected(PIXELS.transpose(2, 0, 1)[None], (1, 5), 255))
    assert [path for path in opened if path in tiles] == tiles


def test_strips_far_apart_take_no_memory(tmp_path):
    """A file with a hole of 1 TB, which takes no space on the disk."""
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
