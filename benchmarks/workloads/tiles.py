"""Reading a batch of image tiles as a task: files in, one normalised array out, with the files in memory or not."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from benchmarks.errors import Missing, Skip, WrongAnswer
from benchmarks.timing import clock
from benchmarks.timing.prepared_cell import PreparedCell
from benchmarks.workloads import eurosat, oracle
from benchmarks.workloads.tasks import Task, once_more

BANDS, SCALE = (4, 3, 2), 4000.0  # the operation's defaults: red, green and blue; white
MAX_TILES = 1024  # of a batch
MADV_DONTNEED = 4  # sys/mman.h
COMPARED = 64  # tiles of a batch that are compared, beside its ends
ROUNDINGS = 4.0  # of a value: one quotient, and the constant it may be a product with


@dataclass(frozen=True)
class Batch:
    """n tiles of 13 bands and 64x64 pixels. A label spells them: n32b13h64w64. workers: None for as many as threads.

    size: bands, height and width. bands: those that are read, numbered from 1. keywords: what read_batch is called with
    beside the paths and workers. compression: the tiles'.
    """

    n: int
    workers: int | None = None
    dtype: str = "float32"
    size: ClassVar[tuple[int, int, int]] = (eurosat.BANDS, eurosat.SIDE, eurosat.SIDE)
    bands: ClassVar[tuple[int, ...]] = BANDS
    keywords: ClassVar[dict[str, Any]] = {}
    compression: ClassVar[str] = "none"

    @classmethod
    def parse(cls, label: str) -> Batch:
        """Read a label. Raises ValueError that shows what one looks like."""
        if (match := re.fullmatch(r"n([1-9]\d*)b13h64w64", label)) is None or int(match[1]) > MAX_TILES:
            raise ValueError(f"{label!r} is not a batch's label; one looks like n32b13h64w64, with at most {MAX_TILES} tiles")
        return cls(int(match[1]))

    @property
    def label(self) -> str:
        return f"n{self.n}b{eurosat.BANDS}h{eurosat.SIDE}w{eurosat.SIDE}"

    def every(self) -> list[Path]:
        """All tiles, so that no batch finds others packed than those it reads. Raises Missing if they cannot be had."""
        try:
            found = eurosat.tiles(MAX_TILES + 1)
        except ValueError as error:
            raise Missing(str(error)) from error
        if not os.environ.get("CONVBENCH_EUROSAT"):
            _pack(found)
        return found

    def values(self, every: Sequence[Path], i: int) -> np.ndarray:
        """The expected values of tile i in a batch, (bands, height, width) in float64."""
        return values(every, i)


class ReadBatch(Task):
    """read_batch(tiles, bands=(4, 3, 2), scale=4000.0, workers=1): three bands, divided by the scale and clipped to 0..1."""

    baseline = "cpu.rasterio"

    def __init__(self, operation: str, problem: Batch) -> None:
        self.operation, self.problem = operation, problem

    @staticmethod
    def parse(label: str) -> Batch:
        return Batch.parse(label)

    @functools.cached_property
    def _every(self) -> list[Path]:
        return self.problem.every()

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The paths of a batch."""
        return (self._paths(0),)

    def describe(self) -> dict[str, Any]:
        """Bytes: the pixels of the bands read, two bytes each, and as many values written."""
        return {
            "label": self.problem.label,
            "output": list(self._shape),
            "flops": 3 * math.prod(self._shape),  # a quotient and two comparisons
            "bytes": math.prod(self._shape) * (2 + 4),
            "dtype": self.problem.dtype,
        }

    def work(self) -> dict[str, tuple[float, str]]:
        return {"outputs": (self.problem.n, "tiles")}

    def unsupported(self, function: Any) -> str | None:
        shape = self.problem.n, *self.problem.size
        # Commits from before compressed tiles are not asked about them.
        more = {"compression": self.problem.compression} if self.problem.compression != "none" else {}
        return function.unsupported(shape, self.problem.bands, SCALE, self.problem.workers or 1, **more)

    def recall(self) -> None:
        """Only the tiles are kept: their contents are known from their generation."""
        self._every  # noqa: B018

    def check(self, function: Any, pools: dict[str, int]) -> PreparedCell:
        """See Task. After timing, verify looks at the last timed batch, and at another that begins with the second tile."""
        read = functools.partial(function, **self.problem.keywords, workers=self.problem.workers or max(pools.values()))
        paths = self._paths(0)
        start = perf_counter()
        try:
            output = read(paths)
        except _unpacked() as error:
            raise Skip(f"no input: {error}") from error
        called = perf_counter() - start
        self._judge(output, 0)

        def verify(last: Any) -> dict[str, Any]:
            facts = self._judge(last, 0)
            other = functools.partial(read, self._paths(1))
            return {**once_more(function, other, functools.partial(self._judge, first=1), "of other tiles"), **facts}

        return PreparedCell.of(function, functools.partial(read, paths), verify, pools, called)

    def restore(self) -> None:
        """Do nothing: tiles are not written to."""

    @property
    def _shape(self) -> tuple[int, ...]:
        """The shape of the batch."""
        return self.problem.n, len(self.problem.bands), *self.problem.size[1:]

    def _paths(self, first: int) -> list[str]:
        """The batch without its first tiles, which come last if there are no others."""
        return [str(self._every[(first + i) % len(self._every)]) for i in range(self.problem.n)]

    def _judge(self, output: Any, first: int) -> dict[str, float]:
        """Compare a batch with what its tiles hold; raise WrongAnswer or return the errors."""
        n, bands, shape = self.problem.n, self.problem.bands, self._shape
        if not isinstance(output, np.ndarray) or output.shape != shape or output.dtype != np.float32:
            found = getattr(output, "shape", None), str(getattr(output, "dtype", type(output).__name__))
            raise WrongAnswer(f"the batch has shape {found[0]} and dtype {found[1]}, not {shape} and float32")
        places = np.unique([0, n - 1, *np.random.default_rng(0).integers(0, n, COMPARED)])
        count = len(self._every)
        expected = np.stack([self.problem.values(self._every, (first + place) % count) for place in places])
        difference = np.abs(output[places] - expected)
        ratios = difference / (ROUNDINGS * oracle.UNIT["float32"] * np.maximum(expected, oracle.UNIT["float32"]))
        if not (ratios <= 1).all():
            tile, band, y, x = np.unravel_index(int(np.argmax(np.where(np.isnan(ratios), np.inf, ratios))), ratios.shape)
            raise WrongAnswer(
                f"tile {int(places[tile])}, band {bands[band]}, y={int(y)}, x={int(x)} is "
                f"{output[places[tile], band, y, x]:.7g}, not {expected[tile, band, y, x]:.7g}"
            )
        if not (np.isfinite(output).all() and output.min() >= 0 and output.max() <= 1):
            raise WrongAnswer("the batch has values outside 0..1")
        return {
            "relative_l2": float(np.linalg.norm(difference) / (np.linalg.norm(expected) or 1)),  # of tiles that are black
            "worst": float(ratios.max()),
        }


class ColdPages(clock.Block):
    """Blocks of calls that find their files in no cache of the system; the time to drop them from it is not counted."""

    def __init__(self, call: Any) -> None:
        """call: of a task's cell. Raises Skip if the system cannot be asked for that (Linux can: posix_fadvise(2))."""
        if not hasattr(os, "posix_fadvise"):
            raise Skip("unavailable: this system cannot drop files from its cache")
        self.call, self.paths = call, _with_packed(*call.args)
        os.sync()  # what has not been written yet would stay

    def __call__(self, number: int) -> float:
        total = 0.0
        with clock.no_garbage_collection():
            for _ in range(number):
                _forget(self.paths)
                for path in self.paths:
                    _drop(path)
                start = perf_counter()
                self.output = None
                self.output = self.call()
                total += perf_counter() - start
        return total


def _forget(paths: Sequence[str]) -> None:
    """Remove mapped files from this process's page table: pages in it are not dropped from the cache."""
    files = {os.path.realpath(path) for path in paths}
    library = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        where, permissions, *_, name = line.split(maxsplit=5)
        if name in files and "w" not in permissions:  # what is written to a private mapping would be lost
            start, end = (int(address, 16) for address in where.split("-"))
            library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_DONTNEED)


def _drop(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def values(every: Sequence[str | Path], i: int) -> np.ndarray:
    """The expected values of tile i in a batch, (3, 64, 64) in float64."""
    if os.environ.get("CONVBENCH_EUROSAT"):
        import tifffile  # imported here, because asv imports every file of the suite

        pixels = tifffile.imread(every[i])
    else:
        pixels = eurosat.content(i)
    bands = np.moveaxis(pixels, -1, 0)[[band - 1 for band in BANDS]]
    return np.clip(bands.astype(np.float64) / SCALE, 0, 1)


def _pack(paths: Sequence[Path]) -> None:
    """Have the tiles packed for those that read them so; a commit that lacks that lacks them too."""
    with contextlib.suppress(ImportError):
        from impls.read_batch import packing

        folder = paths[0].parents[1]
        try:
            packing.find(list(map(str, paths)), BANDS)
        except packing.NotPacked:
            packing.pack(folder)


def _unpacked() -> tuple[type[Exception], ...]:
    """The error for tiles that are not packed, as a user's own may be; none in a commit without packing."""
    with contextlib.suppress(ImportError):
        from impls.read_batch import packing

        return (packing.NotPacked,)
    return ()


def _with_packed(paths: Sequence[str]) -> list[str]:
    """The tiles' files, and those of the array that they are packed in."""
    return [*paths, *map(str, Path(paths[0]).parents[1].glob("tiles.*"))]
