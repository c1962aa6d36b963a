"""Calls of one function on any machines, of which each answer is needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from distributed import Future

from convbench.cluster import pool
from convbench.cluster.pool import Pool, Task, Work
from convbench.cluster.remote import Facts, Job
from convbench.gate.failures import Failure

LONGEST_SECONDS = 24 * 3600.0  # of a call


def answers(
    machines: Pool, what: str, function: Callable[..., Any], calls: Sequence[tuple[str, tuple[Any, ...]]]
) -> list[Any]:
    """What a function returns for each call: its title and its arguments, after the project. Raises Failure.

    An exception of click that it returns instead is raised here, with its exit status.
    """
    work = _Batch(machines, function, list(calls), list(range(len(calls))))
    machines.run(work, what)
    return [work.found[place] for place in range(len(calls))]


@dataclass
class _Batch(Work):
    """waiting: the places of calls that are not begun; begun: where each of the others runs; found: the answers."""

    machines: Pool
    function: Callable[..., Any]
    calls: Sequence[tuple[str, tuple[Any, ...]]]
    waiting: list[int]
    begun: dict[int, str] = field(default_factory=dict)
    found: dict[int, Any] = field(default_factory=dict)

    def next(self, machine: Facts) -> Task | None:
        if not self.waiting:
            return None
        place = self.waiting.pop(0)
        self.begun[place] = machine.name
        title, arguments = self.calls[place]
        job = Job(self.machines.source, self.function, arguments, LONGEST_SECONDS, pool.PATIENCE_SECONDS)
        key = str(time.time_ns())  # what another call has measured is no answer to this one
        return Task(title, machine.name, job, place, key=key)

    def done(self, task: Task, future: Future, answer: Any) -> bool:
        del self.begun[task.about]
        self.found[task.about] = answer
        return False

    def failed(self, task: Task, reason: str) -> None:
        raise Failure(reason)

    def absent(self, name: str, reason: str) -> None:
        """Have other machines measure what was measured there."""
        self.waiting += [place for place, machine in self.begun.items() if machine == name]

    def left(self) -> int:
        return len(self.waiting)
