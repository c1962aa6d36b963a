"""`convbench bisect --cluster`: the gates of a bisection on many machines, which together halve a range faster."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import click
from rich.console import Console

from convbench.asv.project import Project
from convbench.bisect import ends, search
from convbench.bisect.answer import Found
from convbench.bisect.kept import Builds
from convbench.cluster import batch, pool
from convbench.cluster.pool import Pool
from convbench.common import interrupts, lock
from convbench.gate.build import Wanted
from convbench.gate.failures import Failure, Usage
from convbench.gate.report import Row


def run(
    project: Project,
    cell: str,
    good: str | None,
    bad: str | None,
    wanted: Wanted,
    address: str,
    names: str,
    console: Console,
) -> Found:
    """Search for the commit as convbench.bisect.search.run does, on all machines of these names. Raises as it does."""
    chain = ends.commits(project, cell, good, bad)
    commits = [commit.hash for commit in chain]
    try:
        with (
            lock.folder(project.work, project.results),
            interrupts.termination(),
            pool.connect(address, project, commits, names, console) as machines,
        ):
            machines.wait()
            gates = _There(machines, cell, wanted, machines.places())
            return search.search(cell, chain, gates, Builds.of(project, wanted).folder, console)
    except (KeyboardInterrupt, interrupts.Interrupted):
        raise Failure("interrupted: the same command resumes where it stopped") from None
    except click.ClickException as error:
        raise error if isinstance(error, (Failure, Usage)) else Failure(error.message) from None


@dataclass
class _There:
    """Gates of a cell on the machines of a cluster."""

    machines: Pool
    cell: str
    wanted: Wanted
    places: int

    def build(self, commit: str) -> None:
        (failure,) = batch.answers(self.machines, "building", build, [(f"build of {commit[:8]}", (commit, self.wanted))])
        if failure:
            raise failure

    def rows(self, pairs: Sequence[tuple[str, str]], suite: str, smallest: float | None) -> list[Row | Failure]:
        calls = [(f"gate of {head[:8]}", (self.cell, base, head, suite, smallest, self.wanted)) for base, head in pairs]
        found = batch.answers(self.machines, "measuring", gate, calls)
        for answer in found:
            if isinstance(answer, Usage):
                raise answer
        return found


def build(project: Project, commit: str, wanted: Wanted) -> Failure | Usage | None:
    """Build a commit on this machine; None, or why that is not possible."""
    try:
        with lock.lock(project.work, project.results):
            Builds.of(project, wanted).get(commit)
    except (Failure, Usage) as failure:
        return failure
    return None


def gate(
    project: Project, cell: str, base: str, head: str, suite: str, smallest: float | None, wanted: Wanted
) -> Row | Failure | Usage:
    """A gate of a cell on this machine; the row, or why there is none."""
    here = search.Here(Builds.of(project, wanted), cell, Console(file=io.StringIO()))
    try:
        with lock.lock(project.work, project.results):
            (found,) = here.rows([(base, head)], suite, smallest)
    except Usage as usage:
        return usage
    return found
