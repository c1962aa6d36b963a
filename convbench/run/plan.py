"""Which cells a run measures, which of them have results already, and how long the rest will take."""

from __future__ import annotations

import contextlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from convbench.common.cells import Cell, spelling
from convbench.common.untrusted import Unreadable
from convbench.stored import results, side_lines

MAX_PATTERN_CHARACTERS = 100_000  # Linux takes no argument of a program beyond 131072
TYPICAL_SECONDS = 0.33  # a cell and round on two cores, of cells never measured here; two thirds of them are skipped
OVERHEAD_SECONDS = 0.03  # what asv adds to a cell


@dataclass
class ClassPlan:
    """The cells of one class, measured by one call of asv and published together. seconds: an estimate for all of them."""

    name: str
    cells: list[Cell]
    rounds: int
    seconds: float

    def pattern(self) -> str:
        """A regular expression for asv's --bench that matches these cells and no others.

        One expression: asv tries every one it is given on every cell, and Python's cache of compiled ones ends at 512.
        """
        return "^(?:" + "|".join(re.escape(spelling(cell)) for cell in self.cells) + ")$"


@dataclass
class Pace:
    """How long builds and classes took so far. estimated, taken: seconds of the classes, expected and real."""

    builds: list[float] = field(default_factory=list)
    estimated: float = 0.0
    taken: float = 0.0

    def seconds(self, plans: Iterable[ClassPlan], builds: int = 0) -> float:
        """How long classes and builds will take, by how far the estimates were off so far.

        The first build makes the environment, so that others are shorter.
        """
        factor = self.taken / self.estimated if self.estimated else 1.0
        building = builds * mean(self.builds[1:] or self.builds) if builds else 0.0
        return factor * sum(plan.seconds for plan in plans) + building


def missing(
    cells: Iterable[Cell], benchmarks: dict[str, dict[str, Any]], file: Path | None, named: bool = False
) -> list[Cell]:
    """The cells without a value or a deliberate reason in a results file; failed ones are measured again.

    named: implementations were selected by name. Their requirements may be installed meanwhile, so they are tried again.
    """
    if file is None or not file.is_file():
        return list(cells)
    run = results.load(file, benchmarks)
    settled = run.cells.status.isin(["ok", "skipped"])
    if named:
        settled &= ~run.cells.reason.astype(str).str.startswith(("unavailable: ", "no input: "))
    there = set(zip(run.cells.benchmark[settled], run.cells.params[settled], strict=True))
    return [cell for cell in cells if cell not in there]


def classes(cells: Iterable[Cell], benchmarks: dict[str, dict[str, Any]], known: dict[Cell, float]) -> list[ClassPlan]:
    """Cells grouped by class, each group with its estimate: from earlier runs here, else a typical cost.

    A class whose pattern would be too long is split.
    """
    found: dict[tuple[str, int], ClassPlan] = {}
    length: dict[str, int] = defaultdict(int)
    for cell in cells:
        name = cell[0].rpartition(".")[0] or cell[0]
        rounds = int(benchmarks[cell[0]].get("rounds", 1))
        length[name] += len(re.escape(spelling(cell))) + 1
        plan = found.setdefault((name, length[name] // MAX_PATTERN_CHARACTERS), ClassPlan(name, [], rounds, 0.0))
        plan.cells.append(cell)
        plan.seconds += rounds * known.get(cell, TYPICAL_SECONDS)
    return list(found.values())


def durations(side_files: Iterable[Path]) -> dict[Cell, float]:
    """Seconds a cell took in earlier runs, from their side files: preparation, calls, and what asv adds."""
    found: dict[Cell, float] = {}
    for path in side_files:
        with contextlib.suppress(Unreadable):  # the estimate works without it
            for cell, line in side_lines.read(path).items():
                wall = line.get("wall")
                if wall is not None and math.isfinite(wall):
                    found[cell] = wall + OVERHEAD_SECONDS
    return found
