"""The tiles that are read: made the same everywhere, plausible, and found where there are real ones."""

import hashlib
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from benchmarks.workloads import eurosat

tifffile = pytest.importorskip("tifffile", reason="tiles are made with tifffile")


def test_made_tiles_look_like_eurosat(tmp_path):
    paths = eurosat.make(tmp_path, 23)
    assert len(set(paths)) == 23
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(eurosat.CLASSES)
    assert paths[0] == tmp_path / "AnnualCrop" / "AnnualCrop_1.tif"
    assert paths[21] == tmp_path / "Forest" / "Forest_3.tif"
    for i, path in enumerate(paths):
        with tifffile.TiffFile(path) as file:
            page = file.pages.first
            assert (page.shape, page.dtype, page.compression, page.planarconfig) == ((64, 64, 13), "uint16", 1, 1)
            assert (page.rowsperstrip, len(file.pages), file.byteorder) == (4, 1, "<")
            pixels = page.asarray()
        assert np.array_equal(pixels, eurosat.content(i))
        assert pixels.min() >= 0
        assert pixels.max() < 6000
        # Neighbours are alike, bands and classes are not.
        assert np.abs(np.diff(pixels.astype(int), axis=0)).mean() < 0.2 * pixels.std()
    means = np.array([eurosat.content(i).mean(axis=(0, 1)) for i in range(10)])
    assert means.std(axis=0).min() > 100
    assert means.std(axis=1).min() > 100


def test_made_tiles_are_the_same_everywhere(tmp_path):
    known = [eurosat.content(i, seed) for i, seed in ((0, 0), (999, 0), (0, 1))]
    assert [hashlib.sha256(pixels.tobytes()).hexdigest()[:8] for pixels in known] == ["fec63caf", "67396e20", "2c5f43b4"]
    few, many = eurosat.make(tmp_path / "few", 3), eurosat.make(tmp_path / "many", 12)
    assert [path.read_bytes() for path in few] == [path.read_bytes() for path in many[:3]]
    times = [path.stat().st_mtime_ns for path in few]
    more = eurosat.make(tmp_path / "few", 5)
    assert [path.stat().st_mtime_ns for path in more[:3]] == times


def test_made_tiles_are_written_through_no_link(tmp_path, monkeypatch):
    secret = tmp_path / "secret"
    secret.write_text("precious")
    (tmp_path / "AnnualCrop").mkdir()
    (tmp_path / "AnnualCrop" / f"AnnualCrop_1.{os.getpid()}").symlink_to(secret)
    mask = os.umask(0o027)
    try:
        (path,) = eurosat.make(tmp_path, 1)
    finally:
        os.umask(mask)
    assert (secret.read_text(), path.is_symlink(), path.stat().st_mode & 0o777) == ("precious", False, 0o640)
    monkeypatch.setattr(eurosat, "_write", lambda file, _: file.write(b"II*") and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        eurosat.make(tmp_path, 2)
    assert list((tmp_path / "Forest").iterdir()) == []


def test_gdal_knows_where_they_lie(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with rasterio.open(eurosat.make(tmp_path, 1)[0]) as tile:
            assert (tile.count, tile.shape, tile.dtypes[0], tile.interleaving.name) == (13, (64, 64), "uint16", "pixel")
            assert (tile.crs.to_epsg(), tile.res) == (32632, (10.0, 10.0))


def test_real_tiles_are_taken_where_there_are_some(tmp_path, monkeypatch):
    monkeypatch.setenv("CONVBENCH_CACHE", str(tmp_path / "cache"))
    made = eurosat.tiles(4)
    assert all(Path(tmp_path, "cache") in path.parents for path in made)
    assert eurosat.tiles(4) == made != eurosat.tiles(4, seed=1)
    real = eurosat.make(tmp_path / "EuroSAT", 12)
    monkeypatch.setenv("CONVBENCH_EUROSAT", str(tmp_path / "EuroSAT"))
    assert eurosat.tiles(5) == sorted(real)[:5]
    with pytest.raises(ValueError, match=r"^folder .*EuroSAT, which CONVBENCH_EUROSAT names, holds 12 tiles, not 13$"):
        eurosat.tiles(13)
    with pytest.raises(ValueError, match="holds 12 tiles, not 13"):
        eurosat.labelled(13)
    monkeypatch.setenv("CONVBENCH_EUROSAT", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"^folder .*nowhere holds no tiles: no file below it is called \.tif$"):
        eurosat.tiles(1)


@pytest.mark.parametrize("real", [False, True])
def test_labelled_tiles_come_in_turn_of_each_class(real, tmp_path, monkeypatch):
    monkeypatch.setenv("CONVBENCH_CACHE", str(tmp_path / "cache"))
    if real:
        eurosat.make(tmp_path / "EuroSAT", 32)
        monkeypatch.setenv("CONVBENCH_EUROSAT", str(tmp_path / "EuroSAT"))
    found = eurosat.labelled(25)
    assert found.names == eurosat.CLASSES
    assert list(found.labels) == [i % 10 for i in range(25)]
    assert found.labels.dtype == "int64"
    assert len(set(found.tiles)) == 25
    assert [path.parent.name for path in found.tiles] == [found.names[label] for label in found.labels]


def test_a_folder_without_ten_classes_is_named(tmp_path, monkeypatch):
    eurosat.make(tmp_path, 9)
    monkeypatch.setenv("CONVBENCH_EUROSAT", str(tmp_path))
    with pytest.raises(ValueError, match=r"^folder .*, which CONVBENCH_EUROSAT names, holds tiles in 9 folders, not 10$"):
        eurosat.labelled(5)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_split_has_a_fifth_of_each_class(seed):
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(10), [100, *[20] * 8, 5]))
    train, test = eurosat.split(labels, seed=seed)
    assert sorted([*train, *test]) == list(range(len(labels)))
    assert list(np.bincount(labels[test])) == [20, *[4] * 8, 1]
    assert np.array_equal(test, eurosat.split(labels, seed=seed)[1])
    assert not np.array_equal(test, eurosat.split(labels, seed=seed + 2)[1])
