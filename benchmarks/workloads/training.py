"""One step of training as a task: in place on a network's parameters, judged by its gradients."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.errors import Missing, WrongAnswer
from benchmarks.timing.prepared_cell import PreparedCell
from benchmarks.workloads import digits, oracle
from benchmarks.workloads.tasks import Task, once_more

STEP, LR, BETA1, BETA2, EPS = 1, 1e-3, 0.9, 0.999, 1e-8  # of the step that is judged: the first
# Relative to a loss, and to the norm of a parameter's gradient: float32 against float64 through six layers, where what is
# near zero or nearly the largest of four may be taken for another.
LOSS, GRADIENT = 1e-5, 1e-3
CLASSES = 10
# Of weights and biases, first layer first.
CONVOLUTIONS = ((3, 1, 3, 3), (3,), (3, 3, 3, 3), (3,), (6, 3, 3, 3), (6,), (6, 6, 3, 3), (6,))
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "perceptron": ((1000, 784), (1000,), (1000, 1000), (1000,), (10, 1000), (10,)),
    "convolutional": (*CONVOLUTIONS, (50, 96), (50,), (10, 50), (10,)),
    "text": (*CONVOLUTIONS, (30, 96), (30,), (10, 30), (10,)),
}


@dataclass(frozen=True)
class Training:
    """A network and the images of a batch. A label spells both: convolutional-n1000."""

    network: str
    n: int
    dtype: str = "float32"

    @classmethod
    def parse(cls, label: str) -> Training:
        """Read a label. Raises ValueError that shows what one looks like."""
        match = re.fullmatch(rf"({'|'.join(SHAPES)})-n([1-9]\d*)", label)
        if match is None:
            raise ValueError(f"{label!r} is not a training's label; one looks like convolutional-n1000 or perceptron-n100")
        return cls(match[1], int(match[2]))

    @property
    def label(self) -> str:
        return f"{self.network}-n{self.n}"


# Products forward for one image, and parameters. The convolutions' outputs have 26x26, 24x24, 10x10 and 8x8 pixels.
CONVOLVED, WEIGHTS = 676 * 27 + 576 * 81 + 100 * 162 + 64 * 324, 30 + 84 + 168 + 330
WORK = {
    "perceptron": (784_000 + 1_000_000 + 10_000, 1_796_010),
    "convolutional": (CONVOLVED + 4800 + 500, WEIGHTS + 4850 + 510),
    "text": (CONVOLVED + 2880 + 300, WEIGHTS + 2910 + 310),
}


class TrainStep(Task):
    """train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step), in place on the arrays of three lists."""

    baseline = "cpu.torch"

    def __init__(self, operation: str, problem: Training) -> None:
        self.operation, self.problem = operation, problem

    @staticmethod
    def parse(label: str) -> Training:
        return Training.parse(label)

    @functools.cached_property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Images and labels. Raises Missing."""
        images, labels = digits.batch(self.problem.n)
        return shown(self.problem.network, images), labels

    def describe(self) -> dict[str, Any]:
        """FLOPs: three times those of the products forward, as gradients of inputs and of weights cost as much each. Bytes:
        every parameter's four arrays read and three written, and the images.
        """
        n, (products, parameters) = self.problem.n, WORK[self.problem.network]
        return {
            "label": self.problem.label,
            "output": [n, CLASSES],
            "flops": 3 * 2 * n * products,
            "bytes": 4 * (7 * parameters + n * digits.SIDE**2),
            "dtype": self.problem.dtype,
        }

    def work(self) -> dict[str, tuple[float, str]]:
        return {"outputs": (self.problem.n, "images")}

    def unsupported(self, function: Any) -> str | None:
        try:
            return function.unsupported(self.problem.network)
        except LookupError as error:  # a commit from before the network
            return str(error)

    def recall(self) -> None:
        """Read the digits; the references take no longer to compute than to read."""
        self.arrays  # noqa: B018

    def restore(self) -> None:
        """Do nothing: the images are not written to."""

    def check(self, function: Any, pools: dict[str, int]) -> PreparedCell:
        """See Task. Each cell has parameters of its own, since a call changes them. After timing, verify looks whether they
        are finite still, and at one more first step, with other labels.
        """
        _, labels = self.arrays
        state, call = self._start(function, labels)
        start = perf_counter()
        loss = call()
        called = perf_counter() - start
        self._judge(loss, host(function, state), labels)

        def verify(last: Any) -> dict[str, Any]:
            arrays = [array for each in host(function, state) for array in each]
            if not all(np.isfinite(array).all() for array in arrays) or not np.isfinite(last):
                raise WrongAnswer("a parameter, a moment or the loss is not finite after all steps")
            others = (labels + 1) % CLASSES
            fresh, again = self._start(function, others)
            return once_more(
                function, again, lambda loss: self._judge(loss, host(function, fresh), others), "with other labels"
            )

        return PreparedCell.of(function, call, verify, pools, called)

    def _start(self, function: Any, labels: np.ndarray) -> tuple[tuple[list[Any], ...], Callable[[], Any]]:
        """Fresh parameters where the implementation works, and a call that makes the first step on them."""
        state = placed(function, fresh(self.problem.network))
        given = (function.to_device(array) for array in (self.arrays[0], labels))
        return state, functools.partial(function, self.problem.network, *state, *given, STEP, LR)

    def _judge(self, loss: Any, state: Sequence[list[np.ndarray]], labels: np.ndarray) -> dict[str, float]:
        """Compare a first step's loss and gradients with those in float64, and what Adam made of them with its definition."""
        expected_loss, gradients = reference(self.problem.network, fresh(self.problem.network)[0], self.arrays[0], labels)
        if not abs(loss - expected_loss) <= LOSS * abs(expected_loss):
            raise WrongAnswer(f"the loss is {loss:.8g}, not {expected_loss:.8g}")
        worst = 0.0
        for i, (before, parameter, first, second, gradient) in enumerate(
            zip(fresh(self.problem.network)[0], *state, gradients, strict=True)
        ):
            pairs = {"exp_avg": (first / (1 - BETA1), gradient), "exp_avg_sq": (second / (1 - BETA2), gradient**2)}
            for name, (moment, right) in pairs.items():
                error = float(np.linalg.norm(moment - right) / np.linalg.norm(right))
                worst = max(worst, error)
                if not error <= GRADIENT:
                    raise WrongAnswer(f"{name}[{i}] has relative L2 error {error:.1e}, allowed {GRADIENT:.0e}")
            change = LR / (1 - BETA1) * first.astype(np.float64) / (np.sqrt(second.astype(np.float64) / (1 - BETA2)) + EPS)
            slack = 16 * oracle.UNIT["float32"] * (np.abs(before) + np.abs(change))
            if not (np.abs(parameter - (before - change)) <= slack).all():
                raise WrongAnswer(f"parameters[{i}] differs from Adam's update for its moments")
        return {"relative_l2": worst, "worst": worst / GRADIENT}


def placed(function: Any, state: Sequence[list[np.ndarray]]) -> tuple[list[Any], ...]:
    """Parameters and moments where an implementation takes them from; on the CPU the arrays themselves."""
    return tuple(list(map(function.to_device, arrays)) for arrays in state)


def host(function: Any, state: Sequence[list[Any]]) -> tuple[list[np.ndarray], ...]:
    """Parameters and moments as NumPy arrays."""
    return tuple(list(map(function.to_numpy, arrays)) for arrays in state)


def shown(network: str, images: np.ndarray) -> np.ndarray:
    """Images normalised for a network: the text's by MNIST's mean and standard deviation, the others' from 0 to 1."""
    return digits.normalised(images) if network == "text" else images


def fresh(network: str, seed: int = 0) -> tuple[list[np.ndarray], ...]:
    """Parameters, uniform in +-1/sqrt(inputs) as torch draws them, and no moments yet; the same every time."""
    random = np.random.default_rng(seed)
    parameters: list[np.ndarray] = []
    for weight, bias in itertools.pairwise(SHAPES[network]):
        if len(weight) > 1:
            bound = 1 / np.sqrt(np.prod(weight[1:]))
            parameters += [random.uniform(-bound, bound, shape).astype(np.float32) for shape in (weight, bias)]
    return parameters, *([np.zeros_like(one) for one in parameters] for _ in range(2))


def reference(
    network: str, parameters: list[np.ndarray], images: np.ndarray, labels: np.ndarray
) -> tuple[float, list[np.ndarray]]:
    """Loss and gradients in float64, by torch's own layers and autograd; the networks are written down here once more.

    Raises Missing without torch.
    """
    try:
        import torch
    except ImportError as error:
        raise Missing("a step of training is judged by torch's gradients: pip install torch") from error

    def relu(values: Any) -> Any:
        return values.clamp(min=0)

    leaves = [torch.from_numpy(array.astype(np.float64)).requires_grad_() for array in parameters]
    pairs = list(zip(leaves[::2], leaves[1::2], strict=True))
    values, answers = torch.from_numpy(images.astype(np.float64)), torch.from_numpy(labels)
    if network != "perceptron":
        for i, (weight, bias) in enumerate(pairs[:4]):
            values = relu(torch.conv2d(values, weight, bias))
            if i in (1, 3):
                values = values.unfold(2, 2, 2).unfold(3, 2, 2).amax(dim=(-1, -2))
        pairs = pairs[4:]
    values = values.reshape(len(images), -1)
    before, behind = kept(network, len(images))
    values = values * before
    for weight, bias in pairs[:-1]:
        values = relu(values @ weight.T + bias)
    values = values * behind
    weight, bias = pairs[-1]
    scores = torch.log_softmax(values @ weight.T + bias, dim=1)
    loss = -scores[torch.arange(len(labels)), answers].mean()
    return float(loss.detach()), [gradient.numpy() for gradient in torch.autograd.grad(loss, leaves)]


def kept(network: str, n: int) -> tuple[Any, Any]:
    """What the first step leaves of n images' inputs to the first linear layer and to the last, as factors in float64."""
    import torch

    if network == "convolutional":
        random = torch.rand(n, 50, generator=torch.Generator().manual_seed(STEP))
        return 1.0, (random >= 0.2).double() / 0.8
    if network == "text":  # four fifths of 65536 places of a hash, as every device can compute it
        places = np.arange(n * (96 + 30), dtype=np.int32) + np.int32(n * (96 + 30) * STEP)
        mixed = (places ^ (places >> 15)) * np.int32(0x2C1B3C6D)
        mixed = (mixed ^ (mixed >> 12)) * np.int32(0x297A2D39)
        left = torch.from_numpy(((mixed ^ (mixed >> 15)) % 65536 >= 13108) / 0.8)
        return left[: n * 96].reshape(n, 96), left[n * 96 :].reshape(n, 30)
    return 1.0, 1.0
