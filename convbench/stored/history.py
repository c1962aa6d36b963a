"""Finds changes in the stored results of a machine, in the order of commits. Measures nothing.

Times of different machines or environments are never in one series: each environment of each machine has its own.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

from convbench.asv import files
from convbench.asv.project import Project
from convbench.common import untrusted
from convbench.common.cells import Cell, plain, spelling
from convbench.common.selection import Selection
from convbench.common.untrusted import Unreadable
from convbench.stored import change_points, results, side_lines, unbuilt

NEWEST = 5  # commits of a series among which a single odd one gets a row; older ones are not measured again
DIFFERENTLY = "differently"
KINDS = (change_points.STEP, DIFFERENTLY, change_points.DRIFT, change_points.ALONE)


@dataclass(frozen=True)
class Commit:
    """A commit in the history of HEAD."""

    hash: str
    subject: str


@dataclass(frozen=True)
class Event:
    """A change of one cell, after the commit `good` and not after `changed`; most likely at `likely`.

    between: how many commits that is; unbuilt: how many of them do not build. versions: what both were measured with, where
    that is not the same: {name: (before, after)}.
    """

    benchmark: str
    params: tuple[str, ...]
    environment: str
    unit: str
    noise: float
    change: change_points.Change
    good: Commit
    changed: Commit
    likely: Commit
    between: int
    unbuilt: int
    versions: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def cell(self) -> str:
        return spelling((self.benchmark, self.params))

    @property
    def kind(self) -> str:
        """One of KINDS: a step at which other versions were measured with may be theirs, and is not due to a commit."""
        return DIFFERENTLY if self.change.kind == change_points.STEP and self.versions else self.change.kind


@dataclass(frozen=True)
class History:
    """The changes in the series of a machine.

    commits: those with results, the oldest first. elsewhere: how many more have some and are not in the history of HEAD.
    unbuilt: commits that do not build, and why. noise: of the median series. passed: older single odd commits.
    """

    machine: str
    environments: tuple[str, ...]
    commits: tuple[Commit, ...]
    elsewhere: int
    unbuilt: tuple[tuple[Commit, str], ...]
    series: int
    short: int
    noise: float
    passed: int
    events: tuple[Event, ...]


def commits(project: Project, since: str | None = None, head: str = "HEAD") -> list[Commit]:
    """The commits that led to the head by first parents, as asv counts them, the oldest first; from `since` on.

    Raises ClickException if git knows no such commit, or it is not one of them.
    """
    lines = project.git("log", "--first-parent", "--reverse", "--format=%H %s", head).split("\n")
    found = [Commit(*line.partition(" ")[::2]) for line in lines]
    if since is None:
        return found
    wanted = project.commit(since)
    places = [place for place, commit in enumerate(found) if commit.hash == wanted]
    if not places:
        raise click.ClickException(f"{since} is not in the history of {head}, by first parents")
    return found[places[0] :]


# The key of a series: environment, benchmark, parameters.
Key = tuple[str, str, tuple[str, ...]]


def history(
    folder: Path, machine: str, chain: Sequence[Commit], known: dict[str, dict[str, Any]], wanted: Selection
) -> History:
    """Judge all series of a machine over these commits, oldest first, and keep the selected ones.

    Raises ClickException if there is nothing to judge or to report.
    """
    stored = _read(folder / machine, {commit.hash: i for i, commit in enumerate(chain)}, known)
    if not stored.values:
        raise click.ClickException(
            f"no results of {machine} for a commit from {chain[0].hash[:8]} to {chain[-1].hash[:8]}, HEAD: measure them with "
            "`convbench run`"
        )
    measured = sorted(stored.measured)
    findings = dict(zip(stored.values, change_points.judge(list(stored.series(measured))), strict=True))
    kept = {key: finding for key, finding in findings.items() if _told(wanted, key[1:], known[key[1]])}
    if not kept:
        raise click.ClickException(f"no series of {machine} matches these filters")
    reasons = {commit: str(line["reason"]) for commit, line in unbuilt.read(folder / machine).items()}
    events, passed = [], 0
    for key, finding in kept.items():
        newest = sorted(stored.values[key])[-NEWEST:]
        for change in finding.changes:
            if change.kind == change_points.ALONE and measured[change.last] < newest[0]:
                passed += 1
            else:
                unit = known[key[1]].get("unit", "")
                good, changed, likely = (measured[place] for place in (change.good, change.changed, change.first))
                between = chain[good + 1 : changed + 1]
                missing = sum(commit.hash in reasons for commit in between)
                where = chain[good], chain[changed], chain[likely], len(between), missing
                versions = _other_versions(stored.versions(key, good), stored.versions(key, changed))
                events.append(Event(key[1], key[2], key[0], unit, finding.noise, change, *where, versions))
    noises = [finding.noise for finding in kept.values() if not finding.short]
    return History(
        machine,
        environments=tuple(sorted({key[0] for key in kept})),
        commits=tuple(chain[i] for i in measured),
        elsewhere=len(stored.elsewhere),
        unbuilt=tuple((commit, reasons[commit.hash]) for commit in chain if commit.hash in reasons),
        series=len(kept),
        short=sum(finding.short for finding in kept.values()),
        noise=float(np.median(noises)) if noises else math.nan,
        passed=passed,
        events=tuple(sorted(events, key=lambda event: (KINDS.index(event.kind), -event.change.ratio, event.cell))),
    )


def slower(found: History) -> list[Event]:
    """Of each series that is slower now than at its first commit, the step that slowed it most.

    A step that another undid since does not count, as far as their intervals can tell, nor what was measured differently.
    """
    steps: dict[Key, list[Event]] = defaultdict(list)
    for event in found.events:
        if event.kind == change_points.STEP:
            steps[event.environment, event.benchmark, event.params].append(event)
    worst = []
    for events in steps.values():
        net = sum(math.log(event.change.ratio) for event in events)
        margin = math.hypot(*(math.log(event.change.high / event.change.ratio) for event in events))
        if net > margin:
            worst.append(max(events, key=lambda event: event.change.ratio))
    return sorted(worst, key=lambda event: (-event.change.ratio, event.cell))


def _other_versions(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str, str]]:
    """The versions that both have and that differ."""
    return {name: (before[name], after[name]) for name in sorted(before.keys() & after.keys()) if before[name] != after[name]}


def _told(wanted: Selection, cell: Cell, benchmark: dict[str, Any]) -> bool:
    """Whether this cell is selected; a selection of implementations excludes benchmarks without any."""
    named = dict(zip(benchmark.get("param_names", []), cell[1], strict=False))
    return wanted.names(plain(named.get("implementation", ""))) and wanted.finds(cell)


@dataclass
class _Stored:
    """The results of a machine, commits as places in their chain.

    values: by series and commit. spreads: relative, inside a commit. measured: commits with values. elsewhere: the others.
    paths, facts: of the file of each environment and commit.
    """

    values: dict[Key, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    spreads: dict[Key, list[float]] = field(default_factory=lambda: defaultdict(list))
    measured: set[int] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)
    paths: dict[tuple[str, int], Path] = field(default_factory=dict)
    facts: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    lines: dict[Path, side_lines.Lines] = field(default_factory=dict)

    def versions(self, key: Key, place: int) -> dict[str, str]:
        """The versions of Python, asv_runner and what the suite pins when a cell was measured, as far as they are kept."""
        environment, benchmark, params = key
        path = self.paths[environment, place]
        if path not in self.lines:
            self.lines[path] = side_lines.read_all(path)
        lines = self.lines[path]
        own = lines.cells.get((benchmark, params), {}).get("versions") or {}
        # A cell may name more than is pinned, as the version of what is measured.
        pinned = {name.removeprefix("pip+") for name in self.facts[environment, place]} | {"python", "asv_runner"}
        pinned |= lines.versions.keys()
        return lines.versions | {name: version for name, version in own.items() if name in pinned}

    def series(self, measured: Sequence[int]) -> Iterable[change_points.Series]:
        for key, row in self.values.items():
            spread = median(self.spreads[key]) if self.spreads[key] else 0.0
            yield change_points.Series([row.get(place, math.nan) for place in measured], spread)


def _read(folder: Path, places: dict[str, int], known: dict[str, dict[str, Any]]) -> _Stored:
    """Unreadable files are reported and skipped.

    Does not use results.load(): its data frames would take minutes for a million cells.
    """
    stored = _Stored()
    for path in sorted(folder.glob("*-*.json")):
        try:
            file = files.read(path)
        except Unreadable as error:
            untrusted.warn(error)
            continue
        place = places.get(file.commit)
        if place is None:
            stored.elsewhere.add(file.commit)
            continue
        stored.paths[file.environment, place], stored.facts[file.environment, place] = path, file.facts
        for name, entry in file.entries.items():
            if results.same_version(entry, known.get(name)) is None:
                continue
            for params, value, low, high in _cells(entry):
                if not isinstance(value, (int, float)) or files.no_number(value) or not value > 0:
                    continue
                key = file.environment, name, params
                stored.values[key][place] = float(value)
                stored.measured.add(place)
                if low is not None and high is not None:
                    stored.spreads[key].append((high - low) / 2 / value)
    return stored


def _cells(entry: dict[str, Any]) -> Iterable[tuple[tuple[str, ...], Any, float | None, float | None]]:
    """Parameters, value and quartiles of every cell of a benchmark in a results file."""
    none = itertools.repeat(None)
    columns = (entry.get(name) or none for name in ("result", "stats_q_25", "stats_q_75"))
    return zip(itertools.product(*(entry.get("params") or [])), *columns, strict=False)
