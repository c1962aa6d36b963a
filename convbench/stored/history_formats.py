"""A history as text for a terminal, as JSON and as Markdown."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from convbench.common import markup, numbers
from convbench.common.terminal import one_line
from convbench.stored import change_points
from convbench.stored.history import DIFFERENTLY, KINDS, Event, History, slower
from convbench.stored.table import before_and_after, show_rows

MAX_ROWS = 50  # of a table in Markdown: GitHub takes 65536 characters for all of an issue
MAX_NAME = 200  # characters of a cell's name there
TITLES = {
    change_points.STEP: "changed",
    DIFFERENTLY: "measured differently: with other versions, which may be the cause",
    change_points.DRIFT: "drifted: a straight line fits as well as a step, so no single commit is the cause",
    change_points.ALONE: "at one commit only, perhaps disturbed by other processes: measure it again",
}


def document(found: History) -> dict[str, Any]:
    """The history as JSON."""
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
                "kind": event.kind,
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
                "versions": {name: list(both) for name, both in event.versions.items()},
            }
            for event in found.events
        ],
    }


def show(found: History, console: Console) -> None:
    """Print the changes, the worst first, then drifts, then outliers at one commit only."""
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
        console.print(one_line(f"ignored: {_count(found.elsewhere, 'commit')} with results, not in the history of HEAD"))
    for commit, reason in found.unbuilt:
        console.print(one_line(f"does not build: {commit.hash[:8]} {commit.subject}: {reason}"), highlight=False)
    for environment in found.environments if len(found.environments) > 1 else ():
        console.print(one_line(f"environment {found.environments.index(environment) + 1}: {environment}"))
    console.print()
    for kind in KINDS:
        events = [event for event in found.events if event.kind == kind]
        if events:
            console.print(one_line(TITLES[kind], style="bold"))
            names = [_name(event, found.environments) for event in events]
            show_rows(functools.partial(_table, events), names, [_blame(event) for event in events], console)
    console.print(one_line(_summary(found), style="bold"), highlight=False)


def _name(event: Event, environments: Sequence[str]) -> str:
    return event.cell + (f" [{environments.index(event.environment) + 1}]" if len(environments) > 1 else "")


def _table(events: Sequence[Event], names: Sequence[str], blame: Sequence[str]) -> Table:
    table = before_and_after()
    table.add_column("95 % interval", justify="right", no_wrap=True)
    table.add_column("commits", no_wrap=True)
    if blame:
        table.add_column("")
    for event, name, *what in zip(events, names, *filter(None, [blame]), strict=True):
        change = event.change
        # Digits enough for the smallest change to show.
        spread = min(event.noise, change_points.MIN_CHANGE / 2)
        table.add_row(
            one_line(name),
            *(one_line(numbers.quantity(level, event.unit, spread)) for level in (change.before, change.after)),
            one_line(_ratio(change.ratio)),
            one_line(f"{_ratio(change.low)} to {_ratio(change.high)}"),
            one_line(f"{event.good.hash[:8]}..{event.changed.hash[:8]}"),
            *(one_line(words) for words in what),
            style="red" if event.kind == change_points.STEP and change.ratio > 1 else None,
        )
    return table


def _blame(event: Event) -> str:
    """The commit that made the change, or the likeliest of several; or what it was measured with."""
    if event.kind == DIFFERENTLY:
        return ", ".join(f"{name} {before} to {after}" for name, (before, after) in event.versions.items())
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
    kinds = Counter(event.kind for event in found.events)
    slower = sum(event.kind == change_points.STEP and event.change.ratio > 1 for event in found.events)
    parts = [f"{_count(kinds[change_points.STEP], 'change')} ({slower} slower, {kinds[change_points.STEP] - slower} faster)"]
    if kinds[DIFFERENTLY]:
        parts.append(f"{kinds[DIFFERENTLY]} measured differently")
    if kinds[change_points.DRIFT]:
        parts.append(f"{kinds[change_points.DRIFT]} drifted")
    if kinds[change_points.ALONE]:
        parts.append(f"{kinds[change_points.ALONE]} at one commit only")
    if found.passed:
        parts.append(f"{_count(found.passed, 'older single commit')} skipped")
    return ", ".join(parts)


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def as_markdown(found: History) -> str:
    """Cells that are slower now than at the first commit, for an issue; text from files and commits is escaped."""
    worst = slower(found)
    span = f"{found.commits[0].hash[:8]}..{found.commits[-1].hash[:8]}"
    parts = [f"{_count(len(worst), 'cell')} slower on {markup.code(found.machine)}, over the commits {span} with results."]
    if worst:
        parts.append(_rows(worst))
        parts.append(
            "Between the two commits of a row the cell became slower; `convbench gate` of these two measures it again."
        )
    if apart := [event for event in found.events if event.kind == DIFFERENTLY]:
        parts.append(f"{TITLES[DIFFERENTLY].capitalize()}:\n\n{_rows(apart)}")
    if found.short:
        parts.append(f"Too short to tell: {found.short} of {found.series} series.")
    return "\n\n".join(parts) + "\n"


def _rows(events: Sequence[Event]) -> str:
    lines = ["| cell | before | after | ratio | commits | |", "|---|---:|---:|---:|---|---|"]
    for event in events[:MAX_ROWS]:
        change = event.change
        levels = [numbers.quantity(level, event.unit, event.noise) for level in (change.before, change.after)]
        between = f"{event.good.hash[:8]}..{event.changed.hash[:8]}"
        fields = [*map(markup.escaped, (*levels, _ratio(change.ratio), between, _blame(event)))]
        lines.append(f"| {' | '.join([markup.code(event.cell[:MAX_NAME]), *fields])} |")
    if len(events) > MAX_ROWS:
        lines.append(f"\nand {len(events) - MAX_ROWS} more")
    return "\n".join(lines)
