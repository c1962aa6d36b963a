"""A pass of training ResNet-18 over labelled tiles as a task: in place, judged by its losses, gradients and statistics."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.errors import Missing, WrongAnswer
from benchmarks.timing.prepared_cell import PreparedCell
from benchmarks.workloads import eurosat, oracle, tiles
from benchmarks.workloads.tasks import Task

SEED, LR, BETA1, BETA2, EPS = 0, 1e-3, 0.9, 0.999, 1e-8
STILL = 1e-30  # a step of this size leaves every parameter as it is: each loss of a pass is then that of the first parameters
# Relative to a loss, and to the norm of a parameter's gradient or of a statistic: float32 against float64 through twenty
# layers, each normalised, where what is near zero may be taken for what is below.
LOSS, GRADIENT, STATISTIC = 1e-5, 5e-3, 1e-5
CLASSES, MOMENTUM, BN_EPS = 10, 0.1, 1e-5
MAX_TILES = 27_000  # EuroSAT's
State = tuple[list[np.ndarray], ...]


@dataclass(frozen=True)
class Pass:
    """n tiles of 64x64 pixels in batches. A label spells both: resnet18-n320b32. workers: processes that read, none by 0."""

    n: int
    batch: int
    workers: int = 0
    dtype: str = "float32"

    @classmethod
    def parse(cls, label: str) -> Pass:
        """Read a label. Raises ValueError that shows what one looks like."""
        match = re.fullmatch(r"resnet18-n([1-9]\d*)b([1-9]\d*)", label)
        if match is None or int(match[1]) > MAX_TILES:
            raise ValueError(
                f"{label!r} is not the label of a pass; one looks like resnet18-n320b32: 320 tiles, of at most {MAX_TILES}, "
                "in batches of 32"
            )
        return cls(int(match[1]), int(match[2]))

    @property
    def label(self) -> str:
        return f"resnet18-n{self.n}b{self.batch}"


# ResNet-18's convolutions (He et al., arXiv 1512.03385): filters, channels, taps along a side, stride; block after block,
# what brings a block's input to the shape of its output behind the two that it is added to.
CONVOLUTIONS = (
    *((64, 3, 7, 2), (64, 64, 3, 1), (64, 64, 3, 1), (64, 64, 3, 1), (64, 64, 3, 1)),
    *((128, 64, 3, 2), (128, 128, 3, 1), (128, 64, 1, 2), (128, 128, 3, 1), (128, 128, 3, 1)),
    *((256, 128, 3, 2), (256, 256, 3, 1), (256, 128, 1, 2), (256, 256, 3, 1), (256, 256, 3, 1)),
    *((512, 256, 3, 2), (512, 512, 3, 1), (512, 256, 1, 2), (512, 512, 3, 1), (512, 512, 3, 1)),
)
PARAMETERS = sum(k * c * r * r + 2 * k for k, c, r, _ in CONVOLUTIONS) + 512 * CLASSES + CLASSES


class TrainTiles(Task):
    """train_tiles(parameters, exp_avg, exp_avg_sq, statistics, tiles, labels, step, batch, seed, workers, lr), in place."""

    baseline = "cpu.rasterio"

    def __init__(self, operation: str, problem: Pass) -> None:
        self.operation, self.problem = operation, problem

    @staticmethod
    def parse(label: str) -> Pass:
        return Pass.parse(label)

    @functools.cached_property
    def arrays(self) -> tuple[Any, ...]:
        """The paths of the tiles, in turn of each class, and their labels. Raises Missing."""
        try:
            found = eurosat.labelled(self.problem.n)
        except ValueError as error:
            raise Missing(str(error)) from error
        return list(map(str, found.tiles)), found.labels

    def describe(self) -> dict[str, Any]:
        """FLOPs: three times those of the products forward, as gradients of inputs and of weights cost as much each. Bytes:
        every parameter's four arrays read and three written in each step, and three bands of each tile.
        """
        n, batches = self.problem.n, -(-self.problem.n // self.problem.batch)
        return {
            "label": self.problem.label,
            "output": [batches],
            "flops": 3 * 2 * n * _products(),
            "bytes": 4 * 7 * PARAMETERS * batches + 2 * 3 * n * eurosat.SIDE**2,
            "dtype": self.problem.dtype,
        }

    def work(self) -> dict[str, tuple[float, str]]:
        return {"outputs": (self.problem.n, "tiles")}

    def unsupported(self, function: Any) -> str | None:
        shape = self.problem.n, eurosat.BANDS, eurosat.SIDE, eurosat.SIDE
        return function.unsupported(shape, self.problem.batch, self.problem.workers)

    def recall(self) -> None:
        """Only the tiles are kept: the references take no longer to compute than to read."""
        self.arrays  # noqa: B018

    def restore(self) -> None:
        """Do nothing: tiles are not written to."""

    def check(self, function: Any, pools: dict[str, int]) -> PreparedCell:
        """See Task. One step on the first batch is judged by its loss, gradients, statistics and parameters; then a pass
        whose steps are too small to change a parameter, by each batch's loss and by the statistics, which would be others if
        a tile were left out or came twice.

        Each cell has a state of its own, since a call changes it. After timing, verify looks whether that is finite still,
        and at one more first step, with other labels.
        """
        self._judge_step(function, 0)
        called = self._judge_pass(function)
        paths, labels = self.arrays
        state = fresh()
        call = self._call(function, state, paths, labels, LR)

        def verify(last: Any) -> dict[str, Any]:
            self._require_losses(last)
            if not all(np.isfinite(array).all() for arrays in state for array in arrays):
                raise WrongAnswer("a parameter, a moment or a statistic is not finite after all passes")
            try:
                return self._judge_step(function, 1)
            except WrongAnswer as error:
                raise WrongAnswer(f"with other labels, {error}") from error

        return PreparedCell.of(function, call, verify, pools, called)

    def _call(
        self, function: Any, state: State, paths: list[str], labels: np.ndarray, lr: float
    ) -> Callable[[], Sequence[float]]:
        settings = 1, self.problem.batch, SEED, self.problem.workers, lr
        return functools.partial(function, *state, paths, labels, *settings)

    def _require_losses(self, losses: Sequence[float]) -> None:
        batches = -(-self.problem.n // self.problem.batch)
        if len(losses) != batches or not np.isfinite(losses).all():
            raise WrongAnswer(f"a pass has the losses {losses}, not one finite loss for each of {batches} batches")

    def _images(self, places: Sequence[int]) -> np.ndarray:
        """The pixels of the tiles, (N, 3, 64, 64) in float64."""
        return np.stack([tiles.values(self.arrays[0], i) for i in places])

    def _judge_step(self, function: Any, shift: int) -> dict[str, Any]:
        """Judge one step on the first tiles, whose labels are raised by `shift`; return the errors and the call's seconds."""
        paths, labels = (each[: self.problem.batch] for each in self.arrays)
        labels, state = (labels + shift) % CLASSES, fresh()
        start = perf_counter()
        losses = self._call(function, state, paths, labels, LR)()
        called = perf_counter() - start
        network = Reference(*_start())
        loss, gradients = network.gradients(self._images(range(len(paths))), labels)
        if len(losses) != 1 or not abs(losses[0] - loss) <= LOSS * abs(loss):
            raise WrongAnswer(f"the loss of a step is {losses}, not {loss:.8g}")
        worst = 0.0
        for i, (before, parameter, first, second, gradient) in enumerate(
            zip(_start()[0], *state[:3], gradients, strict=True)
        ):
            pairs = {"exp_avg": (first / (1 - BETA1), gradient), "exp_avg_sq": (second / (1 - BETA2), gradient**2)}
            for name, (moment, right) in pairs.items():
                worst = max(worst, _require_near(f"{name}[{i}]", moment, right, GRADIENT))
            change = LR / (1 - BETA1) * first.astype(np.float64) / (np.sqrt(second.astype(np.float64) / (1 - BETA2)) + EPS)
            slack = 16 * oracle.UNIT["float32"] * (np.abs(before) + np.abs(change))
            if not (np.abs(parameter - (before - change)) <= slack).all():
                raise WrongAnswer(f"parameters[{i}] differs from Adam's update for its moments")
        _require_statistics(state[3], network.statistics)
        return {"relative_l2": worst, "worst": worst / GRADIENT, "called": called}

    def _judge_pass(self, function: Any) -> float:
        """Judge a pass that changes no parameter; return its seconds."""
        import torch  # imported here, because asv imports every file of the suite

        paths, labels = self.arrays
        state, network = fresh(), Reference(*_start())
        start = perf_counter()
        losses = self._call(function, state, paths, labels, STILL)()
        called = perf_counter() - start
        self._require_losses(losses)
        order = torch.randperm(len(paths), generator=torch.Generator().manual_seed(SEED)).tolist()
        for i, loss in enumerate(losses):
            places = order[i * self.problem.batch : (i + 1) * self.problem.batch]
            right = network.loss(self._images(places), labels[places])
            if not abs(loss - right) <= LOSS * abs(right):
                raise WrongAnswer(f"the loss of batch {i} of a pass is {loss:.8g}, not {right:.8g}")
        _require_statistics(state[3], network.statistics)
        return called


def _products() -> int:
    """Multiplications of a pass forward over one tile."""
    found, side = 0, eurosat.SIDE
    for i, (k, c, r, stride) in enumerate(CONVOLUTIONS):
        if r == 1:  # beside the block's first layer, which has made the side smaller already
            found += k * c * side**2
            continue
        side //= stride
        found += k * c * r * r * side**2
        side //= 1 + (i == 0)  # by the pooling
    return found + 512 * CLASSES


def _require_near(name: str, array: np.ndarray, right: np.ndarray, allowed: float) -> float:
    error = float(np.linalg.norm(array - right) / np.linalg.norm(right))
    if not error <= allowed:
        raise WrongAnswer(f"{name} has relative L2 error {error:.1e}, allowed {allowed:.0e}")
    return error


def _require_statistics(found: list[np.ndarray], right: list[Any]) -> None:
    for i, (array, known) in enumerate(zip(found, right, strict=True)):
        _require_near(f"statistics[{i}]", array, known.numpy(), STATISTIC)


@functools.cache  # eleven million numbers are drawn once
def _start() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Parameters as He et al. draw them (arXiv 1502.01852), and statistics of nothing yet; the same every time."""
    random = np.random.default_rng(0)
    parameters: list[np.ndarray] = []
    statistics: list[np.ndarray] = []
    for k, c, r, _ in CONVOLUTIONS:
        weight = random.standard_normal((k, c, r, r), np.float32) * np.float32(np.sqrt(2 / (k * r * r)))
        parameters += [weight, np.ones(k, np.float32), np.zeros(k, np.float32)]
        statistics += [np.zeros(k, np.float32), np.ones(k, np.float32)]
    bound = 1 / np.sqrt(512)
    parameters += [random.uniform(-bound, bound, shape).astype(np.float32) for shape in ((CLASSES, 512), (CLASSES,))]
    return parameters, statistics


def fresh() -> State:
    """The arrays that train_tiles changes: parameters, zero moments, and statistics."""
    parameters, statistics = ([one.copy() for one in arrays] for arrays in _start())
    return parameters, *([np.zeros_like(one) for one in parameters] for _ in range(2)), statistics


class Reference:
    """ResNet-18 in float64, written down once more: by torch's convolution and autograd, normalised and pooled by hand."""

    def __init__(self, parameters: Sequence[np.ndarray], statistics: Sequence[np.ndarray]) -> None:
        import torch  # imported here, because asv imports every file of the suite

        self.torch = torch
        self.leaves = [torch.from_numpy(array.astype(np.float64)).requires_grad_() for array in parameters]
        self.statistics = [torch.from_numpy(array.astype(np.float64)) for array in statistics]

    def gradients(self, images: np.ndarray, labels: np.ndarray) -> tuple[float, list[np.ndarray]]:
        """The mean cross entropy of a batch, and its gradient by each parameter; the statistics take the batch in."""
        loss = self._loss(images, labels)
        return float(loss.detach()), [gradient.numpy() for gradient in self.torch.autograd.grad(loss, self.leaves)]

    def loss(self, images: np.ndarray, labels: np.ndarray) -> float:
        """The same without gradients."""
        with self.torch.no_grad():
            return float(self._loss(images, labels))

    def _loss(self, images: np.ndarray, labels: np.ndarray) -> Any:
        layers = self._layers()
        values = next(layers)(self.torch.from_numpy(images)).clamp(min=0)
        padded = self.torch.nn.functional.pad(values, (1, 1, 1, 1))  # zeros, which are no less than what is clamped
        values = padded.unfold(2, 3, 2).unfold(3, 3, 2).amax(dim=(-1, -2))
        for stage, block in itertools.product(range(4), range(2)):
            first, second = next(layers), next(layers)
            made = second(first(values).clamp(min=0))
            values = (made + (next(layers)(values) if stage and not block else values)).clamp(min=0)
        scores = self.torch.log_softmax(values.mean(dim=(2, 3)) @ self.leaves[-2].T + self.leaves[-1], dim=1)
        return -scores[self.torch.arange(len(labels)), self.torch.from_numpy(labels)].mean()

    def _layers(self) -> Iterator[Callable[[Any], Any]]:
        for i, (_, _, r, stride) in enumerate(CONVOLUTIONS):
            yield functools.partial(self._normalised, i, r // 2, stride)

    def _normalised(self, i: int, padding: int, stride: int, values: Any) -> Any:
        """A convolution whose outputs have mean and variance as the parameters say, over the batch."""
        weight, scale, offset = self.leaves[3 * i : 3 * i + 3]
        values = self.torch.conv2d(values, weight, stride=stride, padding=padding)
        mean, variance = values.mean(dim=(0, 2, 3)), values.var(dim=(0, 2, 3), correction=0)
        count = values.numel() // len(mean)
        for place, new in ((2 * i, mean), (2 * i + 1, variance * count / (count - 1))):
            self.statistics[place] = (1 - MOMENTUM) * self.statistics[place] + MOMENTUM * new.detach()
        factor = (scale / (variance + BN_EPS).sqrt())[:, None, None]
        return (values - mean[:, None, None]) * factor + offset[:, None, None]
