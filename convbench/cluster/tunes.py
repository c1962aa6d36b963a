"""`convbench tune --cluster`: a machine of each name measures what is fastest there, and remembers it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import click
from distributed import Future
from rich.console import Console

from convbench.asv.project import Project
from convbench.cluster import batch, measuring, pool
from convbench.cluster.measuring import Tuned
from convbench.cluster.pool import Pool, Task, Work
from convbench.cluster.remote import Facts, Job
from convbench.common import interrupts, lock
from convbench.common.atomic_write import whole
from convbench.speed.measure import Again


def run(project: Project, again: Again, address: str, names: str, console: Console) -> list[str]:
    """Tune HEAD on one machine of each of these names; the times come into its results. Returns the lines of a report.

    Raises ClickException in one sentence for everything that prevents it or went wrong.
    """
    commit = project.commit()
    with (
        lock.folder(project.work, project.results),
        interrupts.interruptible(lambda: "the measurements are kept on the machines, and the same command resumes there"),
        pool.connect(address, project, [commit], names, console) as machines,
    ):
        machines.wait()
        work = _Tuning(machines, commit, again)
        machines.run(work, "tuning")
    if work.given_up:
        raise click.ClickException("; ".join([*work.given_up, *work.said]))
    return work.said


@dataclass
class _Tuning(Work):
    """A task for each name. begun: the names that have theirs; said: lines of a report; given_up: sentences."""

    machines: Pool
    commit: str
    again: Again
    begun: set[str] = field(default_factory=set)
    said: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)

    def next(self, machine: Facts) -> Task | None:
        if machine.name in self.begun:
            return None
        self.begun.add(machine.name)
        arguments = self.commit, self.again
        job = Job(self.machines.source, measuring.tune, arguments, batch.LONGEST_SECONDS, pool.PATIENCE_SECONDS)
        return Task(f"tuning of {self.commit[:8]}", machine.name, job, key=str(time.time_ns()))

    def done(self, task: Task, future: Future, answer: Tuned) -> bool:
        path = self.machines.project.results / task.machine / answer.file
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as beside:
            beside.write_bytes(answer.times)
        self.said += [f"{task.machine}: {line}" for line in answer.said]
        return False

    def failed(self, task: Task, reason: str) -> None:
        self.given_up.append(reason)

    def absent(self, name: str, reason: str) -> None:
        self.given_up.append(f"{name} is not tuned: {reason}")

    def left(self) -> int:
        return 0
