"""Convolutions and their gradients as tasks; both are linear in their inputs, which the check after timing uses."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.errors import WrongAnswer
from benchmarks.timing.prepared_cell import PreparedCell
from benchmarks.workloads import inputs, operations, oracle, problems
from benchmarks.workloads.problems import Problem
from benchmarks.workloads.tasks import Task, once_more


class Convolution(Task):
    """One of the three operations of benchmarks/workloads/operations.py on a convolution's problem."""

    def __init__(self, operation: str, problem: Problem) -> None:
        self.operation, self.problem = operation, problem

    @staticmethod
    def parse(label: str) -> Problem:
        return Problem.parse(label)

    @classmethod
    def find(cls, text: str) -> Problem:
        """A problem by its name in a set, with the set's data, or by its label. Raises LookupError with near matches."""
        named = {
            f"{path.stem}/{title}": problem
            for path in sorted(problems.SETS.glob("*.toml"))
            for title, problem in problems.load_set(path.stem).items()
        }
        for name, problem in named.items():
            if text in (name, name.partition("/")[2]):
                return problem
        if problems.LABEL.fullmatch(text):
            return cls.parse(text)
        near = difflib.get_close_matches(text, [*named, *(name.partition("/")[2] for name in named)], n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise LookupError(f"no problem is called {text!r}; {hint}any shape goes by its label, as n1c64h56w56k64r3s3p1")

    @functools.cached_property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return inputs.make(self.problem, self.operation)

    @functools.cached_property
    def known(self) -> list[oracle.Reference]:
        """A reference for each array that the operation returns."""
        return [self._reference(of) for of in operations.OPERATIONS[self.operation].returned]

    def recall(self) -> None:
        prints = tuple(map(inputs.fingerprint, self.arrays))
        self.known = [
            inputs.cached_reference(self.problem, prints, functools.partial(self._reference, of), of)
            for of in operations.OPERATIONS[self.operation].returned
        ]

    def describe(self) -> dict[str, Any]:
        return operations.describe(self.operation, self.problem)

    def work(self) -> dict[str, tuple[float, str]]:
        problem = self.problem
        _, _, p, q = problem.output_shape
        return {
            "flops": (operations.flops(self.operation, problem), "FLOPs"),
            "patches": (problem.n * problem.c * p * q * problem.r * problem.s, "patch elements"),
            "pairs": (problem.n * problem.k * problem.c // problem.groups, "pairs of images"),
            "taps": (problem.k * problem.taps, "passes over an image"),
            "outputs": (problem.outputs, "outputs"),
        }

    def unsupported(self, function: Any) -> str | None:
        shapes = (operations.shape(self.problem, tensor) for tensor in operations.OPERATIONS[self.operation].given)
        return function.unsupported(*shapes, **self._settings, dtype=self.problem.dtype)

    def check(
        self,
        function: Any,
        pools: dict[str, int],
        call: Callable[[], Any] | None = None,
        known: Sequence[oracle.Reference] | None = None,
    ) -> PreparedCell:
        """See Task. call: the timed function, if it is not the implementation itself. known: the references if they are
        not the problem's.

        After timing, the cell's verify looks at the last timed output, and at one more of the input negated where it lies: an
        implementation that remembers its answers is right only until its input changes.
        """
        problem, arrays, known = self.problem, self.arrays, self.known if known is None else known
        given = arrays
        if call is None:
            given = tuple(map(function.to_device, arrays))
            call = functools.partial(function, *given, **self._settings)
        prints = tuple(map(inputs.fingerprint, arrays))
        start = perf_counter()
        output = call()
        function.synchronize()
        called = perf_counter() - start
        for reference, part in _parts(known, function.to_numpy(output)):
            oracle.compare(problem, function.family, reference, part)
        if prints != tuple(map(inputs.fingerprint, arrays)):
            raise WrongAnswer("it changed what it was given")

        def judge(references: Sequence[oracle.Reference], output: Any) -> dict[str, float]:
            found = [
                oracle.compare_at(problem, function.family, reference, part.reshape(-1)[reference.positions])
                for reference, part in _parts(references, output)
            ]
            return {name: max(getattr(errors, name) for errors in found) for name in ("relative_l2", "worst")}

        def verify(last: Any) -> dict[str, Any]:
            facts = judge(known, function.to_numpy(last))
            negated = [reference.negated() for reference in known]
            _negate(given[0])
            try:
                again = once_more(
                    function, call, lambda output: judge(negated, function.to_numpy(output)), "with the input negated"
                )
            finally:
                _negate(given[0])
            return {**again, **facts}

        return PreparedCell.of(function, call, verify, pools, called)

    def restore(self) -> None:
        for array, fresh in zip(self.arrays, inputs.make(self.problem, self.operation), strict=True):
            np.copyto(array, fresh)

    @property
    def _settings(self) -> dict[str, Any]:
        return operations.arguments(self.operation, self.problem)

    def _reference(self, of: str) -> oracle.Reference:
        tensors = dict(zip(operations.OPERATIONS[self.operation].given, self.arrays, strict=True))
        return oracle.reference(self.problem, **tensors, of=of)


def _negate(array: Any) -> None:
    """Negate an array of any library in place, on a device as on the host."""
    array *= -1


def _parts(known: Sequence[oracle.Reference], output: Any) -> list[tuple[oracle.Reference, Any]]:
    """Each array that was returned, beside its reference."""
    parts = output if isinstance(output, tuple) else (output,)
    if len(parts) != len(known):
        raise WrongAnswer(f"it returned {len(parts)} arrays, not {len(known)}")
    return list(zip(known, parts, strict=True))
