"""Compares the stored results of two commits cell by cell, worst first.

Stored results are not paired. The two commits were measured at different times, and the samples of one process share its
memory layout, so that many of them may agree on an effect that is not due to the code. A verdict is therefore a hint;
`convbench gate`, which measures both in turn, decides.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from convbench.asv import files
from convbench.common import numbers, untrusted
from convbench.common.cells import Cell, spelling
from convbench.common.terminal import one_line
from convbench.common.untrusted import Unreadable
from convbench.stored import results
from convbench.stored.table import before_and_after, show_rows

SAME, DIFFERS, UNKNOWN = "same", "differs", "unknown"
KIND = "stored, not paired"
# Identical commits measured one after the other differ by more than 5 % in 12 % of cells; twice that is rare.
MIN_CHANGE = 0.10
# A side's own spread does not contain the difference between two processes, hence a multiple of it.
SPREADS = 3
# One sample has no spread to judge by.
MIN_SAMPLES = 2


class Impossible(click.ClickException):
    """The commits cannot be compared. Exits with 2, since status 1 means here that a cell is slower."""

    exit_code = 2


@dataclass(frozen=True)
class Side:
    """A cell in one results file: its median, quartiles and number of samples; no value if it has no time.

    reason: why it has no time, or the reservation that it was measured with.
    """

    value: float | None = None
    low: float = math.nan
    high: float = math.nan
    samples: int = 0
    reason: str | None = None


@dataclass(frozen=True)
class ComparedCell:
    """A cell of both commits with its verdict. ratio: after over before."""

    benchmark: str
    params: tuple[str, ...]
    before: Side
    after: Side
    verdict: str
    ratio: float | None
    reason: str

    @property
    def slower(self) -> bool:
        return self.verdict == DIFFERS and self.ratio is not None and self.ratio > 1

    @property
    def told(self) -> bool:
        """Whether the cell has a row: it has a time on either side, or failed."""
        sides = (self.before, self.after)
        return any(side.value is not None or (side.reason or "").startswith("failed") for side in sides)


@dataclass(frozen=True)
class Comparison:
    """All cells of two commits on one machine in one environment, the worst first."""

    base: str
    head: str
    machine: str
    environment: str
    left_out: tuple[str, ...]  # other environments in which both were measured
    cells: list[ComparedCell]


def judge(before: Side, after: Side) -> tuple[str, float | None, str]:
    """Verdict, ratio and reason. Swapped sides get the same verdict, and so do times in another unit."""
    said = _said(before, after)
    if before.value is None or after.value is None:
        return UNKNOWN, None, said
    ratio = after.value / before.value
    reservation = f"; {said}" if said else ""
    if min(before.samples, after.samples) < MIN_SAMPLES:
        return UNKNOWN, ratio, f"{before.samples} and {after.samples} samples; at least {MIN_SAMPLES} are needed{reservation}"
    spread = max((side.high - side.low) / value for side, value in ((before, before.value), (after, after.value)))
    change = math.log(max(before.value, after.value) / min(before.value, after.value))
    if change <= math.log1p(MIN_CHANGE):
        return SAME, ratio, f"within {numbers.percent(MIN_CHANGE)}{reservation}"
    noise = f"{SPREADS} x the spread of {numbers.percent(spread)}"
    if change <= SPREADS * spread:
        return UNKNOWN, ratio, f"within {noise}{reservation}"
    if SPREADS * spread < math.log1p(MIN_CHANGE):
        noise = numbers.percent(MIN_CHANGE)
    if before.high < after.low or after.high < before.low:
        return DIFFERS, ratio, f"{'slower' if ratio > 1 else 'faster'} by over {noise}{reservation}"
    return UNKNOWN, ratio, f"beyond {noise}, but the quartiles overlap{reservation}"


def _said(before: Side, after: Side) -> str:
    """The reasons of both sides as text, once if they are the same."""
    if before.reason == after.reason:
        return f"before and after: {before.reason}" if before.reason else ""
    return "; ".join(f"{when}: {side.reason}" for when, side in (("before", before), ("after", after)) if side.reason)


def exit_status(cells: Iterable[ComparedCell]) -> int:
    """1 if a cell became slower, 4 where nothing could be compared, else 0."""
    cells = list(cells)
    if any(cell.slower for cell in cells):
        return 1
    return 4 if all(cell.verdict == UNKNOWN for cell in cells) else 0


def worst_first(cells: Iterable[ComparedCell]) -> list[ComparedCell]:
    """By ratio, the largest first; unknown ones last, and of those the ones without a ratio."""
    return sorted(cells, key=lambda cell: (cell.verdict == UNKNOWN, -(cell.ratio or 0.0), cell.benchmark, cell.params))


def no_such_machine(asked: str, folder: Path, there: Iterable[str]) -> str:
    """The error for a machine without results."""
    return f"no results of machine {asked!r} in {folder.name}/, only of {', '.join(there)}"


def choose_machine(folder: Path, asked: str | None, own: str) -> str:
    """The machine to show: the given one, else this one, else the only one with results. Raises Impossible."""
    there = results.machines(folder)
    if not there:
        raise Impossible(f"no results yet in {folder.name}/: measure commits with `convbench run` first")
    if asked is not None:
        if asked not in there:
            raise Impossible(no_such_machine(asked, folder, there))
        return asked
    if own in there:
        return own
    if len(there) > 1:
        raise Impossible(f"no results of this machine in {folder.name}/: say which with --machine: {', '.join(there)}")
    return there[0]


def compare(
    folder: Path, machine: str, base: str, head: str, known: dict[str, dict[str, Any]], patterns: Iterable[str]
) -> Comparison:
    """Judge the cells of two commits (full hashes) that match a pattern, or all. Raises Impossible and Unreadable."""
    before, after = (_files(folder, machine, commit) for commit in (base, head))
    common = [environment for environment in after if environment in before]
    if not common:
        raise Impossible(
            f"{base[:8]} and {head[:8]} have no environment in common on {machine}, and times of different ones are not "
            f"compared: {', '.join(before)}; {', '.join(after)}"
        )
    environment = common[-1]
    cells = _compared(_read(before[environment], known), _read(after[environment], known))
    wanted = [re.compile(pattern) for pattern in patterns]
    if wanted:
        cells = [c for c in cells if any(w.search(spelling((c.benchmark, c.params))) for w in wanted)]
        if not cells:
            raise Impossible(f"no cell of {base[:8]} and {head[:8]} on {machine} matches these filters")
    return Comparison(base, head, machine, environment, tuple(common[:-1]), worst_first(cells))


def _files(folder: Path, machine: str, commit: str) -> dict[str, Path]:
    """A commit's results files on a machine by environment, the one measured last at the end.

    A file that cannot be read is reported and skipped; raises Unreadable if that leaves none, Impossible if there is
    none.
    """
    found, unreadable = {}, []
    for path in results.result_files(folder):
        if path.parent.name == machine and path.name.startswith(commit[:8]):
            try:
                stored = files.read(path)
            except Unreadable as error:
                unreadable.append(error)
                continue
            if stored.commit == commit:
                found[stored.environment] = path
    if not found and unreadable:
        raise unreadable[0]
    if not found:
        raise Impossible(
            f"no results of commit {commit[:8]} on {machine} in {folder.name}/: check it out and measure it with "
            "`convbench run` first"
        )
    for reason in unreadable:
        untrusted.warn(reason)
    return found


# By cell, the version of its benchmark and what was measured.
Sides = dict[Cell, tuple[str | None, Side]]


def _read(path: Path, known: dict[str, dict[str, Any]]) -> Sides:
    """Every cell of a results file, also of benchmarks that have another version today. Raises Unreadable."""
    entries = files.read(path).entries
    measured = results.as_measured(path, known)
    cells = results.load(path, measured).cells
    found: Sides = {}
    with untrusted.understanding(path):
        for name, entry in entries.items():
            repeats = entry.get("stats_repeat") or itertools.repeat(None)
            counts = dict(zip(itertools.product(*(entry.get("params") or [])), repeats, strict=False))
            for cell in cells[cells.benchmark == name].itertuples():
                found[name, cell.params] = measured[name]["version"], _side(cell, counts.get(cell.params), name in known)
    return found


def _side(cell, count: int | None, known: bool) -> Side:
    reason = cell.reason if isinstance(cell.reason, str) else None
    if cell.status != "ok":
        return Side(reason=f"{cell.status}, {reason}" if reason else cell.status)
    if not known:
        return Side(reason="measured in an unknown unit, since benchmarks.json no longer has it")
    if cell.unit != "seconds":
        return Side(reason=f"not a time, but in {cell.unit}")
    if cell.value <= 0:
        return Side(reason=f"a time of {cell.value:g} s")
    if isinstance(cell.samples, list) and cell.samples:
        low, high = map(float, np.quantile(cell.samples, [0.25, 0.75]))
        return Side(cell.value, low, high, len(cell.samples), reason)
    low, high = (math.nan if quartile is None else float(quartile) for quartile in (cell.q25, cell.q75))
    return Side(cell.value, low, high, 0 if math.isnan(low + high) else int(count or 0), reason)


def _compared(before: Sides, after: Sides) -> list[ComparedCell]:
    """The cells of either commit, judged."""
    absent = Side(reason="not stored")
    cells = []
    for benchmark, params in before | after:
        cell = benchmark, params
        old, first = before.get(cell, (None, absent))
        new, second = after.get(cell, (None, absent))
        if cell in before and cell in after and old != new:
            verdict, ratio, reason = (
                UNKNOWN,
                None,
                f"not the same benchmark: version {_short(old)} before, {_short(new)} after",
            )
        else:
            verdict, ratio, reason = judge(first, second)
        cells.append(ComparedCell(benchmark, params, first, second, verdict, ratio, reason))
    return cells


def _short(version: str | None) -> str:
    return str(version)[:8]  # asv's own versions are hashes of 64 characters


def document(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON."""
    return {
        "kind": KIND,
        "base": comparison.base,
        "head": comparison.head,
        "machine": comparison.machine,
        "environment": comparison.environment,
        "exit_status": exit_status(comparison.cells),
        "cells": [
            {
                "benchmark": cell.benchmark,
                "params": list(cell.params),
                "verdict": cell.verdict,
                "before": cell.before.value,
                "after": cell.after.value,
                "ratio": cell.ratio,
                "reason": cell.reason,
            }
            for cell in comparison.cells
        ],
    }


def show(comparison: Comparison, console: Console) -> None:
    """Print a row for every cell that has a time or failed, and how many others there are."""
    commits = f"{comparison.base[:8]} (before) and {comparison.head[:8]} (after)"
    console.print(one_line(f"{KIND}: {comparison.machine}, {commits}, {comparison.environment}", style="bold"))
    console.print(one_line("median ± half the interquartile range; ratio: after over before, worst first"))
    larger = f"by over {numbers.percent(MIN_CHANGE)} and over {SPREADS} x the spread".replace(".0", "")
    console.print(one_line(f"differs: {larger}, the larger IQR over its median"))
    console.print(one_line("measured at different times, so a verdict is a hint; `convbench gate` decides"))
    for environment in comparison.left_out:
        console.print(one_line(f"measured less recently and not shown: {environment}"))
    if told := [cell for cell in comparison.cells if cell.told]:
        names = [spelling((cell.benchmark, cell.params)) for cell in told]
        show_rows(functools.partial(_table, told), names, [f"{cell.verdict}: {cell.reason}" for cell in told], console)
    for kind, count in _untold(comparison.cells).most_common():
        console.print(one_line(f"{_cells(count)} without a time: {kind}"), highlight=False)
    console.print(one_line(_summary(comparison.cells), style="bold"), highlight=False)


def _table(cells: Sequence[ComparedCell], names: Sequence[str], verdicts: Sequence[str]) -> Table:
    table = before_and_after()
    if verdicts:
        table.add_column("verdict")
    for cell, name, *verdict in zip(cells, names, *filter(None, [verdicts]), strict=True):
        table.add_row(
            one_line(name),
            *(one_line(_time(side)) for side in (cell.before, cell.after)),
            one_line("" if cell.ratio is None else numbers.ratio(cell.ratio)),
            *(one_line(words) for words in verdict),
            style="bold red" if cell.slower else None,
        )
    return table


def _time(side: Side) -> str:
    if side.value is None:
        return ""
    if not side.samples:
        return numbers.quantity(side.value, "seconds")
    spread = (side.high - side.low) / 2 / side.value
    return numbers.with_spread(side.value, "seconds", spread)


def _untold(cells: Iterable[ComparedCell]) -> Counter[str]:
    """The kinds of reasons why cells have no row, with their counts."""
    shortened = (
        [replace(side, reason=(side.reason or "").partition(":")[0]) for side in (cell.before, cell.after)]
        for cell in cells
        if not cell.told
    )
    return Counter(_said(*sides) for sides in shortened)


def _summary(cells: list[ComparedCell]) -> str:
    counts = Counter(cell.verdict for cell in cells)
    slower = sum(cell.slower for cell in cells)
    differing = f"{counts[DIFFERS]} differ ({slower} slower, {counts[DIFFERS] - slower} faster)"
    return f"{_cells(len(cells))}: {differing}, {counts[SAME]} same, {counts[UNKNOWN]} unknown"


def _cells(count: int) -> str:
    return f"{count} cell{'s' * (count != 1)}"
