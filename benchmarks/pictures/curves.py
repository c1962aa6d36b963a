"""Loss and accuracy while training, over time and over equal steps, by several implementations of train_step: a picture.

Trained from several starts it has bands, and an interval says whether a difference in accuracy may be chance.
"""

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
EVERY = 10  # steps from one point of a curve to the next
MAX_TESTED = 1000  # test images that a point's accuracy is of, as in the text
CONFIDENCE = 0.95
SHOWN = (
    *("cpu.torch", "cpu.torch_fused", "cpu.auto", "cpu.torch_shift_matmul", "cpu.shift_matmul"),
    *("gpu.torch", "gpu.torch_shift_matmul"),
)


@dataclass
class Curve:
    """The curve of one implementation from one start: seconds of training alone, loss and accuracy (0 to 1) after so many
    steps.
    """

    name: str
    seed: int = 0
    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)


def loaded(names: Sequence[str], count: int, operation: str = "train_step") -> tuple[dict[str, Any], dict[str, str]]:
    """The implementations for this many threads, and why others cannot run here. Raises LookupError for unknown names, and
    ValueError for more threads than there are cores.
    """
    threads.require(count)
    threads.confine(count)  # before a library is loaded, which makes its pool for the cores it finds
    functions, lacking = {}, {}
    for name in names:
        try:
            functions[name] = cell.load(name, operation)
        except Skip as skip:
            lacking[name] = str(skip)
    threads.set_pools(count)
    return functions, lacking


def train(
    functions: Mapping[str, Any], network: str, batch: int, epochs: int, seeds: int = 1
) -> Iterator[tuple[int, int, list[Curve]]]:
    """Train a network by each implementation from the same starts; yield steps done, of how many, and the curves so far.

    A seed draws the parameters and the order of the images, the same for every implementation; what drops out is decided by
    the step. Each takes a step in turn, so that what the machine does meanwhile meets all of them alike. Raises LookupError
    for an unknown network, Missing without digits, and ValueError for more images than there are, no epochs and no seeds.
    """
    if network not in training.SHAPES:
        raise LookupError(f"no network is called {network!r}; there are {', '.join(training.SHAPES)}")
    data = digits.load()
    if not 1 <= batch <= len(data.labels):
        raise ValueError(f"batch must be from 1 to the {len(data.labels)} images of {data.name}, not {batch}")
    for name, count in {"epochs": epochs, "seeds": seeds}.items():
        if count < 1:
            raise ValueError(f"{name} must be at least 1, not {count}")
    shown = data._replace(
        images=training.shown(network, data.images),
        test_images=training.shown(network, data.test_images[:MAX_TESTED]),
        test_labels=data.test_labels[:MAX_TESTED],
    )
    for function in functions.values():  # one-time compilation and look-ups are not training
        _step(function, network, training.placed(function, training.fresh(network)), shown, np.arange(batch), 1)
    curves: list[Curve] = []
    steps = epochs * (len(data.labels) // batch)
    for seed in range(seeds):
        for step, found in _from_one_start(functions, network, shown, batch, steps, seed):
            yield seed * steps + step, seeds * steps, [*curves, *found]
        curves += found


def _from_one_start(
    functions: Mapping[str, Any], network: str, data: digits.Digits, batch: int, steps: int, seed: int
) -> Iterator[tuple[int, list[Curve]]]:
    """Yield after every tenth step and the last."""
    names = list(functions)
    states = {name: training.placed(function, training.fresh(network, seed)) for name, function in functions.items()}
    curves = {name: Curve(name, seed) for name in names}
    spent = dict.fromkeys(names, 0.0)
    losses: dict[str, list[float]] = {name: [] for name in names}
    order, turns = np.random.default_rng(seed), random.Random(seed)
    places = np.array([], int)
    for step in range(1, steps + 1):
        if len(places) < batch:
            places = order.permutation(len(data.labels))
        chosen, places = places[:batch], places[batch:]
        for name in turns.sample(names, len(names)):
            seconds, loss = _step(functions[name], network, states[name], data, chosen, step)
            spent[name] += seconds
            losses[name].append(loss)
        if step % EVERY and step < steps:
            continue
        for name, curve in curves.items():
            curve.steps.append(step)
            curve.seconds.append(spent[name])
            curve.losses.append(float(np.mean(losses[name])))
            curve.accuracies.append(accuracy(network, training.host(functions[name], states[name])[0], data))
            losses[name].clear()
        yield step, list(curves.values())


def _step(function: Any, network: str, state: Any, data: digits.Digits, chosen: Any, step: int) -> tuple[float, float]:
    """Seconds of one step on the chosen images, their way to a device included, and its loss."""
    images, labels = data.images[chosen], data.labels[chosen]
    start = perf_counter()
    loss = function(network, *state, function.to_device(images), function.to_device(labels), step, LR)
    return perf_counter() - start, loss


def accuracy(network: str, parameters: list[np.ndarray], data: digits.Digits) -> float:
    """The share of the test images, normalised as the network needs them, that it classifies correctly."""
    import torch  # imported here, because asv imports every file of the suite

    from impls.train_step import networks

    with torch.no_grad():
        scores = networks.predict(
            network, [torch.from_numpy(each) for each in parameters], torch.from_numpy(data.test_images)
        )
    return float((scores.argmax(dim=1).numpy() == data.test_labels).mean())


def by_name(curves: Sequence[Curve]) -> dict[str, list[Curve]]:
    """The curves of each implementation, one for each start."""
    found: dict[str, list[Curve]] = {}
    for curve in curves:
        found.setdefault(curve.name, []).append(curve)
    return found


def difference(curves: Sequence[Curve], others: Sequence[Curve]) -> tuple[float, float] | None:
    """The interval of the mean difference in accuracy after the last step, start by start; None of fewer than two starts.

    Student's t on the pairs' differences.
    """
    from scipy import stats  # imported here, because asv imports every file of the suite

    if len(curves) < 2:
        return None
    pairs = zip(curves, others, strict=True)
    differences = np.array([one.accuracies[-1] - other.accuracies[-1] for one, other in pairs])
    error = float(differences.std(ddof=1)) / len(differences) ** 0.5
    reach = error * float(stats.t.ppf((1 + CONFIDENCE) / 2, len(differences) - 1))
    return float(differences.mean()) - reach, float(differences.mean()) + reach


def in_words(curves: Sequence[Curve]) -> dict[str, str]:
    """The result of each implementation after the last step, the mean of its starts; compared with the first."""
    found = by_name(curves)
    baseline = next(iter(found))
    said = {}
    for name, own in found.items():
        seconds, base = (float(np.mean([curve.seconds[-1] for curve in each])) for each in (own, found[baseline]))
        loss, right = (float(np.mean([getattr(curve, what)[-1] for curve in own])) for what in ("losses", "accuracies"))
        said[name] = f"{seconds:.3g} s, {seconds / base:.2f} times {baseline}; "
        said[name] += f"loss {loss:.3g}, {right:.1%} of the test images named rightly"
        if len(own) > 1:
            last = [curve.accuracies[-1] for curve in own]
            said[name] += f" ({min(last):.1%} to {max(last):.1%} by start)"
        if name != baseline and (interval := difference(own, found[baseline])):
            low, high = (100 * bound for bound in interval)
            chance = "may be chance" if low <= 0 <= high else "is more than chance"
            said[name] += (
                f"; {low:+.2f} to {high:+.2f} points from {baseline} "
                f"({CONFIDENCE:.0%} interval of {len(own)} starts), which {chance}"
            )
    return said


def draw(curves: Sequence[Curve], title: str, path: Path) -> None:
    """Draw loss and accuracy over time and over steps, of several starts the median and the range.

    The format is that of the path's ending. Raises OSError.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    axes = figure.subplots(2, 2, sharex="col", sharey="row")
    found = by_name(curves)
    for i, (name, own) in enumerate(found.items()):
        label = name
        if i and (interval := difference(own, found[next(iter(found))])):
            label += " (accuracy {:+.1f} to {:+.1f} points)".format(*(100 * bound for bound in interval))
        across = {"seconds": np.mean([curve.seconds for curve in own], axis=0), "steps": own[0].steps}
        down = {
            0: np.array([curve.losses for curve in own]),
            1: 100 * np.array([curve.accuracies for curve in own]),
        }
        for row, values in down.items():
            for axis, over in zip(axes[row], across, strict=True):
                axis.plot(across[over], np.median(values, axis=0), color=f"C{i}", label=label)
                if len(own) > 1:
                    axis.fill_between(across[over], values.min(axis=0), values.max(axis=0), color=f"C{i}", alpha=0.15, lw=0)
    axes[0, 0].set(ylabel="loss", yscale="log")
    axes[1, 0].set(ylabel="test images named rightly, %", xlabel="time in steps of training, seconds")
    axes[1, 1].set(xlabel="steps")
    axes[0, 1].legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=110)
