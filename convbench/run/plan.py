"""Which cells a run measures, which of them are there already, and how long the rest will take."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convbench.common.cells import Cell, spelling
from convbench.stored import results, side_lines

LONGEST = 100_000  # characters of a step's pattern: Linux takes no argument of a program beyond 131072
TYPICAL = 0.33  # seconds a cell and round on two cores, of cells never measured here; two thirds of them are skipped


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
            for cell, line in side_lines.read(path).items():
                wall = line.get("wall")
                if wall is not None and math.isfinite(wall):
                    found[cell] = wall + 0.03
    return found


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
