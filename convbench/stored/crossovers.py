"""Describes the crossovers: from which size, kernel or batch on another kind of implementation is the fastest."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import pandas as pd

MIN_VALUES = 3  # of an axis: with two, a crossover could not be told from a difference
MAX_SENTENCES = 5  # rows that leave space for the rest of one screen


def sentences(cells: pd.DataFrame) -> list[str]:
    """A sentence for each benchmark whose only parameter beside the implementation is a quantity, where the winner changes.

    cells: of one run. "auto" is omitted, since it calls the others.
    """
    timed = cells[
        (cells.status == "ok") & (cells.unit == "seconds") & cells.implementation.notna() & (cells.family != "auto")
    ]
    timed = timed.astype({"value": float, "q25": float, "q75": float})
    found = []
    for benchmark, group in timed.groupby("benchmark", sort=False):
        positions = quantities(row[0] for row in group.row) if set(map(len, group.row)) == {1} else None
        if positions and len(positions) >= MIN_VALUES:
            places = sorted(group.groupby("row"), key=lambda place: positions[place[0][0]])
            if words := _words([(row[0], _fastest(of)) for row, of in places]):
                found.append(f"{str(benchmark).rpartition('.')[0] or benchmark}: {words}")
    return found[:MAX_SENTENCES]


def quantities(values: Iterable[str]) -> dict[str, float] | None:
    """The values of a parameter as positions on an axis: 8, or 256x128 as the side of a square of as many pixels.

    "all", as of threads, has none of its own. None if the parameter is not a quantity, or has only one value.
    """
    found: dict[str, float] = {}
    for value in values:
        if value == "all":
            continue
        digits = value.strip("'")  # a text of digits is a quantity as well
        if not re.fullmatch(r"\d{1,12}(\.\d{1,9})?(x\d{1,12})*", digits):
            return None
        sides = [float(side) for side in digits.split("x")]
        found[value] = math.prod(sides) ** (1 / len(sides))
    return found if len(found) > 1 and min(found.values()) > 0 else None


def _fastest(cells: pd.DataFrame) -> dict[str, Any]:
    """The fastest cell of each family, the fastest family first; an implementation without one is a kind of its own."""
    found: dict[str, Any] = {}
    for cell in cells.sort_values("value", kind="stable").itertuples():
        found.setdefault(cell.family if isinstance(cell.family, str) and cell.family else cell.implementation, cell)
    return found


def _words(places: list[tuple[str, dict[str, Any]]]) -> str:
    """Each winner with the first value at which it wins, and for the first one the last value; empty without a crossover.

    A new winner counts where it and the old one differ beyond their quartiles on both sides.
    """
    winner, since = next(iter(places[0][1])), 0
    words = ""
    for i, (name, kinds) in enumerate(places):
        new = next(iter(kinds))
        before = [old for old, known in places[since:i] if _beats(known, winner, new)]
        if before and _beats(kinds, new, winner):
            words += f", {new} from {name}" if words else f"{winner} wins up to {before[-1]}, {new} from {name}"
            winner, since = new, i
    return words


def _beats(kinds: dict[str, Any], one: str, other: str) -> bool:
    """Whether the first kind is faster and their quartiles do not overlap."""
    return one in kinds and other in kinds and bool(kinds[one].q75 < kinds[other].q25)
