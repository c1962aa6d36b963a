"""Cells as tables: problems as rows, implementations as columns. Takes a data frame and returns text or rows."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from convbench import figures

# The columns of --json and --csv, in this order.
FIELDS = [
    *("benchmark", "row", "implementation", "status", "reason", "value", "unit", "q25", "q75", "repeats"),
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
WIDEST_CELL = 17  # characters of "1.234 ms ±0.5 %" and a space either side


@dataclass(frozen=True)
class Notes:
    """What stands above the tables: where the figures come from, and what speed-ups are relative to."""

    heading: str
    baseline: str | None


def records(cells: pd.DataFrame) -> list[dict]:
    """One plain dictionary a cell, for JSON and CSV; None where there is no figure."""
    frame = cells.copy()
    frame["repeats"] = [len(samples) if isinstance(samples, list) else None for samples in frame.samples]
    frame["row"] = [", ".join(row) for row in frame.row]
    rows = frame[FIELDS].to_dict(orient="records")
    return [{key: None if _absent(value) else value for key, value in row.items()} for row in rows]


def show(cells: pd.DataFrame, notes: Notes, console: Console) -> None:
    """Print a table for every benchmark, and under it the reasons of cells that have no time."""
    console.print(Text(notes.heading, style="bold"))
    legend = "median ± half the interquartile range"
    if notes.baseline:
        legend += f"; speed-up over {notes.baseline}; percent of this machine's measured limit"
    console.print(legend, highlight=False)
    for benchmark, group in cells.groupby("benchmark", sort=False):
        console.print()
        _block(str(benchmark), group, console)


def _block(benchmark: str, group: pd.DataFrame, console: Console) -> None:
    if group.implementation.notna().any():
        lines = {
            (row, name): cell for row, name, cell in zip(group.row, group.implementation, group.itertuples(), strict=True)
        }
    else:  # no implementation axis: the last parameter across, or a single column
        lines = {
            (cell.row[:-1] or cell.row, cell.row[-1] if len(cell.row) > 1 else "result"): cell for cell in group.itertuples()
        }
    rows = list(dict.fromkeys(row for row, _ in lines))
    columns = [name for name in dict.fromkeys(name for _, name in lines) if _any_time(lines, name)]
    rows = [
        row for row in rows if any((row, name) in lines and lines[row, name].status != "not measured" for name in columns)
    ]
    console.print(Text(benchmark if columns else f"{benchmark}: no times", style="bold"))
    first = max([len(", ".join(row)) for row in rows] + [8]) + 3
    fit = max(1, (console.width - first) // WIDEST_CELL)
    for start in range(0, len(columns), fit):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("")
        for name in columns[start : start + fit]:
            table.add_column(name, justify="right", overflow="fold")
        for row in rows:
            table.add_row(", ".join(row), *(_cell(lines.get((row, name))) for name in columns[start : start + fit]))
        console.print(table)
    for reason in _reasons(group):
        console.print(Text(reason), highlight=False)


def _cell(cell) -> Text:
    """What stands in one place of a table: the time and, below it, how good that is."""
    if cell is None or cell.status == "not measured":
        return Text("")
    if cell.status != "ok":
        return Text((cell.reason or cell.status).partition(":")[0] if cell.status == "skipped" else cell.status, style="dim")
    spread = relative_spread(cell)
    text = figures.quantity(cell.value, cell.unit, spread)
    if spread is not None:
        text += f" ±{figures.percent(spread)}"
    second = []
    if not _absent(cell.speedup):
        second.append(figures.ratio(cell.speedup, spread))
    if not _absent(cell.percent_of_limit):
        second.append(figures.percent(cell.percent_of_limit / 100))
    return Text(text + ("\n" + "  ".join(second) if second else ""))


def relative_spread(cell) -> float | None:
    """Half the interquartile range over the median; None for a figure without samples."""
    if _absent(cell.q25) or _absent(cell.q75) or not cell.value:
        return None
    return (cell.q75 - cell.q25) / 2 / cell.value


def _reasons(group: pd.DataFrame) -> list[str]:
    """Why cells have no time, in words: once for each implementation and reason."""
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for cell in group.itertuples():
        if cell.status in ("skipped", "failed"):
            reason = cell.reason or "no reason recorded"
            # A reason that names figures differs from cell to cell; its kind says it once.
            kind = reason.partition(":")[0] if reason.startswith("too slow here") else reason
            found[cell.implementation or "", cell.status, kind].append(", ".join(cell.row))
    texts = []
    for (name, status, reason), rows in found.items():
        places = rows[0] if len(rows) == 1 else f"{len(rows)} rows"
        texts.append(f"{name + ': ' if name else ''}{'FAILED, ' if status == 'failed' else ''}{reason} ({places})")
    return texts


def _any_time(lines: dict, name: str) -> bool:
    return any(cell.status in ("ok", "failed") for (_, column), cell in lines.items() if column == name)


def _absent(value) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
