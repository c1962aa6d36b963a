"""`convbench run --cluster`: the commits of a range on many machines, each machine's series on machines of its name."""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from distributed import Future
from rich.console import Console

from convbench.asv.project import Project
from convbench.cluster import measuring, pool, source
from convbench.cluster.measuring import Build, Measured
from convbench.cluster.pool import Task, Work
from convbench.cluster.remote import Facts, Job
from convbench.common import atomic_write, interrupts, lock, numbers
from convbench.common.cells import Cell
from convbench.run import choice, classes, plan, session
from convbench.run.plan import ClassPlan
from convbench.run.reporter import Reporter, Summary, problems
from convbench.run.workspace import Workspace
from convbench.stored import unbuilt

BUILD_SECONDS = 4 * 3600.0  # of one commit, environment included
EXTRA_SECONDS = 600.0  # of a class, beyond the timeouts of its cells


def run(project: Project, request: session.Request, address: str, names: str, console: Console) -> None:
    """Measure the selected cells of HEAD or of a range that have no results yet, on all machines of these names.

    Raises ClickException in one sentence for everything that prevents it or went wrong.
    """
    tell = Reporter(console)
    span = session.asked(project, request, tell)
    work = Range(project, request, tell, span)
    with (
        lock.folder(project.work, project.results),
        interrupts.interruptible(lambda: f"{numbers.many(work.finished, 'task')} done: {pool.KEPT}"),
        pool.connect(address, project, span, names, console) as machines,
    ):
        work.source = machines.source
        machines.run(work, "measuring")
    found = [f"{name}: {problem}" for name, each in work.series.items() for problem in problems(each.summary)]
    if found := [*found, *work.given_up]:
        raise click.ClickException("; ".join(found))


@dataclass(eq=False)
class _Commit:
    """A commit of a series that is being measured. build: where its build is kept; plans: its classes that are left."""

    hash: str
    build: Build
    kept: Future
    plans: deque[ClassPlan]
    worked_on: int = 0


@dataclass(eq=False)
class _Series:
    """The commits of one machine's name. waiting: those not begun. first: the first that was built."""

    workspace: Workspace
    facts: Facts
    summary: Summary
    waiting: deque[str]
    building: int = 0
    begun: list[_Commit] = field(default_factory=list)
    first: Build | None = None


@dataclass
class Range(Work):
    """The tasks of a range.

    finished: how many are done. given_up: what stays undone, in sentences. taken: what is in no file yet.
    """

    project: Project
    request: session.Request
    tell: Reporter
    span: Sequence[str]
    series: dict[str, _Series] = field(default_factory=dict)
    given_up: list[str] = field(default_factory=list)
    finished: int = 0
    taken: list[tuple[_Series, _Commit, ClassPlan, Measured]] = field(default_factory=list)
    source: source.Source | None = None

    def __post_init__(self) -> None:
        self.nonce = str(time.time_ns()) if self.request.again else ""

    def next(self, machine: Facts) -> Task | None:
        """A class of a commit that is begun, so that its build is used where it is; else the build of another commit."""
        series = self.series.get(machine.name) or self._begin(machine)
        idle = (commit for commit in series.begun if commit.plans and not commit.worked_on)
        if commit := next(idle, None):
            return self._class(series, commit)
        if series.waiting and (series.first or not series.building):  # the first shows what the others lack
            return self._build(series, series.waiting.popleft())
        commit = next((commit for commit in series.begun if commit.plans), None)
        return self._class(series, commit) if commit else None

    def done(self, task: Task, future: Future, answer: Build | Measured) -> bool:
        """Keep what was measured, or plan what is to be measured of a commit that was built, which its classes need."""
        series = self.series[task.machine]
        self.finished += 1
        if isinstance(answer, Build):
            series.building -= 1
            plans = self._built(series, answer)
            if plans:
                series.begun.append(_Commit(answer.commit, answer, future, deque(plans)))
            return bool(plans)
        commit, each = task.about
        self._ended(series, commit)
        self.taken.append((series, commit, each, answer))
        return False

    def keep(self) -> None:
        while self.taken:
            self._publish(*self.taken.pop(0))

    def failed(self, task: Task, reason: str) -> None:
        """Give up a commit on machines of this name: what killed workers would kill others."""
        series = self.series[task.machine]
        self.given_up.append(reason)
        if task.kind:
            series.building -= 1
        else:
            commit, _ = task.about
            commit.plans.clear()
            self._ended(series, commit)

    def absent(self, name: str, reason: str) -> None:
        """Give up what is left of a series."""
        series = self.series.get(name)
        if series:
            left = len(series.waiting) + series.building + len(series.begun)
            self.given_up.append(f"{numbers.many(left, 'commit')} left for {name}, where no machine measures: {reason}")
            series.waiting.clear()
            for commit in series.begun:
                commit.kept.release()
            series.begun.clear()
            series.building = 0

    def left(self) -> int:
        """The classes that are known, and a task at least for each commit that is not begun."""
        return sum(len(s.waiting) + sum(len(commit.plans) for commit in s.begun) for s in self.series.values())

    def _begin(self, machine: Facts) -> _Series:
        workspace = Workspace(self.project, machine.name, self.project.work / "run" / machine.name)
        workspace.private.mkdir(parents=True, exist_ok=True)
        series = _Series(workspace, machine, Summary(len(self.span)), deque())
        known = {} if self.request.again or self.request.revisions is None else unbuilt.read(workspace.published)
        for commit in self.span:
            if commit in known:
                series.summary.unbuilt[commit] = known[commit]["reason"]
                self.tell.not_built_again(commit, known[commit]["reason"])
            else:
                series.waiting.append(commit)
        self.series[machine.name] = series
        return series

    def _key(self, *known: Any) -> str:
        """What other clients' tasks have to share to be the same."""
        return hashlib.sha256(repr((self.nonce, *known)).encode()).hexdigest()[: source.DIGITS]

    def _job(self, function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> Job:
        assert self.source
        patience = None if self.request.busy else pool.PATIENCE_SECONDS
        return Job(self.source, function, (*arguments, patience), seconds, pool.PATIENCE_SECONDS)

    def _build(self, series: _Series, commit: str) -> Task:
        series.building += 1
        job = self._job(measuring.build, (commit,), BUILD_SECONDS)
        kind = series.facts.kind
        return Task(f"build of {commit[:8]}", series.facts.name, job, kind=kind, key=self._key(commit, kind))

    def _class(self, series: _Series, commit: _Commit) -> Task:
        each = commit.plans.popleft()
        commit.worked_on += 1
        published = {path.name: path.read_bytes() for path in self._files(series, commit.build) if path.is_file()}
        timeouts = (float((commit.build.known or {})[name].get("timeout") or 60.0) for name, _ in each.cells)
        seconds = EXTRA_SECONDS + BUILD_SECONDS + 2 * each.rounds * sum(timeouts)
        job = self._job(measuring.measure, (commit.hash, each.cells, published), seconds)
        name = series.facts.name
        key = self._key(commit.hash, name, each.cells)
        return Task(f"{each.name} of {commit.hash[:8]}", name, job, (commit, each), needed=(commit.kept,), key=key)

    def _files(self, series: _Series, build: Build, commit: str | None = None) -> list:
        return build.built.results_files(series.workspace.published, commit)

    def _built(self, series: _Series, build: Build) -> list[ClassPlan]:
        """What is to be measured of a commit, noted if it does not build."""
        workspace, published = series.workspace, series.workspace.published
        if build.reason:
            line = {"environments": build.unbuilt, "reason": build.reason}
            unbuilt.keep(published, build.commit, line, workspace.folder)
            series.summary.unbuilt[build.commit] = build.reason
            self.tell.does_not_build(build.commit, build.reason)
            return []
        unbuilt.keep(published, build.commit, None, workspace.folder)
        is_first, series.first = series.first is None, series.first or build
        cells = choice.selected(build.built, self.request.selection, is_first)
        cells = choice.possible(cells, build.built, self.request.selection, series.facts.has_device)
        if is_first:
            self._publish_list(series, build)
            series.waiting = deque(commit for commit in series.waiting if self._missing(series, build, cells, commit))
        lacking = self._missing(series, build, cells, build.commit)
        plans = _whole_classes(plan.classes(lacking, build.built.known, {}))
        if not plans:
            self.tell.nothing_missing(build.commit, len(cells))
        return plans

    def _missing(self, series: _Series, build: Build, cells: list[Cell], commit: str) -> list[Cell]:
        if self.request.again:
            return cells
        return choice.missing(cells, build.built, self._files(series, build, commit), self.request.selection)

    def _publish_list(self, series: _Series, build: Build) -> None:
        listed = series.workspace.folder / "benchmarks.json"
        listed.write_bytes(build.listing)
        atomic_write.publish(listed, self.project.results / "benchmarks.json")

    def _ended(self, series: _Series, commit: _Commit) -> None:
        commit.worked_on -= 1
        if not commit.plans and not commit.worked_on and commit in series.begun:
            series.begun.remove(commit)
            commit.kept.release()

    def _publish(self, series: _Series, commit: _Commit, each: ClassPlan, measured: Measured) -> None:
        """Put a class into the machine's results, as if it had been measured here."""
        workspace, known = series.workspace, commit.build.built.known
        built = Build(commit.hash, measured.environments, known=known).built
        produced = [workspace.private / path.name for path in built.results_files(workspace.published)]
        produced = [path for path in produced if path.name in measured.files]
        for path in produced:
            path.write_text(_merged(measured.files[path.name], workspace.published / path.name, each), encoding="utf-8")
        workspace.side_file.write_bytes(measured.side)
        facts = workspace.private / "machine.json"
        known_facts = workspace.published / facts.name
        if not known_facts.is_file() or known_facts.read_bytes() != measured.machine:
            facts.write_bytes(measured.machine)
            atomic_write.publish(facts, known_facts)
        outcome = classes.outcome(classes.publish(workspace, built, produced), built, each)
        self.tell.measured(f"{each.name} of {commit.hash[:8]} on {series.facts.name}", outcome, measured.seconds)
        series.summary.failed_cells += outcome.failed


def _whole_classes(plans: Sequence[ClassPlan]) -> list[ClassPlan]:
    """Plans of which each has all cells of its class, also where asv has to be called several times for them."""
    found: dict[str, ClassPlan] = {}
    for each in plans:
        if each.name in found:
            found[each.name].cells += each.cells
        else:
            found[each.name] = each
    return list(found.values())


def _merged(content: bytes, published: Path, each: ClassPlan) -> str:
    """asv's file of a class, with what was published of other classes since it was begun."""
    new = json.loads(content)
    if published.is_file():
        old = json.loads(published.read_text(encoding="utf-8"))
        own = {name: new["results"][name] for name, _ in each.cells if name in new["results"]}
        new["results"] = {**new["results"], **old["results"], **own}
        new["durations"] = {**old.get("durations", {}), **new.get("durations", {})}
    return json.dumps(new)
