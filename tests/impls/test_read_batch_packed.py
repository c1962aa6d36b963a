"""Packed tiles that other users have written or changed."""

import json
import os

import numpy as np
import pytest
from tile_batches import EUROSAT, PACKED, expected, load, right, some, write

from impls.read_batch import packing


def pack(folder):
    tiles = some(folder)
    packing.pack(folder)
    return tiles


def damaged(function, tiles):
    packing._open.cache_clear()
    with pytest.raises(packing.NotPacked, match=r"^the packed tiles in .* are damaged: pack them again with impls"):
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
def test_an_index_further_up_must_belong_to_the_tiles_owner_or_this_user(name, tmp_path, owners):
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
def test_an_index_beside_the_tiles_counts_and_this_users_further_up(name, tmp_path, owners):
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
