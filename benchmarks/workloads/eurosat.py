"""The tiles of read_batch: EuroSAT's if there is a folder of them, otherwise generated, the same on every machine.

EuroSAT: Helber et al., arXiv 1709.00029; 27,000 tiles of Sentinel-2 in ten folders of one class each, 13 bands of 64x64
pixels in uint16, not compressed, a pixel's bands side by side. CONVBENCH_EUROSAT names its folder.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import secrets
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from benchmarks.errors import Missing
from benchmarks.workloads.inputs import cache_folder

CLASSES = (
    *("AnnualCrop", "Forest", "HerbaceousVegetation", "Highway", "Industrial"),
    *("Pasture", "PermanentCrop", "Residential", "River", "SeaLake"),
)
BANDS, SIDE = 13, 64
COARSE = 5  # points along a side between which a field is interpolated
BRIGHTEST, NOISE = 5000, 60  # of a field's points, and the noise's deviation: values of 0 to about 6000, as Sentinel-2 has
ROWS = 4  # of a strip: what GDAL chooses, strips of at most 8 KiB
DOUBLE, SHORT = 12, 3  # TIFF's names for types
GEOTIFF = (
    (33550, DOUBLE, 3, (10.0, 10.0, 0.0), True),  # metres to a pixel
    (33922, DOUBLE, 6, (0.0, 0.0, 0.0, 500_000.0, 5_400_000.0, 0.0), True),  # where the first pixel's corner lies
    # Projected, pixels are areas, UTM zone 32 north: https://docs.ogc.org/is/19-008r4/19-008r4.html
    (34735, SHORT, 16, (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32632), True),
)


class Labelled(NamedTuple):
    """Tiles in turn of each class, the class of each as its place among the names (N,) in int64, and the names."""

    tiles: list[Path]
    labels: np.ndarray
    names: tuple[str, ...]


def labelled(count: int) -> Labelled:
    """The first `count` tiles in turn of each class, which is the name of their folder.

    Raises ValueError if the folder that CONVBENCH_EUROSAT names has too few tiles or not ten classes.
    """
    found = tiles(count)
    if folder := os.environ.get("CONVBENCH_EUROSAT"):
        by_class = [list(group) for _, group in itertools.groupby(find(folder), lambda path: path.parent)]
        if len(by_class) != len(CLASSES):
            raise ValueError(
                f"folder {folder}, which CONVBENCH_EUROSAT names, holds tiles in {len(by_class)} folders, not {len(CLASSES)}"
            )
        turns = itertools.chain.from_iterable(itertools.zip_longest(*by_class))
        found = list(itertools.islice(filter(None, turns), count))
    names = sorted({path.parent.name for path in found})
    return Labelled(found, np.array([names.index(path.parent.name) for path in found]), tuple(names))


def split(labels: np.ndarray, tested: float = 0.2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The places of the tiles to train on and to test by, drawn at random from each class alone (stratified), sorted."""
    random = np.random.default_rng(seed)
    drawn = [random.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
    counts = [round(tested * len(places)) for places in drawn]
    test = np.concatenate([places[:count] for places, count in zip(drawn, counts, strict=True)])
    return np.setdiff1d(np.arange(len(labels)), test), np.sort(test)


def tiles(count: int, seed: int = 0) -> list[Path]:
    """The first `count` tiles of EuroSAT by name, where CONVBENCH_EUROSAT names its folder; otherwise of those that are made.

    Made tiles are kept beside the cache of references. Raises ValueError if the folder has too few.
    """
    if folder := os.environ.get("CONVBENCH_EUROSAT"):
        found = find(folder)
        if len(found) < count:
            raise ValueError(f"folder {folder}, which CONVBENCH_EUROSAT names, holds {len(found)} tiles, not {count}")
        return found[:count]
    # The name holds what the tiles depend on, so that they are never stale.
    source = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    return make(cache_folder() / f"tiles-{source}-{seed}", count, seed)


def source() -> str:
    """The source of these tiles, for titles."""
    return "EuroSAT" if os.environ.get("CONVBENCH_EUROSAT") else "a made set in the place of EuroSAT"


def find(folder: str | os.PathLike[str]) -> list[Path]:
    """All tiles below a folder, by name. Raises ValueError if there are none."""
    found = sorted(Path(folder).rglob("*.tif"))
    if not found:
        raise ValueError(f"folder {folder} holds no tiles: no file below it is called .tif")
    return found


def make(folder: str | os.PathLike[str], count: int, seed: int = 0) -> list[Path]:
    """Have `count` tiles in a folder, in turn of each class, and return their paths; those that are there are not touched.

    A tile depends on seed and place alone, so that more of them begin with the same. Raises Missing without tifffile.
    """
    paths = [Path(folder, CLASSES[i % 10], f"{CLASSES[i % 10]}_{i // 10 + 1}.tif") for i in range(count)]
    for i, path in enumerate(paths):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            # A random name of a file that does not exist yet: under a known one a link of another user could lie in wait.
            unfinished = path.with_suffix(f".{secrets.token_hex(8)}")
            try:
                with unfinished.open("xb") as file:
                    _write(file, content(i, seed))
                unfinished.replace(path)
            finally:
                unfinished.unlink(missing_ok=True)
    return paths


def content(i: int, seed: int = 0) -> np.ndarray:
    """The pixels (64, 64, 13) of tile i: for each band a smooth field, as bright as its class has the band, and noise."""
    spectrum = np.random.default_rng([seed, i % len(CLASSES)]).uniform(0.1, 1, BANDS)
    random = np.random.default_rng([seed, len(CLASSES) + i])
    points = random.uniform(0, BRIGHTEST, (COARSE, COARSE, BANDS)) * spectrum
    # By products and sums of elements alone: a matrix product is not rounded alike on every machine.
    place = np.arange(SIDE) * (COARSE - 1) / SIDE
    before, share = place.astype(int), place % 1
    down = points[before] + share[:, None, None] * (points[before + 1] - points[before])
    field = down[:, before] + share[:, None] * (down[:, before + 1] - down[:, before])
    return np.rint(field + NOISE * random.standard_normal(field.shape)).clip(0, 2**16 - 1).astype(np.uint16)


def _write(file: BinaryIO, pixels: np.ndarray) -> None:
    try:
        import tifffile  # imported here, because asv imports every file of the suite
    except ImportError as error:
        raise Missing("tiles are made with tifffile: pip install tifffile") from error
    form = {"photometric": "minisblack", "planarconfig": "contig", "rowsperstrip": ROWS, "byteorder": "<"}
    tifffile.imwrite(file, pixels, **form, metadata=None, software=False, extratags=GEOTIFF)
