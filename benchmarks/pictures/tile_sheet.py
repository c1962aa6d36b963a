"""Twenty-five tiles with the names of their classes: a picture in which tiles or labels that are mixed up are seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.harness import cell
from benchmarks.workloads import eurosat

SIDE = 5  # tiles along a side of the sheet
AMONG = 1000  # tiles that they are drawn from


def chosen(name: str, seed: int) -> tuple[np.ndarray, list[str]]:
    """Tiles drawn at random and read by an implementation of read_batch, (25, 64, 64, 3) in [0, 1], and their classes.

    Raises Skip for an unknown name or where it cannot run here, and ValueError and Missing without tiles.
    """
    found = eurosat.labelled(AMONG)
    places = np.random.default_rng(seed).permutation(AMONG)[: SIDE**2]
    images = cell.load(name, "read_batch")([found.tiles[place] for place in places])
    return images.transpose(0, 2, 3, 1), [found.names[found.labels[place]] for place in places]


def draw(images: np.ndarray, names: list[str], title: str, path: Path) -> None:
    """Draw the sheet; the format is that of the path's ending. Raises OSError."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 9), layout="constrained")
    for axis, image, name in zip(figure.subplots(SIDE, SIDE).flat, images, names, strict=True):
        axis.imshow(image, interpolation="nearest")
        axis.set_title(name, fontsize=9)
        axis.set(xticks=[], yticks=[])
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
