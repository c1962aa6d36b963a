"""Measures commits one after the other, class by class, so that finished results are never lost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import click
from rich.console import Console

from convbench.asv import commits, machine
from convbench.asv.project import Project
from convbench.common import atomic_write, interrupts, load, lock
from convbench.common.cells import Cell
from convbench.common.selection import Selection
from convbench.run import built_commit, choice, classes, plan, recover, reporter
from convbench.run.built_commit import BuiltCommit
from convbench.run.plan import ClassPlan, Pace
from convbench.run.reporter import Position, Reporter, Summary
from convbench.run.workspace import Workspace
from convbench.stored import results, side_lines, unbuilt


@dataclass(frozen=True)
class Request:
    """What to measure: cells of HEAD, or of at most `max_commits` commits of a range in asv's notation.

    again: measure even if results exist or the commit did not build. busy: do not wait for an idle machine.
    """

    selection: Selection
    revisions: str | None = None
    max_commits: int | None = None
    again: bool = False
    busy: bool = False


def run(project: Project, request: Request, console: Console) -> Summary:
    """Measure the selected cells that have no results yet, of HEAD or of a range; with `again` all of them.

    In a range, a commit that is known not to build is not built again, unless `again`. Raises ClickException in one sentence
    for everything that prevents it.
    """
    machine.require_device_names()
    tell = Reporter(console)
    span = asked(project, request, tell)
    workspace = Workspace(project, machine.name(), project.work / "run")
    session = _Session(workspace, request, tell, Summary(len(span)), Position(len(span)))
    with (
        lock.lock(project.work, project.results),
        interrupts.interruptible(lambda: reporter.kept(session.position)),
    ):
        workspace.clear()
        session.run(span)
    return session.summary


def asked(project: Project, request: Request, tell: Reporter) -> list[str]:
    """The commits to measure, in this order. Raises ClickException where the suite has changes that no commit holds."""
    if request.revisions is None:
        span = [project.commit()]
    else:
        found = commits.resolve(project, request.revisions, lambda: results.measured_commits(project.results))
        span = commits.order(found)[: request.max_commits]
    if changed := project.uncommitted_suite():
        # The commit is measured by the checkout's benchmarks, so these must be committed, too.
        raise click.ClickException(f"the suite has uncommitted changes, and results are kept by commit: {changed}")
    if project.uncommitted():
        tell.uncommitted_changes()
    return span


@dataclass
class _Session:
    """The state of a run. todo: the cells that each later commit lacks, by the benchmarks of the first that builds."""

    workspace: Workspace
    request: Request
    tell: Reporter
    summary: Summary
    position: Position
    pace: Pace = field(default_factory=Pace)
    todo: dict[str, list[Cell]] = field(default_factory=dict)

    def run(self, span: Sequence[str]) -> None:
        """Measure commits in this order, but for those that do not build or lack nothing."""
        self._wait_until_quiet()
        left = self._without_unbuilt(span)
        is_first = True
        while left:
            commit = left.pop(0)
            built = self._build(commit, len(left) + 1)
            if built is None:
                continue
            cells = self._select(built, is_first)
            if is_first:
                self._publish_list()
                self.todo = {other: self._missing(cells, built, other) for other in left}
                left = [other for other in left if self.todo[other]]
                is_first = False
            self._measure(built, cells, left)
            if len(span) > 1:
                self.position = Position(len(span), len(span) - len(left))
        if self.pace.taken and (reason := load.busy()):
            self.tell.was_busy(reason)

    def _wait_until_quiet(self) -> None:
        if not self.request.busy:
            load.wait_until_quiet()

    def _without_unbuilt(self, span: Sequence[str]) -> list[str]:
        """The commits that may build. HEAD by itself is always tried: it may be the machine that was repaired."""
        is_alone = self.request.revisions is None
        known = {} if self.request.again or is_alone else unbuilt.read(self.workspace.published)
        for commit in span:
            if commit in known:
                self.summary.unbuilt[commit] = known[commit]["reason"]
                self.tell.not_built_again(commit, known[commit]["reason"])
        return [commit for commit in span if commit not in known]

    def _build(self, commit: str, left: int) -> BuiltCommit | None:
        """Build a commit; None, and a note of it in the results, where it does not build."""
        self.tell.building(commit, left, is_first=not self.pace.builds)
        start = time.monotonic()
        try:
            built = built_commit.build(self.workspace, commit)
        except built_commit.BuildFailed as error:
            line = {"environments": error.environments, "reason": str(error)}
            unbuilt.keep(self.workspace.published, commit, line, self.workspace.folder)
            self.summary.unbuilt[commit] = str(error)
            self.tell.does_not_build(commit, str(error))
            return None
        finally:
            self.pace.builds.append(time.monotonic() - start)
        unbuilt.keep(self.workspace.published, commit, None, self.workspace.folder)
        return built

    def _select(self, built: BuiltCommit, is_first: bool) -> list[Cell]:
        """The selected cells. Raises ClickException if the first commit that builds has none."""
        selection = self.request.selection
        cells = choice.selected(built, selection, is_first)
        without = choice.possible(cells, built, selection, machine.has_device())
        if is_first and len(without) < len(cells):
            self.tell.without_device(len(cells) - len(without))
        return without

    def _publish_list(self) -> None:
        """Publish the list of benchmarks and the machine's description."""
        folder, published = self.workspace.project.results, self.workspace.published
        atomic_write.publish(self.workspace.folder / "benchmarks.json", folder / "benchmarks.json")
        atomic_write.publish(self.workspace.private / "machine.json", published / "machine.json")

    def _missing(self, cells: list[Cell], built: BuiltCommit, commit: str) -> list[Cell]:
        """The cells that a commit lacks, by its file of the environments of one that is built."""
        if self.request.again:
            return cells
        files = built.results_files(self.workspace.published, commit)
        return choice.missing(cells, built, files, self.request.selection)

    def _measure(self, built: BuiltCommit, cells: list[Cell], left: list[str]) -> None:
        """Measure what a commit lacks, and say how long that and the rest will take."""
        missing = self._missing(cells, built, built.commit)
        side_files = self.workspace.published.glob(f"*{side_lines.ENDING}")
        earlier = plan.durations(sorted(side_files, key=lambda path: path.stat().st_mtime))
        plans = plan.classes(missing, built.known, earlier)
        if plans:
            self.tell.planned(len(cells), len(missing), len(plans), self.pace.seconds(plans))
        else:
            self.tell.nothing_missing(built.commit, len(cells))
        if left:
            later = [each for commit in left for each in plan.classes(self.todo[commit], built.known, earlier)]
            self.tell.more_commits(len(left), self.pace.seconds(plans + later, builds=len(left)))
        for i, each in enumerate(plans):
            done = self.position.commits_done
            self.position = Position(self.summary.commits, done, built.commit, len(plans), i, each.name)
            self._wait_until_quiet()
            start = time.monotonic()
            self._measure_class(built, each, f"[{i + 1}/{len(plans)}] {each.name}")
            self.pace.taken += time.monotonic() - start
            self.pace.estimated += each.seconds

    def _measure_class(self, built: BuiltCommit, each: ClassPlan, title: str) -> None:
        """Measure a class and publish its results. Where it is cut short, the cells that were finished are published."""
        start = time.time()
        classes.start_from_published(self.workspace, built)
        try:
            with self.tell.measuring(title, each.rounds * len(each.cells)) as update:
                classes.run_asv(self.workspace, built, each, update)
        except (KeyboardInterrupt, interrupts.Interrupted, click.ClickException):
            self._keep_finished(built, each, title)
            raise
        produced = classes.produced(self.workspace, built, each, start)
        for file in produced:
            classes.remove_times(file, classes.failed_cells(self.workspace.side_file))
        outcome = classes.outcome(classes.publish(self.workspace, built, produced), built, each)
        self.tell.measured(title, outcome, time.time() - start)
        self.summary.failed_cells += outcome.failed

    def _keep_finished(self, built: BuiltCommit, each: ClassPlan, title: str) -> None:
        try:
            self.tell.cut_short(title, recover.keep_finished(self.workspace, built, each))
        except Exception as error:  # the caller raises the reason of the interruption, which is more useful
            self.tell.lost(title, error)
