"""One pass of training over tiles by torch: what the implementations share, which differ in what reads a tile."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.nn import functional

from impls import checks
from impls.train_tiles import resnet18
from impls.train_tiles.datasets import LabelledTiles, batches

SHRINKING = 32  # pixels along a side that the network makes one of
KEPT = 132  # numbers that forward keeps for backward, for each of an image's pixels


def train_by(
    by: str,
    parameters: list[np.ndarray],
    exp_avg: list[np.ndarray],
    exp_avg_sq: list[np.ndarray],
    statistics: list[np.ndarray],
    tiles: list[str],
    labels: np.ndarray,
    step: int,
    batch: int,
    seed: int,
    workers: int,
    lr: float,
) -> list[float]:
    """Train on every tile once, read by one implementation of read_batch; return each batch's loss before its step."""
    network = resnet18.of(parameters, statistics).train()
    optimiser = torch.optim.Adam(network.parameters(), lr)
    for parameter, first, second in zip(network.parameters(), exp_avg, exp_avg_sq, strict=True):
        moments = {"exp_avg": torch.from_numpy(first), "exp_avg_sq": torch.from_numpy(second)}
        optimiser.state[parameter] = {"step": torch.tensor(step - 1.0), **moments}
    losses: list[float] = []
    for images, answers in batches(LabelledTiles(by, tiles, labels), batch, seed, min(workers, len(tiles))):
        if not losses:
            _require_fit(tuple(images.shape[1:]), len(tiles), batch)
        optimiser.zero_grad()
        loss = functional.cross_entropy(network(images), answers)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def _require_fit(shape: tuple[int, ...], count: int, batch: int) -> None:
    """Raise ValueError for a batch without a variance, and MemoryError for one that does not fit."""
    _, height, width = shape
    if max(height, width) <= SHRINKING and 1 in (batch, count % batch):
        raise ValueError(
            f"a batch of one tile of {height}x{width} pixels has no variance to normalise by: "
            f"batch={batch} leaves one of {count} tiles alone"
        )
    most = min(batch, count), *shape
    checks.require_memory(4 * KEPT * math.prod(most) // 3, f"training on a batch of shape {most}")
