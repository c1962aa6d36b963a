"""Loss and accuracy of ResNet-18 on the tiles it trains on and on those it does not, by several readers: a picture."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.workloads import eurosat, tile_training, tiles

SHOWN = ("cpu.rasterio", "cpu.skimage", "cpu.skimage_torch", "cpu.raw_numba")
# Tiles of a batch: running variances begin at 1, those of dark tiles are five hundred times smaller, and until they have come
# there, some sixty batches on, a trained network names what it has not seen by chance.
BATCH = 16
EVERY = 10  # batches between two points of a curve
HALVES = ("train", "test")
MIN_TILES = 50  # with which each of ten classes is in both halves
AT_ONCE = 100  # tiles in a call that predicts


@dataclass
class Curve:
    """The curve of training with one reader, by batch: its own seconds, then loss and accuracy (0 to 1) by half."""

    name: str
    batches: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    losses: dict[str, list[float]] = field(default_factory=lambda: {half: [] for half in HALVES})
    accuracies: dict[str, list[float]] = field(default_factory=lambda: {half: [] for half in HALVES})


def train(functions: Mapping[str, Any], count: int, passes: int, workers: int) -> Iterator[tuple[int, int, list[Curve]]]:
    """Train on four fifths of `count` tiles by each reader from the same start; yield batches done, of how many, and curves.

    Each takes some batches in turn, so that what the machine does meanwhile meets all of them alike. Raises ValueError for
    too few tiles, no passes and less than no workers, and Missing without tiles.
    """
    for setting, value, minimum in (("tiles", count, MIN_TILES), ("passes", passes, 1), ("workers", workers, 0)):
        if value < minimum:
            raise ValueError(f"{setting} must be at least {minimum}, not {value}")
    data = eurosat.labelled(count)
    halves = dict(zip(HALVES, eurosat.split(data.labels), strict=True))
    images = np.stack([tiles.values(data.tiles, i) for i in range(count)]).astype(np.float32)
    known = {half: (images[places], data.labels[places]) for half, places in halves.items()}
    for function in functions.values():  # one-time compilation and imports are not training
        function(*tile_training.fresh(), [str(tile) for tile in data.tiles[:2]], data.labels[:2])
    states, curves = {name: tile_training.fresh() for name in functions}, {name: Curve(name) for name in functions}
    spent, order, turns = dict.fromkeys(functions, 0.0), np.random.default_rng(0), random.Random(0)
    each = -(-len(halves["train"]) // BATCH)
    done = 0
    for _ in range(passes):
        shuffled = order.permutation(halves["train"])
        for begin in range(0, len(shuffled), EVERY * BATCH):
            chosen = shuffled[begin : begin + EVERY * BATCH]
            given = [str(data.tiles[place]) for place in chosen], data.labels[chosen], done + 1, BATCH, done, workers
            for name in turns.sample(list(functions), len(functions)):
                start = perf_counter()
                functions[name](*states[name], *given)
                spent[name] += perf_counter() - start
            done += -(-len(chosen) // BATCH)
            for name, curve in curves.items():
                curve.batches.append(done)
                curve.seconds.append(spent[name])
                for half, (shown, labels) in known.items():
                    loss, right = judged(states[name], shown, labels)
                    curve.losses[half].append(loss)
                    curve.accuracies[half].append(right)
            yield done, passes * each, list(curves.values())


def judged(state: tile_training.State, images: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Mean cross entropy of a trained network on images (N, 3, H, W), and the share whose class it names rightly."""
    import torch  # imported here, because asv imports every file of the suite

    from impls.train_tiles import resnet18

    network = resnet18.of(state[0], state[3]).eval()
    with torch.no_grad():
        parts = [network(torch.from_numpy(images[i : i + AT_ONCE])) for i in range(0, len(images), AT_ONCE)]
    scores, answers = torch.cat(parts), torch.from_numpy(labels)
    loss = torch.nn.functional.cross_entropy(scores, answers)
    return float(loss), float((scores.argmax(dim=1) == answers).float().mean())


def draw(curves: Sequence[Curve], title: str, path: Path) -> None:
    """Draw loss and accuracy over time and over batches; the format is that of the path's ending. Raises OSError."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    axes = figure.subplots(2, 2, sharex="col", sharey="row")
    for (loss, right), over in zip(axes.T, ("seconds", "batches"), strict=True):
        for i, curve in enumerate(curves):
            for half, style in zip(HALVES, ("-", "--"), strict=True):
                look = {"color": f"C{i}", "linestyle": style, "label": f"{curve.name}, {half}"}
                loss.plot(getattr(curve, over), curve.losses[half], **look)
                right.plot(getattr(curve, over), [100 * each for each in curve.accuracies[half]], **look)
        right.set_xlabel({"seconds": "time in training, seconds", "batches": "batches"}[over])
        loss.set_yscale("log")
    axes[0, 0].set_ylabel("loss")
    axes[1, 0].set_ylabel("tiles named rightly, %")
    axes[0, 1].legend()
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
