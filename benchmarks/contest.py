"""Contenders on one problem: each is checked as it enters, timed in turn with the others, and checked again at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import cell, clock, inputs, oracle, threads
from benchmarks.problems import Problem
from benchmarks.types import Skip


class Contest:
    """The contenders on one problem, in one process on `count` cores.

    arrays: what all of them are given. ready: the cells of those that were right so far. measured: what in_turn() found.
    """

    def __init__(self, problem: Problem, count: int) -> None:
        """Raises ValueError where the machine has fewer cores."""
        if count > (have := len(threads.cores())):
            raise ValueError(f"threads={count}, but this machine has {have} cores")
        self.problem, self.count = problem, count
        input, weight = self.arrays = inputs.make(problem)
        self.known = oracle.reference(problem, input, weight)
        self.ready: dict[str, cell.Cell] = {}
        self.measured: dict[str, clock.Measurement] = {}
        self._results: dict[str, dict[str, Any]] = {}
        threads.confine(count)

    def enter(self, name: str, make: Callable[[], cell.Cell]) -> None:
        """Make a contender's cell, which checks its first output; one that cannot take part has a result that says why."""
        self._results.setdefault(name, {"name": name})
        try:
            self.ready[name] = make()
        except Skip as skip:
            self._results[name] |= {"status": "skipped", "reason": str(skip)}
        except Exception as error:
            self._fail(name, f"{type(error).__name__}: {error}")

    def check(
        self, name: str, function: Any, call: Callable[[], Any] | None = None, known: oracle.Reference | None = None
    ) -> cell.Cell:
        """The cell of an implementation or, with what is called, of something like it. Raises Skip or oracle.WrongAnswer.

        known: the reference, where it is not the problem's.
        """
        self._results[name] = {"name": name, "device": function.device, "family": function.family}
        cell.require_support(function, self.problem)
        pools = threads.set_pools(self.count)  # after every load, since a library brings its own
        return cell.check(function, self.problem, self.arrays, [known or self.known], pools, call=call)

    def in_turn(self, seconds: float, least: int, others: dict[str, cell.Cell] | None = None) -> Iterator[float]:
        """Sample all that are ready, and others that nobody judges; yields the share that is done."""
        blocks = {name: each.block for name, each in {**(others or {}), **self.ready}.items()}
        return clock.in_turn(blocks, seconds, least, self.measured)

    def results(self) -> list[dict[str, Any]]:
        """A result for each in the order of entrance: status, samples and errors or the reason, and what it declares.

        One whose last timed output is wrong has no time.
        """
        for name, ready in self.ready.items():
            try:
                errors = ready.verify(ready.block.output)
                errors.pop("called")
                self._results[name] |= {"status": "ok", "samples": self.measured[name].samples, **errors}
            except Exception as error:
                self._fail(name, f"{type(error).__name__}: after timing: {error}")
        return list(self._results.values())

    def _fail(self, name: str, reason: str) -> None:
        self._results[name] |= {"status": "failed", "reason": reason}
        for array, fresh in zip(self.arrays, inputs.make(self.problem), strict=True):
            np.copyto(array, fresh)  # the others' too, should it have written to them
