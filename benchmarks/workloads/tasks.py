"""What an operation on one problem is to whoever measures it: inputs, how it is called, and whether the answer is right."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks.timing import clock, cuda_clock


@dataclass
class Cell:
    """One thing to time: a call, blocks of it, and the judge of its last output.

    verify judges the last timed output: it returns what it found (errors, and "called", the seconds of a call it made
    itself) for the side file, or raises WrongAnswer.
    threads: what each pool said it has. called: seconds spent in calls while preparing. arrays: whose they are, "numpy", or
    "cupy" or "torch" on a device. synchronize waits until the device has done what it was given.
    """

    call: Callable[[], Any]
    block: clock.Block
    verify: Callable[[Any], dict[str, Any]]
    threads: dict[str, int]
    called: float = 0.0
    arrays: str = "numpy"
    synchronize: Callable[[], None] | None = None

    @property
    def on_device(self) -> bool:
        return self.arrays != "numpy"

    @classmethod
    def of(
        cls,
        function: Any,
        call: Callable[[], Any],
        verify: Callable[[Any], dict[str, Any]],
        threads: dict[str, int],
        called: float,
    ) -> Cell:
        """The cell of an implementation's call, by the clock of where it computes.

        What takes NumPy arrays to a device and back is timed by the wall, transfers and all.
        """
        if function.arrays == "numpy":
            return cls(call, clock.Wall(call), verify, threads, called)
        block = cuda_clock.block(function, call)
        return cls(call, block, verify, threads, called, function.arrays, function.synchronize)


class Task(ABC):
    """An operation on one problem. It costs nothing to make: inputs and references are made when they are first asked for.

    operation: the name that impls has for it. problem: what is computed; it has a label and a dtype. baseline: the
    implementation that others are compared with.
    """

    operation: str
    problem: Any
    baseline: ClassVar[str] = "cpu.torch"

    @staticmethod
    @abstractmethod
    def parse(label: str) -> Any:
        """A problem by its label. Raises ValueError that shows what one looks like."""

    @classmethod
    def find(cls, text: str) -> Any:
        """A problem by its label or, where problems have names, by its name. Raises LookupError."""
        try:
            return cls.parse(text)
        except ValueError as error:
            raise LookupError(str(error)) from None

    @property
    @abstractmethod
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What every implementation is given. Raises inputs.Missing."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What travels to the readers of results: label, dtype, shape of the output, nominal FLOPs and least bytes."""

    @abstractmethod
    def work(self) -> dict[str, tuple[float, str]]:
        """How much there is to do, by the kinds of cutoffs.toml, each with its unit in words."""

    @abstractmethod
    def unsupported(self, function: Any) -> str | None:
        """Say in words why an implementation cannot do it, or None."""

    @abstractmethod
    def recall(self) -> None:
        """Make the inputs, and take the references from disk where they have been kept. Raises inputs.Missing."""

    @abstractmethod
    def check(self, function: Any, pools: dict[str, int]) -> Cell:
        """Make the cell of a loaded implementation; raises oracle.WrongAnswer where its first output is wrong."""

    @abstractmethod
    def restore(self) -> None:
        """Undo what a faulty implementation may have done to the inputs."""
