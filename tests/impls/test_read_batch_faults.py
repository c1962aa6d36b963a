"""read_batch reports wrong calls and tiles in the same words with every reader; and packing tiles."""

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
from tile_batches import EUROSAT, NAMES, PACKED, RANDOM, each, expected, load, read, right, some, tifffile, write

import impls
from impls.read_batch import packing
from impls.read_batch.arguments import BadTile, NoSuchBand

pytestmark = pytest.mark.filterwarnings("ignore:Dataset has no geotransform", "ignore:This DataLoader will create")


@pytest.fixture(scope="module")
def available():
    found = {}
    for name in NAMES:
        try:
            found[name] = impls.load(name, "read_batch")
        except impls.Unavailable:
            continue
    return found


# The same mistake gives the same error


def outcome(function, *arguments, **keywords):
    """The type and text of a call's error, or the batch's bytes."""
    try:
        return function(*arguments, **keywords).tobytes()
    except Exception as error:
        return type(error), str(error)


TILE = ["a.tif"]
BAD = {
    "no tiles": (([],), {}, ValueError, "tiles must name at least one file"),
    "one path": (("a.tif",), {}, TypeError, "tiles must be a list of paths, not str"),
    "a Path": ((Path("a.tif"),), {}, TypeError, "tiles must be a list of paths, not P"),
    "no list": ((None,), {}, TypeError, "tiles must be a list of paths, not NoneType"),
    "a generator": ((iter(TILE),), {}, TypeError, "tiles must be a list of paths, not list_iterator"),
    "an array": ((np.array(TILE),), {}, TypeError, "tiles must be a list of paths, not ndarray"),
    "numbers": (([1],), {}, TypeError, "tiles must hold paths, not 1"),
    "bytes": (([b"a.tif"],), {}, TypeError, "tiles must hold paths, not b'a.tif'"),
    "no bands": ((TILE, ()), {}, ValueError, "bands must name at least one band, not ()"),
    "band 0": ((TILE, (4, 0)), {}, ValueError, "bands must be at least 1, not (4, 0): the first band is 1"),
    "one band": ((TILE, 4), {}, TypeError, "bands must be a tuple of integers, not 4"),
    "half a band": ((TILE, (1.5,)), {}, TypeError, "bands must be a tuple of integers, not (1.5,)"),
    "bands in words": ((TILE, "432"), {}, TypeError, "bands must be a tuple of integers, not '432'"),
    "repeated": ((TILE, (4, 3, 4)), {}, ValueError, "bands must name each band once, not (4, 3, 4)"),
    "scale 0": ((TILE,), {"scale": 0}, ValueError, "scale must be a positive number, not 0"),
    "scale -1": ((TILE,), {"scale": -1.0}, ValueError, "scale must be a positive number, not -1.0"),
    "scale nan": ((TILE,), {"scale": float("nan")}, ValueError, "scale must be a positive number, not nan"),
    "scale inf": ((TILE,), {"scale": float("inf")}, ValueError, "scale must be from 1.18e-38 to 3.4e+38, not inf"),
    "scale tiny": ((TILE,), {"scale": 1e-300}, ValueError, "scale must be from 1.18e-38 to 3.4e+38, not 1e-300"),
    "scale huge": ((TILE,), {"scale": 10**400}, ValueError, "scale must be from 1.18e-38 to 3.4e+38, not 1000"),
    "scale in words": ((TILE,), {"scale": "4000"}, TypeError, "scale must be a positive number, not '4000'"),
    "no workers": ((TILE,), {"workers": 0}, ValueError, "workers must be a positive integer, not 0"),
    "half a worker": ((TILE,), {"workers": 1.5}, TypeError, "workers must be a positive integer, not 1.5"),
    "nothing": ((), {}, TypeError, "read_batch() missing 1 required positional argument: 'tiles'"),
    "misspelt": ((TILE,), {"band": (1,)}, TypeError, "'band'"),
}


@pytest.mark.parametrize("bad", BAD)
def test_the_same_mistake_gives_the_same_error(bad, available):
    arguments, keywords, error, text = BAD[bad]
    outcomes = {outcome(function, *arguments, **keywords) for function in available.values()}
    ((kind, said),) = outcomes
    assert kind is error
    assert text in said


def test_unsupported_gives_the_same_error_as_the_call(available):
    for arguments, keywords, error, text in BAD.values():
        if arguments and arguments[0] is TILE and "band" not in keywords:
            for function in available.values():
                with pytest.raises(error) as caught:
                    function.unsupported((1, 13, 64, 64), *arguments[1:], **keywords)
                assert text in str(caught.value)


WHOLE = "tile {} is damaged, cut short, or not a TIFF"
UNLIKE = "tile {0} has {1}, unlike the first tile, {2}, which has 13 bands of 64x64 uint16"


def cut(path, keep):
    """The first bytes of a whole tile."""
    write(path, EUROSAT)
    path.write_bytes(path.read_bytes()[:keep])


FAULTS = {
    "missing": (lambda path: None, FileNotFoundError, "tile {} does not exist"),
    "empty": (lambda path: path.write_bytes(b""), BadTile, WHOLE),
    "text": (lambda path: path.write_text("a tile\n" * 999), BadTile, WHOLE),
    "a picture": (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(999)), BadTile, WHOLE),
    "a folder": (lambda path: path.mkdir(), BadTile, WHOLE),
    "a few bytes": (lambda path: cut(path, 6), BadTile, WHOLE),
    "cut in the header": (lambda path: cut(path, 60), BadTile, WHOLE),
    "cut behind the header": (lambda path: cut(path, 2000), BadTile, WHOLE),
    "cut in half": (lambda path: cut(path, 50_000), BadTile, WHOLE),
    "cut by a byte": (lambda path: cut(path, -1), BadTile, WHOLE),
    "12 bands": (lambda path: write(path, EUROSAT[:12]), BadTile, UNLIKE.format("{0}", "12 bands of 64x64 uint16", "{1}")),
    "14 bands": (
        *(lambda path: write(path, EUROSAT[[0, *range(13)]]), BadTile),
        UNLIKE.format("{0}", "14 bands of 64x64 uint16", "{1}"),
    ),
    "smaller": (
        *(lambda path: write(path, EUROSAT[:, :32, :32]), BadTile),
        UNLIKE.format("{0}", "13 bands of 32x32 uint16", "{1}"),
    ),
    "uint8": (
        *(lambda path: write(path, EUROSAT.astype("u1")), BadTile),
        UNLIKE.format("{0}", "13 bands of 64x64 uint8", "{1}"),
    ),
    "float32": (
        *(lambda path: write(path, EUROSAT.astype("f4")), BadTile),
        "tile {} has pixels of float32, not uint8 or uint16",
    ),
    "int16": (
        *(lambda path: write(path, EUROSAT.astype("i2")), BadTile),
        "tile {} has pixels of int16, not uint8 or uint16",
    ),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_tile_is_named_in_the_same_words(fault, workers, available, tmp_path):
    make, error, text = FAULTS[fault]
    tiles = [*some(tmp_path), str(tmp_path / "3.tif"), str(tmp_path / "4.tif")]
    make(tmp_path / "3.tif")
    if fault != "missing":  # of several the first is named; the packed tiles lack what is missing, and have the other
        write(tmp_path / "4.tif", EUROSAT[:1])
    for function in available.values():
        assert outcome(read, function, tiles, workers=workers) == (error, text.format(tiles[3], tiles[0])), function.name


@pytest.mark.parametrize("fault", [fault for fault, (_, _, text) in FAULTS.items() if "unlike" not in text])
def test_a_bad_first_tile_too(fault, available, tmp_path):
    make, error, text = FAULTS[fault]
    tiles = [str(tmp_path / "0.tif"), write(tmp_path / "1.tif", EUROSAT)]
    make(tmp_path / "0.tif")
    for function in available.values():
        assert outcome(read, function, tiles) == (error, text.format(tiles[0])), function.name


def test_bands_that_tiles_do_not_have(available, tmp_path):
    tiles = some(tmp_path)
    said = f"bands must be from 1 to 13, the bands of tile {tiles[0]}, not (4, 14)"
    for function in available.values():
        assert outcome(read, function, tiles, (4, 14)) == (NoSuchBand, said), function.name
        with pytest.raises(NoSuchBand, match="from 1 to 13, the bands of the tiles, not"):
            function.unsupported((3, 13, 64, 64), (4, 14))


@each
def test_what_does_not_fit_in_memory_is_refused(name, tmp_path, monkeypatch):
    function, tiles = load(name), some(tmp_path, 1, RANDOM.integers(0, 9, (2, 4096, 4096), "u1"), rows=4096)
    monkeypatch.setattr(impls.checks, "free_memory", lambda: 10**8)
    with pytest.raises(MemoryError, match=r"^a batch of shape \(5, 1, 4096, 4096\) would take 335,544,320 bytes"):
        read(function, tiles * 5, (1,))


def test_no_process_outlives_a_bad_tile(tmp_path):
    function, tiles = load("cpu.torch_dataloader"), some(tmp_path)
    for _ in range(3):
        with pytest.raises(FileNotFoundError) as caught:
            function([*tiles, str(tmp_path / "9.tif")], workers=2)
        assert multiprocessing.active_children() == []
        assert str(caught.value).endswith("9.tif does not exist")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"bigtiff": True}, "a BigTIFF: only TIFF is supported"),
        ({"tile": (16, 16)}, "stored in blocks: only strips are supported"),
        ({"compression": "lzma"}, "compression=lzma: only compression=none is supported"),
    ],
)
def test_what_the_raw_reader_leaves_to_others(how, said, tmp_path):
    path = str(tmp_path / "a.tif")
    tifffile.imwrite(path, EUROSAT.transpose(1, 2, 0), photometric="minisblack", planarconfig="contig", **how)
    assert outcome(load("cpu.raw_numba"), [path]) == (NotImplementedError, f"tile {path}: {said}")
    if "compression" not in how:
        right(read(load("cpu.tifffile"), [path]), expected([EUROSAT]))


# Packing


@pytest.mark.parametrize("name", sorted(PACKED))
def test_tiles_are_packed_once_and_again_when_they_change(name, tmp_path, monkeypatch):
    function = load(name)
    for folder in ("Forest", "River"):
        (tmp_path / folder).mkdir()
        some(tmp_path / folder, 2)
    tiles = [str(path) for path in sorted(tmp_path.rglob("*.tif"))]
    with pytest.raises(packing.NotPacked, match=r"0\.tif is not packed: pack its folder once with impls.*pack\(folder\)$"):
        function(tiles)
    assert packing.pack(tmp_path) == tmp_path / "tiles.npy"
    right(function(tiles[::2]), expected([EUROSAT] * 2))
    monkeypatch.chdir(tmp_path / "River")
    right(function(["0.tif", "../Forest/0.tif"]), expected([EUROSAT] * 2))
    new = write(tmp_path / "River" / "2.tif", EUROSAT)
    with pytest.raises(packing.NotPacked, match=r"2\.tif is not packed: pack its folder again with .*pack\('/.*'\)$"):
        function([*tiles, new])
    write(tiles[3], EUROSAT[::-1])
    with pytest.raises(packing.NotPacked, match=r"1\.tif is newer than the packed tiles: pack its folder again"):
        function(tiles)
    packing.pack(tmp_path)
    right(function([tiles[0], tiles[3], new]), expected([EUROSAT, EUROSAT[::-1], EUROSAT]))
    (tmp_path / "tiles.npy").write_bytes((tmp_path / "tiles.npy").read_bytes()[:-1])
    packing._open.cache_clear()  # as a new process finds it
    with pytest.raises(packing.NotPacked, match=r"^the packed tiles in .* are damaged: pack them again with impls"):
        function(tiles)


def test_a_folder_without_tiles_cannot_be_packed(tmp_path):
    with pytest.raises(ValueError, match=r"^folder .* holds no tiles: no file below it is called \.tif$"):
        packing.pack(tmp_path)


def test_packing_that_fails_leaves_nothing_half_done(tmp_path):
    packing.pack(Path(some(tmp_path)[0]).parent)
    cut(tmp_path / "9.tif", 60)
    with pytest.raises(BadTile, match=r"9\.tif is damaged"):
        packing.pack(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".tif") == ["tiles.npy"]
