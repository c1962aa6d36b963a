"""The inputs of a convolution: the same numbers for the same problem, on every machine and in every process."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.errors import Missing
from benchmarks.workloads.operations import OPERATIONS
from benchmarks.workloads.oracle import Reference
from benchmarks.workloads.problems import Problem

PERIOD = 1_048_583  # a prime: repeated random numbers never line up with a row or an image
PHOTO = "china.jpg"  # 427 x 640, ships with scikit-learn
FILTERS = {
    "identity": [[0, 0, 0], [0, 1, 0], [0, 0, 0]],
    "emboss": [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]],
    "sharpen": [[0, -1, 0], [-1, 5, -1], [0, -1, 0]],
    "edges": [[0, 1, 0], [1, -4, 1], [0, 1, 0]],
}


def make(problem: Problem, operation: str = "conv2d") -> tuple[np.ndarray, ...]:
    """Make the inputs of an operation, for conv2d input (N, C, H, W) and weight (K, C/g, R, S) of a problem.

    Raises Missing if the photograph is.
    """
    return tuple(_tensor(problem, name).astype(problem.dtype, copy=False) for name in OPERATIONS[operation].given)


def fingerprint(array: np.ndarray) -> int:
    """A number that changes when any element does, unless changes cancel: 5 ms for 64 MB."""
    return int(array.reshape(-1).view(np.uint32).sum(dtype=np.uint64))


def cached_reference(
    problem: Problem, prints: tuple[int, ...], compute: Callable[[], Reference], of: str = "output"
) -> Reference:
    """Read the problem's reference from disk, or compute and keep it. A damaged file is computed again.

    prints: the fingerprints of what it is computed from. of: the tensor that it is a reference of.
    """
    # The file's name holds everything the reference depends on, so that it is never stale.
    source = b"".join(Path(__file__).with_name(name).read_bytes() for name in ("oracle.py", "operations.py"))
    key = hashlib.sha256(repr((problem, of, prints)).encode() + source).hexdigest()[:16]
    path = cache_folder() / f"{problem.label}-{key}.npz"
    try:
        with np.load(path) as stored:
            return Reference(
                **{name: stored[name] for name in ("positions", "values", "magnitudes")}, of=of, level=float(stored["level"])
            )
    except (OSError, ValueError, KeyError, EOFError):
        pass
    except Exception as error:  # numpy raises zipfile.BadZipFile, which importing zipfile to name would cost 5 ms
        if type(error).__name__ != "BadZipFile":
            raise
    known = compute()
    _write(path, lambda file: np.savez(file, **vars(known)))
    return known


def cache_folder() -> Path:
    """Where references and the decoded photograph are kept between cells: beside the suite, ignored by git."""
    return Path(os.environ.get("CONVBENCH_CACHE") or Path(__file__).parents[2] / ".convbench" / "cache")


def _write(path: Path, save: Callable) -> None:
    """Write a file whole or not at all; a cache that cannot be written only costs time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            save(file)
        Path(file.name).replace(path)
    except OSError:
        return


def _tensor(problem: Problem, name: str) -> np.ndarray:
    """One of a problem's tensors; an output is what comes back to a convolution, a gradient for example."""
    if name == "weight":
        return _filter(problem) if problem.filter else random(problem.weight_shape, 1)
    if name == "input":
        return _photograph(problem) if problem.data == "photo" else random(problem.input_shape, 0)
    return random(problem.output_shape, 2)


def random(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Uniform float32 numbers in [-1, 1), repeated with a long period: filling 64 MB takes 15 ms instead of 100."""
    size = int(np.prod(shape))
    block = np.random.default_rng(seed).random(min(size, PERIOD), dtype=np.float32)
    block *= 2
    block -= 1
    return np.resize(block, size).reshape(shape)


def _filter(problem: Problem) -> np.ndarray:
    """A named image filter, for every output channel: its own input channel alone, as the problem's groups have it."""
    if problem.filter == "box":
        taps = np.full((problem.r, problem.s), 1 / (problem.r * problem.s))
    else:
        taps = np.array(FILTERS[str(problem.filter)], dtype=np.float64)
    return np.broadcast_to(taps, problem.weight_shape).astype(np.float32)


def _photograph(problem: Problem) -> np.ndarray:
    """The photograph in [-1, 1], mirrored at its edges until it fills the image; its mean if there is one channel."""
    photo = _decoded()
    photo = photo.mean(axis=0, keepdims=True) if problem.c == 1 else photo[np.arange(problem.c) % 3]
    tile = np.concatenate([photo, photo[:, ::-1]], axis=1)
    tile = np.concatenate([tile, tile[:, :, ::-1]], axis=2)
    # Written once, into place: making a 4096 x 4096 image by joining copies took 150 ms, this takes 30.
    image = np.empty(problem.input_shape, np.float32)
    height, width = tile.shape[1:]
    for top in range(0, problem.h, height):
        for left in range(0, problem.w, width):
            part = image[:, :, top : top + height, left : left + width]
            part[:] = tile[:, : part.shape[2], : part.shape[3]]
    return image


def _decoded() -> np.ndarray:
    """The photograph as float32 (3, 427, 640)."""
    path = cache_folder() / "photo.npy"
    try:
        return np.load(path)
    except (OSError, ValueError, EOFError):
        pass
    spec = importlib.util.find_spec("sklearn")  # found, not imported: importing scikit-learn takes a second
    if spec is None or not spec.submodule_search_locations:
        raise Missing("the photograph ships with scikit-learn: pip install scikit-learn pillow")
    try:
        from PIL import Image
    except ImportError as error:
        raise Missing("reading the photograph needs Pillow: pip install pillow") from error
    with Image.open(Path(spec.submodule_search_locations[0]) / "datasets" / "images" / PHOTO) as image:
        photo = np.asarray(image, dtype=np.float32).transpose(2, 0, 1) / 127.5 - 1
    _write(path, lambda file: np.save(file, photo))
    return photo
