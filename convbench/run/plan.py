"""Which cells a run measures, which of them are there already, and how long the rest will take."""

from __future__ import annotations

import contextlib
import difflib
import fnmatch
import itertools
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from convbench.stored import results

Cell = tuple[str, tuple[str, ...]]
LONGEST = 100_000  # characters of a step's pattern: Linux takes no argument of a program beyond 131072
TYPICAL = 0.33  # seconds a cell and round on two cores, of cells never measured here; two thirds of them are skipped


@dataclass(frozen=True)
class Selection:
    """What the user asked for: regular expressions on "name(parameters)", implementation patterns, a short run or all."""

    patterns: tuple[str, ...] = ()
    implementations: tuple[str, ...] = ()
    quick: bool = False

    def names(self, implementation: str) -> bool:
        """Whether an implementation is among those asked for."""
        return not self.implementations or any(fnmatch.fnmatchcase(implementation, one) for one in self.implementations)

    def finds(self, cell: Cell) -> bool:
        """Whether a cell is among those asked for, whatever its implementation."""
        return not self.patterns or any(re.search(pattern, spelling(cell)) for pattern in self.patterns)


@dataclass
class Step:
    """The cells of one class, measured by one call of asv and moved into place together."""

    name: str
    cells: list[Cell]
    rounds: int
    seconds: float

    def pattern(self) -> str:
        """A regular expression for asv's --bench that matches these cells and no others.

        One expression: asv tries every one it is given on every cell, and Python's cache of compiled ones ends at 512.
        """
        return "^(?:" + "|".join(re.escape(spelling(cell)) for cell in self.cells) + ")$"


def spelling(cell: Cell) -> str:
    """A cell as asv writes it for --bench."""
    name, params = cell
    return f"{name}({', '.join(params)})" if params else name


def select(benchmarks: dict[str, dict[str, Any]], selection: Selection) -> list[Cell]:
    """The selected cells, in the order of benchmarks.json; limits of the machine first, since figures need them."""
    cells = []
    for name, benchmark in sorted(benchmarks.items(), key=lambda item: "ceilings" not in item[1]):
        for params in itertools.product(*benchmark.get("params", [])):
            if _selected(name, params, benchmark, selection):
                cells.append((name, params))
    return cells


def _selected(name: str, params: tuple[str, ...], benchmark: dict[str, Any], selection: Selection) -> bool:
    named = dict(zip(benchmark.get("param_names", []), params, strict=False))
    if "ceilings" in benchmark:
        # They come along unless cells are named, since figures need them; a short run needs those of one thread.
        if selection.quick and named.get("threads", "1") != "1":
            return False
        if not selection.patterns:
            return True
    elif selection.quick and named.get(benchmark.get("axis", "")) not in benchmark.get("quick", []):
        return False
    if "implementation" in named:
        own = results.plain(named["implementation"])
        if not selection.names(own):
            return False
        asked = selection.implementations or any(own in pattern for pattern in selection.patterns)
        if not asked and benchmark.get("implementations", {}).get(own, {}).get("on_request"):
            return False
    return selection.finds((name, params))


def check_names(benchmarks: dict[str, dict[str, Any]], patterns: Iterable[str]) -> None:
    """Raise ClickException, with near matches, for a pattern that fits no implementation of the suite."""
    known = sorted(
        {
            results.plain(value)
            for benchmark in benchmarks.values()
            for name, values in zip(benchmark.get("param_names", []), benchmark.get("params", []), strict=False)
            if name == "implementation"
            for value in values
        }
    )
    for pattern in patterns if known else ():
        if not fnmatch.filter(known, pattern):
            near = difflib.get_close_matches(pattern, known, cutoff=0.5) or known
            raise click.ClickException(f"no implementation is called {pattern!r}; there is {', '.join(near)}")


def missing(
    cells: Iterable[Cell], benchmarks: dict[str, dict[str, Any]], file: Path | None, named: bool = False
) -> list[Cell]:
    """Those without a figure or a deliberate reason in a results file; failed ones are measured again.

    So is, of implementations that are asked for by name, what was left out for want of something that may be there by now.
    """
    if file is None or not file.is_file():
        return list(cells)
    run = results.load(file, benchmarks)
    settled = run.cells.status.isin(["ok", "skipped"])
    if named:
        settled &= ~run.cells.reason.astype(str).str.startswith(("unavailable: ", "no input: "))
    there = set(zip(run.cells.benchmark[settled], run.cells.params[settled], strict=True))
    return [cell for cell in cells if cell not in there]


def steps(cells: Iterable[Cell], benchmarks: dict[str, dict[str, Any]], known: dict[Cell, float]) -> list[Step]:
    """Cells grouped by class, each group with its estimate: from earlier runs here, else a typical cost."""
    found: dict[tuple[str, int], Step] = {}
    length: dict[str, int] = defaultdict(int)
    for cell in cells:
        name = cell[0].rpartition(".")[0] or cell[0]
        rounds = int(benchmarks[cell[0]].get("rounds", 1))
        length[name] += len(re.escape(spelling(cell))) + 1
        step = found.setdefault((name, length[name] // LONGEST), Step(name, [], rounds, 0.0))
        step.cells.append(cell)
        step.seconds += rounds * known.get(cell, TYPICAL)
    return list(found.values())


def durations(side_files: Iterable[Path]) -> dict[Cell, float]:
    """Seconds a cell took in earlier runs, from their side files: preparation, calls, and what asv adds."""
    found: dict[Cell, float] = {}
    for path in side_files:
        with contextlib.suppress(results.Unreadable):  # an estimate does without
            for cell, line in results.side_lines(path).items():
                wall = line.get("wall")
                if wall is not None and math.isfinite(wall):
                    found[cell] = wall + 0.03
    return found


def minutes(seconds: float) -> str:
    """An estimate for people."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} minutes"


def count_lines(path: Path) -> int:
    """How many cells a side file has lines for: the progress of a running step."""
    try:
        with path.open("rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return 0


def last_line(path: Path) -> dict[str, Any]:
    """The newest whole line of a side file, {} where there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    except (OSError, ValueError, IndexError):
        return {}
