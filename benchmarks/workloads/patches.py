"""Laying out an image's windows as the columns of a matrix, as a task: elements moved, of an image of any rank."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.errors import WrongAnswer
from benchmarks.timing.prepared_cell import PreparedCell
from benchmarks.workloads import inputs
from benchmarks.workloads.tasks import Task, once_more

SIZES = r"\d+(?:x\d+)*"
LABEL = re.compile(rf"i({SIZES})k({SIZES})(?:t(\d+))?(?:p({SIZES}))?(?:d(\d+))?(?:f(-?[\d.]+))?")


@dataclass(frozen=True)
class Windows:
    """The windows of an image: sizes and padding along each axis, one stride, one dilation, and what the padding holds.

    A label spells them: i512x512k3x3p1 is an image (512, 512), windows of 3x3, padding 1. Optional parts follow in this
    order: t2 (stride), p1 or p1x0 (padding), d2 (dilation), f-1 (fill).
    """

    image: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: int = 1
    padding: tuple[int, ...] = ()
    dilation: int = 1
    fill: float = 0.0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Raises ValueError for windows that the padded image does not have."""
        object.__setattr__(self, "padding", self.padding or (0,) * len(self.image))
        if not len(self.image) == len(self.kernel) == len(self.padding):
            raise ValueError(f"{self.label}: image, window and padding must have as many axes as each other")
        if min(self.stride, self.dilation, *self.image, *self.kernel) < 1 or min(self.pixels) < 1:
            raise ValueError(f"{self.label}: the window is larger than the padded image, or a size or stride is zero")

    @classmethod
    def parse(cls, label: str) -> Windows:
        """Read a label. Raises ValueError that shows what one looks like."""
        if (match := LABEL.fullmatch(label)) is None:
            raise ValueError(f"{label!r} is not a label of windows; one looks like i512x512k3x3t2p1d1f0.5")
        image, kernel, stride, padding, dilation, fill = match.groups()
        pads = _sizes(padding or "0")
        if len(pads) == 1:
            pads *= image.count("x") + 1
        return cls(_sizes(image), _sizes(kernel), int(stride or 1), pads, int(dilation or 1), float(fill or 0))

    @property
    def label(self) -> str:
        """The windows in one word."""
        text = f"i{_joined(self.image)}k{_joined(self.kernel)}"
        if self.stride != 1:
            text += f"t{self.stride}"
        if any(self.padding):
            text += f"p{self.padding[0]}" if len({*self.padding}) == 1 else f"p{_joined(self.padding)}"
        if self.dilation != 1:
            text += f"d{self.dilation}"
        return text if self.fill == 0 else f"{text}f{self.fill:.12g}"

    @property
    def pixels(self) -> tuple[int, ...]:
        """How many windows there are along each axis."""
        axes = zip(self.image, self.kernel, self.padding, strict=True)
        return tuple((size + 2 * pad - self.dilation * (k - 1) - 1) // self.stride + 1 for size, k, pad in axes)

    @property
    def elements(self) -> int:
        """The elements of the matrix: taps times windows."""
        return math.prod(self.kernel) * math.prod(self.pixels)

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of im2col."""
        return {"stride": self.stride, "padding": self.padding, "dilation": self.dilation, "fill": self.fill}


class Im2col(Task):
    """im2col(image, kernel, stride, padding, dilation, fill): a matrix with a row for each tap, a column for each window."""

    baseline = "cpu.strided"

    def __init__(self, operation: str, problem: Windows) -> None:
        self.operation, self.problem = operation, problem

    @staticmethod
    def parse(label: str) -> Windows:
        return Windows.parse(label)

    @functools.cached_property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The image, no two neighbours of which are alike."""
        return (inputs.random(self.problem.image, 0).astype(self.problem.dtype, copy=False),)

    def describe(self) -> dict[str, Any]:
        """FLOPs: nothing is computed, and an element that is laid out counts as one. Bytes: image read and matrix written."""
        problem = self.problem
        return {
            "label": problem.label,
            "output": [math.prod(problem.kernel), math.prod(problem.pixels)],
            "flops": problem.elements,
            "bytes": np.dtype(problem.dtype).itemsize * (math.prod(problem.image) + problem.elements),
            "dtype": problem.dtype,
        }

    def work(self) -> dict[str, tuple[float, str]]:
        return {"patches": (self.problem.elements, "patch elements")}

    def unsupported(self, function: Any) -> str | None:
        return function.unsupported(
            self.problem.image, self.problem.kernel, **self.problem.arguments, dtype=self.problem.dtype
        )

    def recall(self) -> None:
        """Do nothing: the reference is views of the padded image."""

    def restore(self) -> None:
        np.copyto(self.arrays[0], inputs.random(self.problem.image, 0))

    def check(self, function: Any, pools: dict[str, int]) -> PreparedCell:
        """See Task. Whole matrices are compared, since nothing is rounded. After timing, verify looks at the last timed one,
        and at that of the negated image.
        """
        (image,) = self.arrays
        before = inputs.fingerprint(image)
        call = functools.partial(function, image, self.problem.kernel, **self.problem.arguments)
        start = perf_counter()
        output = call()
        called = perf_counter() - start
        self._judge(output)
        if inputs.fingerprint(image) != before:
            raise WrongAnswer("it changed the image")
        if np.may_share_memory(output, image):
            raise WrongAnswer("its matrix shares memory with the image")

        def verify(last: Any) -> dict[str, Any]:
            facts = self._judge(last)
            negated = functools.partial(function, -image, self.problem.kernel, **self.problem.arguments)
            again = once_more(function, negated, functools.partial(self._judge, sign=-1), "with the image negated")
            return {**again, **facts}

        return PreparedCell.of(function, call, verify, pools, called)

    def _judge(self, output: Any, sign: int = 1) -> dict[str, float]:
        """Compare a matrix with the padded image, a tap at a time; raise WrongAnswer or return the errors."""
        problem = self.problem
        shape = math.prod(problem.kernel), math.prod(problem.pixels)
        if not isinstance(output, np.ndarray) or output.shape != shape or output.dtype != problem.dtype:
            found = getattr(output, "shape", None), str(getattr(output, "dtype", type(output).__name__))
            raise WrongAnswer(f"the matrix has shape {found[0]} and dtype {found[1]}, not {shape} and {problem.dtype}")
        border = [(pad, pad) for pad in problem.padding]
        padded = np.pad(sign * self.arrays[0], border, constant_values=problem.fill)
        for row, tap in zip(output, np.ndindex(problem.kernel), strict=True):
            corner = (problem.dilation * place for place in tap)
            axes = zip(corner, problem.pixels, strict=True)
            expected = padded[tuple(slice(i, i + problem.stride * n, problem.stride) for i, n in axes)]
            found = row.reshape(problem.pixels)
            same = found == expected
            if math.isnan(problem.fill):
                same |= np.isnan(found) & np.isnan(expected)
            if not same.all():
                place = tuple(map(int, np.unravel_index(int(np.argmin(same)), problem.pixels)))
                raise WrongAnswer(f"tap {tap} of the window at {place} is {found[place]:.7g}, not {expected[place]:.7g}")
        return {"relative_l2": 0.0, "worst": 0.0}


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("x")))


def _joined(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))
