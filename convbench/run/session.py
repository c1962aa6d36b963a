"""Measures commits, one after the other and class by class, so that nothing finished is ever lost."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean

import click
from rich.console import Console

from convbench.asv import commits, machine
from convbench.asv.project import Project
from convbench.common import atomic_write, interrupts, load, lock, numbers
from convbench.common.cells import Cell
from convbench.common.selection import Selection, check_names, select
from convbench.run import classes, plan
from convbench.run.classes import Built, Place
from convbench.stored import results, unbuilt


@dataclass(frozen=True)
class Request:
    """What is asked for. span: a range of commits in asv's words, of which at most `most` are measured; None: HEAD."""

    selection: Selection
    span: str | None = None
    most: int | None = None
    again: bool = False
    busy: bool = False


@dataclass
class Outcome:
    """What a run came to: cells that failed, and commits that do not build, with their reasons."""

    commits: int
    failed: int = 0
    unbuilt: dict[str, str] = field(default_factory=dict)

    def problems(self) -> list[str]:
        """What has no time, in words."""
        said = []
        if self.unbuilt and self.commits == 1:
            said += [f"commit {commit[:8]} does not build: {reason}" for commit, reason in self.unbuilt.items()]
        elif self.unbuilt:
            names = ", ".join(commit[:8] for commit in self.unbuilt)
            does = "does" if len(self.unbuilt) == 1 else "do"
            said.append(f"{len(self.unbuilt)} of {self.commits} commits {does} not build: {names}; the reason stands above")
        if self.failed:
            said.append(f"{self.failed} of the cells failed and have no time; `convbench table` names them and says why")
        return said


def run(project: Project, request: Request, console: Console) -> Outcome:
    """Measure the selected cells that are not there yet, of HEAD or of a range; with `again` all of them anew.

    In a range, a commit that is known not to build is not built again, unless `again`. Raises ClickException in one sentence
    for everything that prevents it.
    """
    if request.span is None:
        span = [project.commit()]
    else:
        span = commits.order(commits.resolve(project, request.span, lambda: results.measured_commits(project.results)))[
            : request.most
        ]
    if changed := project.git("status", "--porcelain", "--", str(project.benchmarks), project.file.name):
        # What is measured is the commit; what measures is the checkout, and results must say which.
        raise click.ClickException(f"the suite has uncommitted changes, and results are kept by commit: {changed.split()[1]}")
    if project.git("status", "--porcelain", "--", *project.code):
        console.print("uncommitted changes are not measured: commit them, or use `convbench try`", style="yellow")
    work, name = project.work / "run", machine.facts()["machine"]
    session = _Session(Place(project, name, work, console), request, Outcome(len(span)))
    with (
        lock.lock(project.work, project.results),
        interrupts.interruptible(lambda: f"{session.position}; the same command goes on from there"),
    ):
        shutil.rmtree(work, ignore_errors=True)
        (work / name).mkdir(parents=True)
        machine.register(work)
        session.run(span)
    return session.outcome


@dataclass
class _Session:
    """A run while it goes on.

    position: what is kept so far, in words. todo: the cells that each commit lacks, once a commit that builds has told what
    there is. builds, estimated, taken: seconds of each build, and of the classes so far, expected and real.
    """

    place: Place
    request: Request
    outcome: Outcome
    position: str = "nothing was measured"
    todo: dict[str, list[Cell]] = field(default_factory=dict)
    builds: list[float] = field(default_factory=list)
    estimated: float = 0.0
    taken: float = 0.0

    def run(self, span: Sequence[str]) -> None:
        """Measure commits in this order, but for those that do not build or lack nothing."""
        if not self.request.busy:
            load.wait_until_quiet()
        left = self._pass_over_unbuilt(span)
        first = True
        while left:
            commit = left.pop(0)
            built = self._build(commit, len(left) + 1)
            if built is None:
                continue
            cells = self._select(built, first)
            if first:
                self._publish_list()
                self.todo = {other: self._missing(cells, built, other) for other in left}
                left = [other for other in left if self.todo[other]]
                first = False
            self._measure(built, cells, left)
            if len(span) > 1:
                self.position = f"{len(span) - len(left)} of {len(span)} commits are done"
        if self.taken:
            time.sleep(1)  # asv's own processes are ending
            if reason := load.busy():
                self._tell(f"at the end of the run the machine was busy: {reason}", style="yellow")

    def _pass_over_unbuilt(self, span: Sequence[str]) -> list[str]:
        """The commits that may build. HEAD by itself is always tried: who fixes a machine wants to see it."""
        known = {} if self.request.again or self.request.span is None else unbuilt.read(self.place.stored)
        for commit in span:
            if commit in known:
                self.outcome.unbuilt[commit] = known[commit]["reason"]
                self._tell(f"{commit[:8]} did not build, and is tried again by --again alone: {known[commit]['reason']}")
        return [commit for commit in span if commit not in known]

    def _build(self, commit: str, count: int) -> Built | None:
        """Build a commit; None, and a note of it in the results, where it does not build."""
        first = "" if self.builds else " (its first environment takes a few minutes)"
        many = f", the first of {count}" if count > 1 else ""
        self._tell(f"building commit {commit[:8]}{many}{first}")
        start = time.monotonic()
        try:
            built = classes.build(self.place, commit)
        except classes.Unbuilt as error:
            line = {"environments": error.environments, "reason": str(error)}
            unbuilt.keep(self.place.stored, commit, line, self.place.work)
            self.outcome.unbuilt[commit] = str(error)
            self._tell(f"{commit[:8]} does not build: {error}", style="yellow")
            return None
        finally:
            self.builds.append(time.monotonic() - start)
        unbuilt.keep(self.place.stored, commit, None, self.place.work)
        return built

    def _select(self, built: Built, first: bool) -> list[Cell]:
        """The cells asked for. Raises ClickException where the first commit that builds has none."""
        selection = self.request.selection
        if first:
            check_names(built.known, selection.implementations)
        cells = select(built.known, selection)
        if first and not cells:
            if selection.quick and not any(benchmark.get("quick") for benchmark in built.known.values()):
                raise click.ClickException("this suite declares no short selection; leave out --quick")
            raise click.ClickException(
                "no cell is called that; names look like conv2d.ImageSize.time_conv2d('cpu.torch', '256x256')"
            )
        return cells

    def _publish_list(self) -> None:
        """What the readers of results need beside them."""
        atomic_write.publish(self.place.work / "benchmarks.json", self.place.project.results / "benchmarks.json")
        atomic_write.publish(self.place.private / "machine.json", self.place.stored / "machine.json")

    def _missing(self, cells: list[Cell], built: Built, commit: str) -> list[Cell]:
        """The cells that a commit lacks, by its file of the environments of one that is built."""
        if self.request.again:
            return cells
        try:
            named = bool(self.request.selection.implementations)
            return plan.missing(cells, built.known, built.file(self.place.stored, commit), named)
        except results.Unreadable as error:
            raise click.ClickException(f"{error}; move it away and the commit is measured anew") from None

    def _measure(self, built: Built, cells: list[Cell], left: list[str]) -> None:
        """Measure what a commit lacks, and say how long that and the rest will take."""
        todo = self._missing(cells, built, built.commit)
        earlier = plan.durations(sorted(self.place.stored.glob("*.cells.jsonl"), key=lambda path: path.stat().st_mtime))
        steps = plan.steps(todo, built.known, earlier)
        if not steps:
            self._tell(f"all {len(cells)} cells of {built.commit[:8]} are there already; --again measures them anew")
        else:
            there = f", {len(cells) - len(todo)} are there already" if len(todo) < len(cells) else ""
            self._tell(f"{len(todo)} cells in {len(steps)} classes{there}: about {self._minutes(steps)}")
        if left:
            later = [step for commit in left for step in plan.steps(self.todo[commit], built.known, earlier)]
            rest = self._minutes(steps + later, len(left) * mean(self.builds[1:] or self.builds))
            self._tell(f"{len(left)} more commits after this one: about {rest} for all")
        done = self.position
        for i, step in enumerate(steps):
            kept = f"{i} of {len(steps)} classes are done, {step.name} is not"
            self.position = kept if self.outcome.commits == 1 else f"{done}, of {built.commit[:8]} {kept}"
            if not self.request.busy:
                load.wait_until_quiet()
            start = time.monotonic()
            title = f"[{i + 1}/{len(steps)}] {step.name}"
            self.outcome.failed += classes.step(self.place, built, step, title)
            self.taken += time.monotonic() - start
            self.estimated += step.seconds

    def _minutes(self, steps: list[plan.Step], more: float = 0.0) -> str:
        """How long classes will take, by how far the estimates of those so far were off, and so many seconds more."""
        pace = self.taken / self.estimated if self.estimated else 1.0
        return numbers.minutes(pace * sum(step.seconds for step in steps) + more)

    def _tell(self, text: str, style: str | None = None) -> None:
        self.place.console.print(text, style=style, highlight=False, markup=False)
