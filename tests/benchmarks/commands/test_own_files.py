"""A user's own files: every reader is judged by their content, and a missing or damaged one is one error that names it."""

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
from cases import case
from damage import jpegs as damaged_jpegs
from damage import tiffs as damaged_tiffs
from hostile_tiles import DAMAGED, HARMLESS, lay
from hypothesis import given, settings
from hypothesis import strategies as st
from jpegs import GOOD, RANDOM, THUMBNAIL, Image, claiming, encoded
from tile_batches import NAMES, some

import impls
from benchmarks.commands import own_files
from benchmarks.errors import Skip, WrongAnswer
from benchmarks.workloads.jpegs import Preprocess
from benchmarks.workloads.tiles import ReadBatch

# Tiles


def judged(problem, names=NAMES):
    """The result of each implementation: its worst error, or why it is skipped."""
    found = {}
    for name in names:
        task = ReadBatch("read_batch", problem)
        try:
            function = impls.load(name, "read_batch")
            if reason := task.unsupported(function):
                raise Skip(reason)
            made = task.check(function, {"pool": 1})
            made.block(1)
            found[name] = made.verify(made.block.output)["worst"]
        except (Skip, impls.Unavailable) as reason:
            found[name] = str(reason)
    return found


NUMBERS = np.random.default_rng(0)
# Pixels, how they are written, the bands that are asked for, and those that are read.
FORMS = {
    "satellite": (NUMBERS.integers(0, 9000, (13, 20, 30)).astype("u2"), {}, None, (4, 3, 2)),
    "colours": (NUMBERS.integers(0, 256, (3, 20, 30)).astype("u1"), {}, None, (1, 2, 3)),
    "bands apart": (NUMBERS.integers(0, 9000, (5, 20, 30)).astype("u2"), {"interleaving": "band"}, (5, 1), (5, 1)),
    "one band": (NUMBERS.integers(0, 9000, (1, 20, 20)).astype("u2"), {}, None, (1,)),
    "deflated": (NUMBERS.integers(0, 9, (4, 20, 20)).astype("u2"), {"compression": "deflate"}, None, (4, 3, 2)),
    "black": (np.zeros((4, 20, 20), "u2"), {}, None, (4, 3, 2)),
}


@pytest.mark.parametrize("form", FORMS)
def test_tiles_of_every_kind(tmp_path, form):
    pixels, written, bands, chosen = FORMS[form]
    some(tmp_path, 3, pixels, **written)
    problem = own_files.tiles(str(tmp_path), 32, bands)
    count, height, width = pixels.shape
    assert (problem.n, problem.bands, problem.size) == (3, chosen, pixels.shape)
    assert problem.label == f"n3b{count}h{height}w{width}"
    assert ReadBatch("read_batch", problem).describe()["output"] == [3, len(chosen), height, width]
    found = judged(problem)
    timed = {name for name, worst in found.items() if not isinstance(worst, str)}
    assert {"cpu.rasterio", "cpu.tifffile"} <= timed
    assert all(found[name] <= 1 for name in timed)
    assert all(words for words in found.values() if isinstance(words, str))
    assert not list(tmp_path.glob("tiles.*"))  # nothing is packed unasked


def test_the_first_tiles_by_name_whatever_their_suffix(tmp_path):
    (tmp_path / "folder.tif").mkdir()
    for path in some(tmp_path, 3):
        Path(path).rename(Path(path).with_suffix(".TIFF" if "1" in Path(path).name else ".tif"))
    assert [path.name for path in own_files.tiles(str(tmp_path), 2, None).every()] == ["0.tif", "1.TIFF"]


def test_a_wrong_reader_is_found(tmp_path):
    some(tmp_path, 3)
    right = impls.load("cpu.tifffile", "read_batch")
    other = dataclasses.replace(right, function=lambda tiles, **settings: right(tiles[::-1], **settings))
    with pytest.raises(WrongAnswer, match="tile 0, band 4"):
        ReadBatch("read_batch", own_files.tiles(str(tmp_path), 3, None)).check(other, {"pool": 1})


@pytest.mark.parametrize(
    ("count", "bands", "words"), [(1025, None, "at most 1024 tiles, not 1025"), (3, [14], "from 1 to 13")]
)
def test_tiles_that_are_not_there(tmp_path, count, bands, words):
    some(tmp_path, 2)
    with pytest.raises(ValueError, match=words):
        own_files.tiles(str(tmp_path), count, bands)


def test_folders_that_are_none(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name, words in {"none": "does not exist", "empty": "holds no tiles", "file": "is not a folder"}.items():
        with pytest.raises(ValueError, match=f"^(folder )?{tmp_path}/{name} {words}"):
            own_files.tiles(str(tmp_path / name), 3, None)


def test_damaged_tiles_are_named(tmp_path):
    for word, data in DAMAGED.items():
        path = lay(tmp_path, data)
        with case(word), pytest.raises(ValueError, match=f"^tile {path}") as caught:
            own_files.tiles(str(tmp_path), 3, None)
        assert "\n" not in str(caught.value)
    for word, data in HARMLESS.items():
        lay(tmp_path, data)
        with case(word):
            assert judged(own_files.tiles(str(tmp_path), 3, None), ["cpu.tifffile"])["cpu.tifffile"] <= 1


def test_any_damage_is_one_error_or_a_tile_that_is_read(tmp_path):
    @settings(max_examples=60, deadline=None)
    @given(damaged_tiffs())
    def named_or_read(data):
        path = lay(tmp_path, data)
        try:
            problem = own_files.tiles(str(tmp_path), 3, None)
        except (ValueError, MemoryError) as error:
            said = str(error)
        else:
            said = f"tile {path}"
            assert problem.values(problem.every(), 0).shape == (len(problem.bands), *problem.size[1:])
        assert said.count(f"tile {path}") == 1

    named_or_read()


def test_what_is_no_tile_of_the_batch_is_named(tmp_path):
    first = some(tmp_path, 1)[0]
    more = tmp_path / "1.tif"
    os.mkfifo(more)
    with pytest.raises(ValueError, match=f"^tile {more} is damaged"):
        own_files.tiles(str(tmp_path), 3, None)
    more.unlink()
    (tmp_path / "other").mkdir()
    some(tmp_path / "other", 1, np.zeros((4, 9, 9), "u2"))
    with pytest.raises(ValueError, match=f"^tile .*/other/0.tif has 4 bands of 9x9 uint16, unlike the first tile, {first}"):
        own_files.tiles(str(tmp_path), 3, None)


# A picture


PHOTO = Image.fromarray(RANDOM.integers(0, 256, (6, 9, 3)).astype("u1")).resize((90, 60))
TURNED = Image.Exif()
TURNED[0x0112] = 6  # by a quarter, which no decoder here minds
PICTURES = {
    "colours": encoded(np.asarray(PHOTO)),
    "a camera's": encoded(np.asarray(PHOTO), quality=80, subsampling=2, exif=TURNED.tobytes()),
    "progressive": encoded(np.asarray(PHOTO), progressive=True),
    "grey": encoded(np.asarray(PHOTO)[..., 0]),
    "with a thumbnail": THUMBNAIL,
}


@pytest.mark.parametrize("region", [None, (2, 1, 5, 6)])
@pytest.mark.parametrize("kind", PICTURES)
def test_pictures_of_every_kind(tmp_path, kind, region):
    (tmp_path / "a.jpg").write_bytes(PICTURES[kind])
    problem = own_files.picture(str(tmp_path / "a.jpg"), region, 16)
    assert problem.places() == [region or (0, 0, problem.height, problem.width)]
    timed = 0
    for name in impls.names("preprocess", "cpu"):
        with case(name):
            task = Preprocess("preprocess", problem)
            try:
                function = impls.load(name, "preprocess")
            except impls.Unavailable:
                continue
            assert task.unsupported(function) is None
            made = task.check(function, {"pool": 1})
            made.block(1)
            made.verify(made.block.output)
            timed += 1
    assert timed


BAD = {
    "empty": (b"", "is not a JPEG"),
    "text": (b"a line\n", "is not a JPEG"),
    "cut short": (GOOD[:200], "is cut short"),
    "cut at the end": (GOOD[:-40], "is cut short|is damaged"),
    "too large": (claiming(65000, 65000), "a.jpg .*65000"),
    "no scan": (GOOD[: GOOD.index(b"\xff\xda")] + b"\xff\xd9", "is damaged|is cut short|has no "),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_damaged_picture_is_named(tmp_path, kind):
    data, words = BAD[kind]
    (tmp_path / "a.jpg").write_bytes(data)
    with pytest.raises(ValueError, match=words) as caught:
        own_files.picture(str(tmp_path / "a.jpg"), None, 16)
    assert str(caught.value).startswith(f"{tmp_path}/a.jpg ")


def test_pictures_that_are_none(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, words in {"none": "does not exist", "pipe": "is not a file", ".": "is not a file"}.items():
        with pytest.raises(ValueError, match=words):
            own_files.picture(str(tmp_path / name), None, 16)
    (tmp_path / "a.jpg").write_bytes(GOOD)
    for region in ((0, 0, 9, 1), (0, 0, 0, 1), (7, 0, 2, 1), (0, 10, 1, 1)):
        with case(*region), pytest.raises(ValueError, match=r"lies outside of .*a.jpg, which has 8x10 pixels"):
            own_files.picture(str(tmp_path / "a.jpg"), region, 16)


def test_any_damage_is_one_error_or_a_picture_that_is_read(tmp_path):
    @settings(max_examples=40, deadline=None)
    @given(damaged_jpegs(), st.integers(1, 32))
    def named_or_read(data, size):
        path = tmp_path / "a.jpg"
        path.write_bytes(data)
        try:
            problem = own_files.picture(str(path), None, size)
        except (ValueError, MemoryError) as error:
            said = str(error)
        else:
            said = str(path)
            assert Preprocess("preprocess", problem).describe()["output"] == [1, problem.height, problem.width]
        assert said.startswith(str(path))

    named_or_read()
