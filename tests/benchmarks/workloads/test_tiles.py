"""Batches of tiles as a task: correct readers are timed, with and without the system's cache; a wrong one is not."""

import ctypes
import dataclasses
import functools
import mmap
import os
from pathlib import Path

import numpy as np
import pytest

import impls
from benchmarks.errors import Skip, WrongAnswer
from benchmarks.harness import cell
from benchmarks.workloads import eurosat, tiles
from benchmarks.workloads.tiles import Batch, ColdPages, ReadBatch

NAMES = impls.names("read_batch")


@functools.cache
def load(name):
    try:
        return impls.load(name, "read_batch")
    except impls.Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True, scope="module")
def few(tmp_path_factory):
    """Forty tiles in place of a thousand."""
    pytest.importorskip("tifffile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONVBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("CONVBENCH_EUROSAT", raising=False)
        patch.setattr(tiles, "MAX_TILES", 40)
        yield


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_it_is_timed_and_judged_again(name, workers):
    made = ReadBatch("read_batch", Batch(7, workers)).check(load(name), {})
    made.block(2)
    assert made.verify(made.block.output)["worst"] <= 1
    cold = ColdPages(made.call)
    assert cold(2) > 0
    assert np.array_equal(cold.output, made.block.output)


LIBRARY = ctypes.CDLL(None, use_errno=True)


def in_memory(path):
    """How many pages of a file the system has in its cache: mincore(2)."""
    with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        array = np.frombuffer(mapped, np.uint8)
        found = np.zeros(-(-array.size // mmap.PAGESIZE), np.uint8)
        address, size = ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.size)
        assert LIBRARY.mincore(address, size, ctypes.c_void_p(found.ctypes.data)) == 0
        del array  # or the mapping stays open
    return int((found & 1).sum())


@pytest.mark.parametrize("name", NAMES)
def test_cold_is_cold(name):
    """Also for a process that keeps the file mapped."""
    made = ReadBatch("read_batch", Batch(7, 1)).check(load(name), {})
    cold = ColdPages(made.call)
    (never_mapped := Path(cold.paths[0]).with_suffix(".bin")).write_bytes(bytes(1 << 16))
    os.sync()
    tiles._drop(never_mapped)
    if in_memory(never_mapped):
        pytest.skip("this file system keeps its files in memory")
    seen = []
    cold.call = lambda: seen.append([in_memory(path) for path in cold.paths])
    cold(1)
    assert sum(seen[0]) == 0


def broken(change):
    right = load("cpu.tifffile")
    return dataclasses.replace(right, function=lambda tiles, workers: change(right, tiles, workers))


FAULTS = {
    "another band": lambda read, tiles, workers: read(tiles, bands=(4, 3, 1), workers=workers),
    "another order": lambda read, tiles, workers: read(tiles, workers=workers)[:, ::-1],
    "another scale": lambda read, tiles, workers: read(tiles, scale=4001.0, workers=workers),
    "tiles that changed places": lambda read, tiles, workers: read(tiles[::-1], workers=workers),
    "one tile twice": lambda read, tiles, workers: read([*tiles[:-1], tiles[0]], workers=workers),
    "not clipped": lambda read, tiles, workers: read(tiles, scale=1.0, workers=workers) * 2,
    "not a number": lambda read, tiles, workers: read(tiles, workers=workers) * np.float32(np.nan),
    "float64": lambda read, tiles, workers: read(tiles, workers=workers).astype(float),
    "a list": lambda read, tiles, workers: list(read(tiles, workers=workers)),
    "transposed": lambda read, tiles, workers: read(tiles, workers=workers).swapaxes(2, 3),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_batch_is_found(fault):
    with pytest.raises(WrongAnswer):
        ReadBatch("read_batch", Batch(5)).check(broken(FAULTS[fault]), {"pool": 1})


def test_a_batch_that_is_remembered_is_found():
    kept = []

    def remembered(read, tiles, workers):
        kept.append(read(tiles, workers=workers))
        return kept[0]

    made = ReadBatch("read_batch", Batch(5)).check(broken(remembered), {"pool": 1})
    made.block(1)
    with pytest.raises(WrongAnswer, match="of other tiles, tile "):
        made.verify(made.block.output)


def test_a_users_own_folder(tmp_path, monkeypatch):
    eurosat.make(tmp_path, 41, seed=1)
    monkeypatch.setenv("CONVBENCH_EUROSAT", str(tmp_path))
    made = ReadBatch("read_batch", Batch(3)).check(load("cpu.rasterio"), {"pool": 1})
    assert str(tmp_path) in made.call.args[0][0]
    made.block(1)
    made.verify(made.block.output)
    with pytest.raises(Skip, match=r"^no input: tile .* is not packed: pack its folder once with "):
        ReadBatch("read_batch", Batch(3)).check(load("cpu.memmap"), {"pool": 1})
    assert not list(tmp_path.glob("tiles.*"))  # nothing is packed there unasked


def test_a_folder_with_too_few_is_a_reason_to_skip(tmp_path, monkeypatch):
    eurosat.make(tmp_path, 4)
    monkeypatch.setenv("CONVBENCH_EUROSAT", str(tmp_path))
    with pytest.raises(Skip, match=r"no input: folder .* holds 4 tiles, not 41"):
        cell.prepare("cpu.rasterio", Batch(3), operation="read_batch")


def test_a_problem_is_its_label():
    assert Batch.parse("n32b13h64w64") == Batch(32)
    assert Batch(32).label == "n32b13h64w64"
    with pytest.raises(ValueError, match="one looks like n32b13h64w64"):
        Batch.parse("n32")
    described = ReadBatch("read_batch", Batch(2)).describe()
    assert (described["output"], described["bytes"]) == ([2, 3, 64, 64], 2 * 3 * 64 * 64 * 6)
