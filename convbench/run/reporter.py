"""Prints the progress of a run and what was kept of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rich.console import Console

from convbench.common import numbers, progress, terminal
from convbench.common.cells import plain
from convbench.run.classes import ClassOutcome, Progress


@dataclass
class Summary:
    """The outcome of a run. unbuilt: commits that do not build, with their reasons."""

    commits: int
    failed_cells: int = 0
    unbuilt: dict[str, str] = field(default_factory=dict)


@dataclass
class Position:
    """How far a run is. commit, class_name: what is being measured, after `classes_done` of the commit's classes."""

    commits: int
    commits_done: int = 0
    commit: str = ""
    classes: int = 0
    classes_done: int = 0
    class_name: str = ""


def problems(summary: Summary) -> list[str]:
    """The problems of a run, as sentences."""
    found = []
    if summary.unbuilt and summary.commits == 1:
        found += [f"commit {commit[:8]} does not build: {reason}" for commit, reason in summary.unbuilt.items()]
    elif summary.unbuilt:
        names = ", ".join(commit[:8] for commit in summary.unbuilt)
        does = "does" if len(summary.unbuilt) == 1 else "do"
        found.append(f"{len(summary.unbuilt)} of {summary.commits} commits {does} not build: {names}; see the reasons above")
    if summary.failed_cells:
        found.append(
            f"{numbers.many(summary.failed_cells, 'cell')} failed; `convbench table --bench . --why` shows the reasons"
        )
    return found


def kept(position: Position) -> str:
    """The results kept from an interrupted run, and how to resume it."""
    done = [
        f"{position.commits_done} of {position.commits} commits are done" if position.commits_done else "nothing was measured"
    ]
    if position.class_name:
        classes = f"{position.classes_done} of {position.classes} classes are done, {position.class_name} is not"
        done = [classes] if position.commits == 1 else [*done, f"of {position.commit[:8]} {classes}"]
    return f"{', '.join(done)}; the same command resumes there"


class Reporter:
    """Prints what happens in a run, a line for each event, and a bar for the class that is being measured."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def uncommitted_changes(self) -> None:
        self._warn("uncommitted changes are not measured: commit them, or use `convbench try`")

    def not_built_again(self, commit: str, reason: str) -> None:
        self._tell(f"{commit[:8]} did not build before and is skipped (--again builds it again): {reason}")

    def building(self, commit: str, left: int, is_first: bool) -> None:
        """left: commits that are not measured yet, this one included."""
        many = f", the first of {left}" if left > 1 else ""
        first = " (its first environment takes a few minutes)" if is_first else ""
        self._tell(f"building commit {commit[:8]}{many}{first}")

    def does_not_build(self, commit: str, reason: str) -> None:
        self._warn(f"{commit[:8]} does not build: {reason}")

    def nothing_missing(self, commit: str, selected: int) -> None:
        self._tell(f"all {selected} cells of {commit[:8]} have results; --again measures them again")

    def without_device(self, cells: int) -> None:
        self._tell(f"{cells} cells of GPU implementations are not started: there is no CUDA device")

    def planned(self, selected: int, missing: int, classes: int, seconds: float) -> None:
        there = f", {selected - missing} have results already" if missing < selected else ""
        where = f"{classes} class{'es' * (classes != 1)}"
        self._tell(f"{numbers.many(missing, 'cell')} of {where}{there}: about {numbers.minutes(seconds)}")

    def more_commits(self, count: int, seconds: float) -> None:
        self._tell(f"{numbers.many(count, 'more commit')} after this one: about {numbers.minutes(seconds)} for all")

    @contextlib.contextmanager
    def measuring(self, title: str, total: int) -> Iterator[Callable[[Progress], None]]:
        """A bar for a class with `total` rounds of cells; yields the function that moves it."""
        with progress.counting_bar(self.console) as bar:
            task = bar.add_task(title, total=total, now="")

            def update(state: Progress) -> None:
                now = terminal.line(", ".join(map(plain, state.params)))
                bar.update(task, completed=min(state.done, total), now=now)

            yield update

    def measured(self, title: str, outcome: ClassOutcome, seconds: float) -> None:
        counts = f"{outcome.timed} timed, {outcome.skipped} skipped, {outcome.failed} FAILED"
        self._tell(f"{title}: {counts}, {numbers.minutes(seconds)}")

    def cut_short(self, title: str, cells: int) -> None:
        self._tell(f"{title}: cut short, {cells} of its cells are kept")

    def lost(self, title: str, error: Exception) -> None:
        self._tell(f"{title}: cut short, none of its cells could be kept: {error}")

    def was_busy(self, reason: str) -> None:
        self._warn(f"at the end of the run the machine was busy: {reason}")

    def _warn(self, text: str) -> None:
        self._tell(text, style="yellow")

    def _tell(self, text: str, style: str | None = None) -> None:
        self.console.print(text, style=style, highlight=False, markup=False)
