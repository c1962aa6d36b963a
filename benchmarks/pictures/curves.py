"""Loss and accuracy while training, over time and over equal steps, by several implementations of train_step: a picture."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.errors import Skip
from benchmarks.harness import cell
from benchmarks.timing import threads
from benchmarks.workloads import digits, training

LR = 1e-3
POINTS = 60  # of a curve
SHOWN = ("cpu.torch", "cpu.torch_fused", "cpu.auto", "cpu.torch_shift_matmul", "cpu.shift_matmul")


@dataclass
class Curve:
    """What one implementation came to: seconds of training alone, loss and accuracy (0 to 1) after so many steps."""

    name: str
    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)


def loaded(names: Sequence[str], count: int) -> tuple[dict[str, Any], dict[str, str]]:
    """The implementations for so many threads, and why others cannot run here. Raises LookupError for unknown names, and
    ValueError for more threads than there are cores.
    """
    threads.require(count)
    threads.confine(count)  # before a library is loaded, which makes its pool for the cores it finds
    functions, lacking = {}, {}
    for name in names:
        try:
            functions[name] = cell.load(name, "train_step")
        except Skip as skip:
            lacking[name] = str(skip)
    threads.set_pools(count)
    return functions, lacking


def train(functions: Mapping[str, Any], network: str, batch: int, epochs: int) -> Iterator[tuple[int, int, list[Curve]]]:
    """Train a network by each implementation from the same start; yield steps done, of how many, and the curves so far.

    Each takes a step in turn, so that what the machine does meanwhile meets all of them alike. Raises LookupError for an
    unknown network, Missing without digits, and ValueError for more images than there are and for no epochs.
    """
    if network not in training.SHAPES:
        raise LookupError(f"no network is called {network!r}; there are {', '.join(training.SHAPES)}")
    data = digits.load()
    if not 1 <= batch <= len(data.labels):
        raise ValueError(f"batch must be from 1 to the {len(data.labels)} images of {data.name}, not {batch}")
    if epochs < 1:
        raise ValueError(f"epochs must be at least 1, not {epochs}")
    names = list(functions)
    for name in names:  # what is compiled or looked up once is no training
        functions[name](network, *training.fresh(network), data.images[:batch], data.labels[:batch], 1, LR)
    states, curves = {name: training.fresh(network) for name in names}, {name: Curve(name) for name in names}
    spent = dict.fromkeys(names, 0.0)
    losses: dict[str, list[float]] = {name: [] for name in names}
    order, turns = np.random.default_rng(0), random.Random(0)
    steps = epochs * (len(data.labels) // batch)
    shown = {round(steps * (i + 1) / POINTS) for i in range(POINTS)}
    places = np.array([], int)
    for step in range(1, steps + 1):
        if len(places) < batch:
            places = order.permutation(len(data.labels))
        chosen, places = places[:batch], places[batch:]
        images, labels = data.images[chosen], data.labels[chosen]
        for name in turns.sample(names, len(names)):
            start = perf_counter()
            loss = functions[name](network, *states[name], images, labels, step, LR)
            spent[name] += perf_counter() - start
            losses[name].append(loss)
        if step in shown:
            for name, curve in curves.items():
                curve.steps.append(step)
                curve.seconds.append(spent[name])
                curve.losses.append(float(np.mean(losses[name])))
                curve.accuracies.append(accuracy(network, states[name][0], data))
                losses[name].clear()
            yield step, steps, list(curves.values())


def accuracy(network: str, parameters: list[np.ndarray], data: digits.Digits) -> float:
    """The share of the test images that a trained network names rightly."""
    import torch  # here, because asv imports every file of the suite

    from impls.train_step import networks

    with torch.no_grad():
        scores = networks.predict(
            network, [torch.from_numpy(each) for each in parameters], torch.from_numpy(data.test_images)
        )
    return float((scores.argmax(dim=1).numpy() == data.test_labels).mean())


def draw(curves: Sequence[Curve], title: str, path: Path) -> None:
    """Draw loss and accuracy over time and over steps; the format is that of the path's ending. Raises OSError."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    axes = figure.subplots(2, 2, sharex="col", sharey="row")
    for (loss, right), over in zip(axes.T, ("seconds", "steps"), strict=True):
        for curve in curves:
            loss.plot(getattr(curve, over), curve.losses, label=curve.name)
            right.plot(getattr(curve, over), [100 * each for each in curve.accuracies], label=curve.name)
        right.set_xlabel({"seconds": "time in steps of training, seconds", "steps": "steps"}[over])
        loss.set_yscale("log")
    axes[0, 0].set_ylabel("loss")
    axes[1, 0].set_ylabel("test images named rightly, %")
    axes[0, 1].legend()
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
