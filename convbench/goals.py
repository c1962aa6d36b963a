"""The goals of docs/speed.md, and whether stored times meet them. Measures nothing and prints nothing."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import click
import numpy as np

from convbench import figures

THREADS = (1, 2)  # what the goals are judged for
PACKED = " packed once"  # behind an implementation's name: its weights packed beforehand
TRANSFORMS = ("winograd", "fft")  # families whose arithmetic is not exact: they round more than a sum of products

Key = tuple[str, int]  # a problem's label and a number of threads


@dataclass(frozen=True)
class Goal:
    """One thing a row promises; benchmarks/speed.toml says what each field means. Without `than` and problems: see there."""

    than: str = ""
    geomean: float = 0.0
    each: float = 0.0
    problems: tuple[str, ...] = ()
    error: float = 0.0
    exact: bool = False

    def __str__(self) -> str:
        """The goal in words."""
        if self.exact:
            return "exact arithmetic"
        if self.error:
            return f"relative L2 error at most {self.error:g}"
        which = f"each of {len(self.problems)} problems" if self.problems else "each"
        parts = [f"geometric mean at least {self.geomean:g}x {self.than}"] * bool(self.geomean)
        parts += [f"{which} at least {self.each:g}x {self.than}"] * bool(self.each)
        return ", ".join(parts)


@dataclass(frozen=True)
class Row:
    """Problems that are judged together, by the times of one implementation of ours."""

    name: str
    what: str
    ours: str
    problems: tuple[str, ...]
    goals: tuple[Goal, ...]
    also: tuple[str, ...] = ()

    def compared(self, baseline: str) -> list[str]:
        """Whom ours is compared with, the baseline first."""
        return list(dict.fromkeys([baseline, *(goal.than for goal in self.goals if goal.than)]))


@dataclass(frozen=True)
class Goals:
    """All rows, and what they share."""

    baseline: str
    beside: tuple[str, ...]
    seconds: float
    overall: float
    rows: tuple[Row, ...]

    def contenders(self, label: str) -> list[str]:
        """Everybody who is measured on a problem, whichever rows it is in."""
        names = [self.baseline, *self.beside]
        for row in self.rows:
            if label in row.problems:
                names += [goal.than for goal in row.goals if goal.than and label in (goal.problems or row.problems)]
                names += [row.ours, *row.also]
        return list(dict.fromkeys(names))

    def only(self, names: tuple[str, ...]) -> tuple[Row, ...]:
        """The rows of these names, all where none is given. Raises ClickException for a name that no row has."""
        known = [row.name for row in self.rows]
        for name in names:
            if name not in known:
                raise click.ClickException(f"no row is called {name!r}; there are {', '.join(known)}")
        return tuple(row for row in self.rows if row.name in (names or known))


def load(path: Path) -> Goals:
    """Read the goals. Raises ClickException in one sentence for what is none."""
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
        rows = tuple(_row(entry) for entry in content.pop("row"))
        return Goals(rows=rows, **{**content, "beside": tuple(content["beside"])})
    except FileNotFoundError:
        raise click.ClickException(f"this suite has no goals: {path.parent.name}/{path.name} is not there") from None
    except (ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"{path.parent.name}/{path.name} cannot be read: {error!r}") from None


def _row(entry: dict[str, Any]) -> Row:
    made = [Goal(**{**goal, "problems": tuple(goal.get("problems", ()))}) for goal in entry["goals"]]
    lists = {"problems": tuple(entry["problems"]), "goals": tuple(made), "also": tuple(entry.get("also", ()))}
    return Row(**{**entry, **lists})


@dataclass(frozen=True)
class Cell:
    """What is known of one contender on one problem: a line's entry for it, {} where it has not been measured."""

    entry: Mapping[str, Any]

    @property
    def status(self) -> str:
        """ "ok", "failed", "skipped" or "not measured"."""
        return self.entry.get("status", "not measured")

    @cached_property
    def quartiles(self) -> tuple[float, float, float]:
        """Of the samples, in seconds; the middle one is the median."""
        low, middle, high = np.percentile(self.entry["samples"], [25, 50, 75])
        return float(low), float(middle), float(high)

    @property
    def median(self) -> float:
        """Seconds; NaN where there is no time."""
        return self.quartiles[1] if self.status == "ok" else math.nan


class Times:
    """The stored lines of one commit on one machine, by problem and threads."""

    def __init__(self, lines: Mapping[Key, Mapping[str, Any]]) -> None:
        self.lines = lines
        self._cells = {(*key, cell["name"]): Cell(cell) for key, line in lines.items() for cell in line["cells"]}

    def cell(self, label: str, threads: int, name: str) -> Cell:
        """What is known of a contender."""
        return self._cells.get((label, threads, name), Cell({}))

    def names(self, label: str, threads: int) -> list[str]:
        """Who was measured, in order."""
        return [cell["name"] for cell in self.lines.get((label, threads), {}).get("cells", [])]

    def ratio(self, label: str, threads: int, than: str, ours: str) -> float:
        """Another's median time over ours: how many times faster ours is. NaN where either has no time."""
        return self.cell(label, threads, than).median / self.cell(label, threads, ours).median


@dataclass(frozen=True)
class Verdict:
    """Whether a goal is met, and the figure: status is "met", "missed" or "not judged"."""

    status: str
    figure: str

    def __str__(self) -> str:
        return f"{self.status}: {self.figure}"


def judge(row: Row, goal: Goal, times: Times, threads: int) -> Verdict:
    """Hold one goal against the times. A row that lacks the time of a single problem is not judged."""
    lacking = [label for label in row.problems if math.isnan(times.cell(label, threads, row.ours).median)]
    labels = goal.problems or row.problems
    if goal.than:
        lacking += [label for label in labels if math.isnan(times.cell(label, threads, goal.than).median)]
    if lacking:
        return Verdict("not judged", f"no time for {len(set(lacking))} of {len(row.problems)} problems")
    cells = {label: times.cell(label, threads, row.ours) for label in labels}
    if goal.exact:
        families = sorted({str(cell.entry.get("family")) for cell in cells.values()})
        return _verdict(not set(families) & set(TRANSFORMS), " and ".join(families))
    if goal.error:
        largest = max(cells, key=lambda label: cells[label].entry["relative_l2"])
        error = cells[largest].entry["relative_l2"]
        return _verdict(error <= goal.error, f"at most {error:.1e} ({largest})")
    ratios = {label: times.ratio(label, threads, goal.than, row.ours) for label in labels}
    mean, least = geometric_mean(ratios.values()), min(ratios, key=ratios.__getitem__)
    figure = f"{times_faster(mean)}, least {times_faster(ratios[least])} ({least})"
    return _verdict(mean >= goal.geomean and ratios[least] >= goal.each, figure)


def judge_overall(goals: Goals, times: Times, threads: int) -> Verdict:
    """Hold the geometric mean of all rows' own geometric means against its goal."""
    means = [mean(row, goals.baseline, row.ours, times, threads) for row in goals.rows]
    if lacking := sum(map(math.isnan, means)):
        return Verdict("not judged", f"{lacking} of {len(means)} rows lack times")
    found = geometric_mean(means)
    return _verdict(found >= goals.overall, times_faster(found))


def mean(row: Row, than: str, ours: str, times: Times, threads: int) -> float:
    """The geometric mean of how many times faster ours is, over a row's problems; NaN where one lacks a time."""
    ratios = [times.ratio(label, threads, than, ours) for label in row.problems]
    return math.nan if any(map(math.isnan, ratios)) else geometric_mean(ratios)


def times_faster(ratio: float) -> str:
    """A ratio as it is shown."""
    return f"{figures.significant(ratio, 3)}x"


def _verdict(met: bool, figure: str) -> Verdict:
    return Verdict("met" if met else "missed", figure)
