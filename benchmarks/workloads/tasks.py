"""An operation on one problem, as it is measured: its inputs, its call and its verification."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from benchmarks.errors import WrongAnswer
from benchmarks.timing.prepared_cell import PreparedCell


class Task(ABC):
    """An operation on one problem. Making one is cheap: inputs and references are made when first used.

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
        """The arguments that every implementation gets. Raises Missing."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The attributes stored with results: label, dtype, shape of the output, nominal FLOPs and minimum bytes."""

    @abstractmethod
    def work(self) -> dict[str, tuple[float, str]]:
        """The amount of work, by the kinds of cutoffs.toml, each with its unit in words."""

    @abstractmethod
    def unsupported(self, function: Any) -> str | None:
        """Return why an implementation cannot do it, or None."""

    @abstractmethod
    def recall(self) -> None:
        """Make the inputs, and take the references from disk if they have been kept. Raises Missing."""

    @abstractmethod
    def check(self, function: Any, pools: dict[str, int]) -> PreparedCell:
        """Make the cell of a loaded implementation; raises WrongAnswer if its first output is wrong."""

    @abstractmethod
    def restore(self) -> None:
        """Restore the inputs, which a faulty implementation may have changed."""


def once_more(function: Any, call: Callable[[], Any], judge: Callable[[Any], dict[str, Any]], changed: str) -> dict[str, Any]:
    """Call an implementation once more, after timing and on other inputs: what its judge returns, and "called", in seconds.

    Raises WrongAnswer, which says what was changed.
    """
    start = perf_counter()
    output = call()
    function.synchronize()
    called = perf_counter() - start
    try:
        return {**judge(output), "called": called}
    except WrongAnswer as error:
        raise WrongAnswer(f"{changed}, {error}") from error
