"""Every change that stored results show, one machine at a time, in the order of its commits. Measures nothing.

Times of different machines or environments are never in one series: each environment of each machine has its own.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from convbench.asv import files
from convbench.asv.project import Project
from convbench.common import numbers, untrusted
from convbench.common.cells import Cell, plain, spelling
from convbench.common.selection import Selection
from convbench.common.terminal import one_line
from convbench.common.untrusted import Unreadable
from convbench.stored import change_points, results, unbuilt
from convbench.stored.table import before_and_after, show_rows

NEWEST = 5  # commits of a series among which a single odd one is worth a row: what is older nobody measures again
KINDS = (change_points.STEP, change_points.DRIFT, change_points.ALONE)
TITLES = {
    change_points.STEP: "changed",
    change_points.DRIFT: "drifted: a straight line fits as well as a step, so no commit is to blame",
    change_points.ALONE: "seen at one commit alone, which a busy moment may explain: measure it again",
}


@dataclass(frozen=True)
class Commit:
    """A commit in the history of HEAD."""

    hash: str
    subject: str


@dataclass(frozen=True)
class Event:
    """A change of one cell, after the commit `good` and not after `changed`; most likely at `likely`.

    between: how many commits that is; unbuilt: how many of them do not build.
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

    @property
    def cell(self) -> str:
        return spelling((self.benchmark, self.params))


@dataclass(frozen=True)
class History:
    """What the series of a machine say.

    commits: those with results, the oldest first. elsewhere: how many more have some and are not in the history of HEAD.
    unbuilt: commits that do not build, and why. noise: of the median series. passed: single odd commits too old to be told.
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


def commits(project: Project, since: str | None = None) -> list[Commit]:
    """The commits that led to HEAD by first parents, as asv counts them, the oldest first; from `since` on.

    Raises ClickException where git knows no such commit, or it is not one of them.
    """
    lines = project.git("log", "--first-parent", "--reverse", "--format=%H %s", "HEAD").split("\n")
    found = [Commit(*line.partition(" ")[::2]) for line in lines]
    if since is None:
        return found
    wanted = project.commit(since)
    places = [place for place, commit in enumerate(found) if commit.hash == wanted]
    if not places:
        raise click.ClickException(f"{since} is not in the history of HEAD, by first parents")
    return found[places[0] :]


# What tells a series from all others: environment, benchmark, parameters.
Key = tuple[str, str, tuple[str, ...]]


def history(
    folder: Path, machine: str, chain: Sequence[Commit], known: dict[str, dict[str, Any]], wanted: Selection
) -> History:
    """Judge all series of a machine over these commits, the oldest first, and keep what is wanted.

    Raises ClickException where there is nothing to judge or to tell.
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
        raise click.ClickException(f"no series of {machine} passes these filters")
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
                events.append(Event(key[1], key[2], key[0], unit, finding.noise, change, *where))
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
        events=tuple(sorted(events, key=lambda event: (KINDS.index(event.change.kind), -event.change.ratio, event.cell))),
    )


def _told(wanted: Selection, cell: Cell, benchmark: dict[str, Any]) -> bool:
    """Whether a change of this cell is told; where implementations are asked for, not of what has none."""
    named = dict(zip(benchmark.get("param_names", []), cell[1], strict=False))
    return wanted.names(plain(named.get("implementation", ""))) and wanted.finds(cell)


@dataclass
class _Stored:
    """The results of a machine, commits as places in their chain.

    values: by series and commit. spreads: relative, inside a commit. measured: commits with values. elsewhere: the others.
    """

    values: dict[Key, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    spreads: dict[Key, list[float]] = field(default_factory=lambda: defaultdict(list))
    measured: set[int] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)

    def series(self, measured: Sequence[int]) -> Iterable[change_points.Series]:
        for key, row in self.values.items():
            spread = median(self.spreads[key]) if self.spreads[key] else 0.0
            yield change_points.Series([row.get(place, math.nan) for place in measured], spread)


def _read(folder: Path, places: dict[str, int], known: dict[str, dict[str, Any]]) -> _Stored:
    """Files that cannot be read are named and passed over.

    Not by results.load(), whose data frames would take minutes for a million cells.
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


def document(found: History) -> dict[str, Any]:
    """The history for programs."""
    return {
        "machine": found.machine,
        "environments": list(found.environments),
        "commits": [asdict(commit) for commit in found.commits],
        "commits_elsewhere": found.elsewhere,
        "unbuilt": [{**asdict(commit), "reason": reason} for commit, reason in found.unbuilt],
        "series": found.series,
        "too_short": found.short,
        "noise": None if math.isnan(found.noise) else found.noise,
        "single_commits_passed_over": found.passed,
        "changes": [
            {
                "kind": event.change.kind,
                "benchmark": event.benchmark,
                "params": list(event.params),
                "environment": event.environment,
                "before": event.change.before,
                "after": event.change.after,
                "unit": event.unit,
                "ratio": event.change.ratio,
                "interval": [event.change.low, event.change.high],
                "p_value": event.change.p_value,
                "noise": event.noise,
                "last_before": event.good.hash,
                "first_after": event.changed.hash,
                "likely": asdict(event.likely),
                "commits_between": event.between,
                "unbuilt_between": event.unbuilt,
            }
            for event in found.events
        ],
    }


def show(found: History, console: Console) -> None:
    """Print what changed, the worst first, then what drifted, then what one commit alone shows."""
    measured = found.commits
    span = f"{_count(len(measured), 'commit')} with results, {measured[0].hash[:8]} to {measured[-1].hash[:8]}"
    console.print(one_line(f"history of {found.machine}: {span}", style="bold"))
    judged = f"{found.series} series"
    if found.short:
        judged += f", {found.short} of them too short to tell: fewer than {change_points.MIN_POINTS} commits have a value"
    if not math.isnan(found.noise):
        judged += f"; noise from commit to commit {numbers.percent(found.noise)} in the median series"
    console.print(one_line(judged))
    if found.elsewhere:
        console.print(one_line(f"left out: {_count(found.elsewhere, 'commit')} with results, not in the history of HEAD"))
    for commit, reason in found.unbuilt:
        console.print(one_line(f"does not build: {commit.hash[:8]} {commit.subject}: {reason}"), highlight=False)
    for environment in found.environments if len(found.environments) > 1 else ():
        console.print(one_line(f"environment {found.environments.index(environment) + 1}: {environment}"))
    console.print()
    for kind in KINDS:
        events = [event for event in found.events if event.change.kind == kind]
        if events:
            console.print(one_line(TITLES[kind], style="bold"))
            show_rows(functools.partial(_table, events), [_name(event, found.environments) for event in events], console)
    console.print(one_line(_summary(found), style="bold"), highlight=False)


def _name(event: Event, environments: Sequence[str]) -> str:
    return event.cell + (f" [{environments.index(event.environment) + 1}]" if len(environments) > 1 else "")


def _table(events: Sequence[Event], names: Sequence[str]) -> Table:
    table = before_and_after()
    table.add_column("95 % interval", justify="right")
    table.add_column("commits", no_wrap=True)
    table.add_column("", overflow="fold")
    for event, name in zip(events, names, strict=True):
        change = event.change
        # Digits enough for the smallest change to show.
        spread = min(event.noise, change_points.MIN_CHANGE / 2)
        table.add_row(
            one_line(name),
            *(one_line(numbers.quantity(level, event.unit, spread)) for level in (change.before, change.after)),
            one_line(_ratio(change.ratio)),
            one_line(f"{_ratio(change.low)} to {_ratio(change.high)}"),
            one_line(f"{event.good.hash[:8]}..{event.changed.hash[:8]}"),
            one_line(_blame(event)),
            style="red" if change.kind == change_points.STEP and change.ratio > 1 else None,
        )
    return table


def _blame(event: Event) -> str:
    """Whose change it is: the commit, or the likeliest of several."""
    if event.between == 1:
        return event.likely.subject
    among = f"{event.between} commits" + (f", {event.unbuilt} not built" if event.unbuilt else "")
    return (
        among
        if event.change.kind == change_points.DRIFT
        else f"{among}; likeliest {event.likely.hash[:8]} {event.likely.subject}"
    )


def _ratio(value: float) -> str:
    return f"{numbers.significant(value, 3)}x"


def _summary(found: History) -> str:
    kinds = Counter(event.change.kind for event in found.events)
    slower = sum(event.change.kind == change_points.STEP and event.change.ratio > 1 for event in found.events)
    parts = [f"{_count(kinds[change_points.STEP], 'change')} ({slower} slower, {kinds[change_points.STEP] - slower} faster)"]
    if kinds[change_points.DRIFT]:
        parts.append(f"{kinds[change_points.DRIFT]} drifted")
    if kinds[change_points.ALONE]:
        parts.append(f"{kinds[change_points.ALONE]} at one commit alone")
    if found.passed:
        parts.append(f"{_count(found.passed, 'older single commit')} passed over")
    return ", ".join(parts)


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
