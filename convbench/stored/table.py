"""Cells as tables: problems down and implementations across, or the other way where that is narrower.

Takes a data frame and returns text or rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from convbench.common import numbers
from convbench.common.terminal import line, one_line, printable

ENDLESS = 10_000  # characters that no line has
# The columns of --json and --csv, in this order.
FIELDS = [
    *(
        "machine",
        "commit",
        "environment",
        "benchmark",
        "row",
        "implementation",
        "status",
        "reason",
        "value",
        "unit",
        "q25",
        "q75",
        "repeats",
    ),
    *(
        "device",
        "family",
        "speedup",
        "effective_gflops",
        "percent_of_limit",
        "bound",
        "relative_l2",
        "threads",
        "label",
    ),
]


@dataclass(frozen=True)
class Notes:
    """What stands above the tables: where the figures come from, and what speed-ups are relative to."""

    heading: str
    baseline: str | None


def as_dicts(cells: pd.DataFrame) -> list[dict]:
    """One plain dictionary a cell, for JSON and CSV; None where there is no figure."""
    frame = cells.copy()
    frame["repeats"] = [len(samples) if isinstance(samples, list) else None for samples in frame.samples]
    frame["row"] = [", ".join(row) for row in frame.row]
    rows = frame.reindex(columns=FIELDS).to_dict(orient="records")
    return [{key: None if _absent(value) else value for key, value in row.items()} for row in rows]


def for_spreadsheet(value: Any) -> Any:
    """A value for a CSV file: a spreadsheet would take a text that begins like a formula for one, and run it."""
    if not isinstance(value, str):
        return value
    return ("'" if value.lstrip(" \n").startswith(("=", "+", "-", "@", "\t", "\r")) else "") + printable(value)


def show(cells: pd.DataFrame, notes: Notes, console: Console) -> None:
    """Print a table for every benchmark, and under it the reasons of cells that have no time."""
    console.print(one_line(notes.heading, style="bold"))
    legend = "median ± half the interquartile range"
    if notes.baseline:
        legend += f"; speed-up over {notes.baseline}; percent of this machine's measured limit"
    console.print(one_line(legend))
    for benchmark, group in cells.groupby("benchmark", sort=False):
        console.print()
        _block(str(benchmark), group, console)


def _block(benchmark: str, group: pd.DataFrame, console: Console) -> None:
    places = _places(group)
    # A row or a column without any time is told by the reasons below the table.
    alive = [place for place, cell in places.items() if cell.status in ("ok", "failed")]
    rows = [", ".join(row) for row in dict.fromkeys(row for row, _ in places) if any(row == r for r, _ in alive)]
    columns = [name for name in dict.fromkeys(name for _, name in places) if any(name == n for _, n in alive)]
    console.print(one_line(benchmark if columns else f"{benchmark}: no times", style="bold"))
    texts = {(", ".join(row), name): _cell(cell) for (row, name), cell in places.items()}
    parts = _parts(rows, columns, texts, console.width)
    if len(parts) > 1:
        turned = {(name, row): text for (row, name), text in texts.items()}
        if len(others := _parts(columns, rows, turned, console.width)) < len(parts):
            rows, texts, parts = columns, turned, others
    first = _first(rows, console.width)
    for part in parts:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("", overflow="fold", min_width=first)
        for name in part:
            table.add_column(one_line(name), justify="right", overflow="fold")
        for row in rows:
            table.add_row(one_line(row), *(texts.get((row, name), one_line("")) for name in part))
        console.print(table)
    for reason in reasons(group):
        console.print(one_line(reason), highlight=False)


def _places(group: pd.DataFrame) -> dict[tuple, Any]:
    """Cells by their row and column: implementations across, or without that axis the last parameter."""
    if group.implementation.notna().any():
        return {(cell.row, cell.implementation): cell for cell in group.itertuples()}
    return {(cell.row[:-1] or cell.row, cell.row[-1] if len(cell.row) > 1 else "result"): cell for cell in group.itertuples()}


def _first(rows: list[str], width: int) -> int:
    """How wide the rows' names may be."""
    return min(max(map(len, rows), default=0), width // 2)


def _parts(rows: list[str], columns: list[str], texts: dict[tuple[str, str], Text], width: int) -> list[list[str]]:
    """Cut the columns into parts that fit a width beside the rows' names, each of one column at least."""
    room = width - _first(rows, width) - 2
    parts: list[list[str]] = []
    used = 0
    for name in columns:
        lines = [line for row in rows if (row, name) in texts for line in texts[row, name].plain.splitlines()]
        wide = max(map(len, [name, *lines])) + 3
        if not parts or used + wide > room:
            parts.append([])
            used = 0
        parts[-1].append(name)
        used += wide
    return parts


def _cell(cell) -> Text:
    """What stands in one place of a table: the time and, below it, how good that is."""
    if cell is None or cell.status == "not measured":
        return one_line("")
    if cell.status != "ok":
        return one_line(
            (_text(cell.reason) or cell.status).partition(":")[0] if cell.status == "skipped" else cell.status, style="dim"
        )
    text = numbers.with_spread(cell.value, cell.unit, None if _absent(cell.spread) else cell.spread)
    if _text(cell.reason):
        text += " !"  # measured, with a reservation that stands among the reasons
    second = []
    if not _absent(cell.speedup):
        second.append(numbers.ratio(cell.speedup, cell.speedup_spread))
    if not _absent(cell.percent_of_limit):
        second.append(numbers.percent(cell.percent_of_limit / 100))
    return Text(line(text) + ("\n" + "  ".join(second) if second else ""))


def before_and_after() -> Table:
    """A table whose first columns are a name, both values and their ratio."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("", overflow="fold")
    for column in ("before", "after", "ratio"):
        grid.add_column(column, justify="right", no_wrap=True)
    return grid


def show_rows(make: Callable[[Sequence[str]], Table], names: Sequence[str], console: Console) -> None:
    """Print what is made of the names of its rows; where they leave no room for the rest, numbers stand for them."""
    wanted = Measurement.get(console, console.options.update_width(ENDLESS), make(names)).minimum
    numbered = wanted > console.width
    console.print(make([f"{i}" for i in range(1, len(names) + 1)] if numbered else names))
    if numbered:
        console.print(Text("\n".join(line(f"{i} is {name}") for i, name in enumerate(names, 1)) + "\n"), soft_wrap=True)


def reasons(group: pd.DataFrame) -> list[str]:
    """Why cells have no time, in words: each reason once, with those it holds for."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell in group.itertuples():
        if cell.status in ("skipped", "failed") or _text(cell.reason):
            name = _text(cell.implementation)
            # Said by its name, what one lacks would be told once for each of those who lack the same.
            reason = (_text(cell.reason) or "no reason recorded").replace(f"unavailable: {name} ", "unavailable: it ")
            # A reason that names figures differs from cell to cell; its kind says it once.
            kind = reason.partition(":")[0] if reason.startswith("too slow here") else reason
            found[f"FAILED, {kind}" if cell.status == "failed" else kind][name].append(", ".join(cell.row))
    names = group.implementation.dropna().unique()
    return [f"{_whom(holders, len(names))}{reason}" for reason, holders in found.items()]


def _whom(holders: dict[str, list[str]], implementations: int) -> str:
    """Who has a reason and how often: names with their rows, or everybody at once."""
    counts = {len(rows) for rows in holders.values()}
    if len(holders) == implementations > 1 and len(counts) == 1:
        each = counts.pop()
        return f"every implementation ({each} rows each): " if each > 1 else "every implementation: "
    who = []
    for name, rows in holders.items():
        where = rows[0] if len(rows) == 1 else f"{len(rows)} rows"
        who.append(f"{name} ({where})".strip() if where else name)
    return ", ".join(filter(None, who)) + ": " * any(who)


def _text(value: Any) -> str:
    return "" if _absent(value) else str(value)


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
