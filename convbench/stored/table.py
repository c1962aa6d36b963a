"""Cells as tables: implementations down, the fastest first, and problems across.

Takes a data frame and returns text or rows.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
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

# The columns of one problem, and the order in which narrow screens drop them.
RANKED = ("", "median", "IQR/2", "speed-up", "interval", "limit", "cold", "relative time")
LEFT_OUT = ("IQR/2", "cold", "limit", "relative time", "interval", "speed-up")
BAR = len("relative time")  # characters of the longest bar
ENDLESS = 10_000  # characters that no line has
AGREEMENT = "two processes of the same code differ by a few percent"
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
        "cold",
        "threads",
        "label",
    ),
]


@dataclass(frozen=True)
class Notes:
    """The heading of the tables, and the baseline of the speed-ups."""

    heading: str
    baseline: str | None


def as_dicts(cells: pd.DataFrame) -> list[dict]:
    """One plain dictionary a cell, for JSON and CSV; None if there is no figure."""
    frame = cells.copy()
    frame["repeats"] = [len(samples) if isinstance(samples, list) else None for samples in frame.samples]
    frame["row"] = [", ".join(row) for row in frame.row]
    rows = frame.reindex(columns=FIELDS).to_dict(orient="records")
    return [{key: None if absent(value) else value for key, value in row.items()} for row in rows]


def for_spreadsheet(value: Any) -> Any:
    """A value for a CSV file: a spreadsheet would run text that begins like a formula."""
    if not isinstance(value, str):
        return value
    return ("'" if value.lstrip(" \n").startswith(("=", "+", "-", "@", "\t", "\r")) else "") + printable(value)


def show(cells: pd.DataFrame, notes: Notes, console: Console, why: bool = False) -> None:
    """Print a table for each benchmark, then its cells without a time: counts by reason, or with `why` every reason."""
    console.print(one_line(notes.heading, style="bold"))
    console.print("median ± half the interquartile range (IQR/2)")
    if notes.baseline:
        console.print(one_line(f"speed-up: over {notes.baseline}; {AGREEMENT}"))
        console.print("interval: from quartile to quartile; limit: percent of the measured limit")
    console.print()
    for benchmark, group in cells.groupby("benchmark", sort=False):
        _block(str(benchmark), group, console, why)


def _block(benchmark: str, group: pd.DataFrame, console: Console, why: bool) -> None:
    rows = group.row[group.status.isin(["ok", "failed"])].unique()
    title = f"{benchmark}: no times" if not len(rows) else benchmark
    if group.implementation.isna().all():
        console.print(one_line(title, style="bold"))
        _grid(_places(group), console)
    elif len(rows) == 1:
        console.print(one_line(f"{benchmark}, {', '.join(rows[0])}", style="bold"))
        console.print(ranking(group[group.row == rows[0]], console.width))
    else:
        console.print(one_line(title, style="bold"))
        _grid(_compared(group), console)
    remarks = reasons(group) if why else counted(group)
    for remark in remarks:
        console.print(one_line(remark), highlight=False)
    if remarks:
        console.print()


def ranking(group: pd.DataFrame, width: int) -> Table:
    """The implementations of one problem, the fastest first; what failed is last. A narrow screen has fewer columns."""
    longest = group.value.max()
    lines = [_ranked(cell, longest) for cell in group[group.status == "ok"].sort_values("value", kind="stable").itertuples()]
    lines += [{"": str(cell.implementation), "median": "failed"} for cell in group[group.status == "failed"].itertuples()]
    wide = {name: max(len(name), *(len(line.get(name, "")) for line in lines)) + 3 for name in RANKED}
    shown = [name for name in RANKED if any(line.get(name) for line in lines)]
    for name in LEFT_OUT:
        if name in shown and sum(wide[one] for one in shown) > width:
            shown.remove(name)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in shown:
        if name in ("", "relative time"):
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, justify="right", no_wrap=True)
    for found in lines:
        table.add_row(*(one_line(found.get(name, "")) for name in shown))
    return table


def _ranked(cell: Any, longest: float) -> dict[str, str]:
    spread = None if absent(cell.spread) else cell.spread
    ratio, between = speedup(cell)
    return {
        "": f"{cell.implementation}{' !' * bool(text(cell.reason))}",
        "median": numbers.quantity(cell.value, cell.unit, spread),
        "IQR/2": "" if spread is None else f"±{numbers.percent(spread)}",
        "speed-up": ratio,
        "interval": between,
        "limit": "" if absent(cell.percent_of_limit) else numbers.percent(cell.percent_of_limit / 100),
        "cold": "" if absent(cell.cold) else numbers.quantity(cell.cold, "seconds"),
        "relative time": bar(cell.value / longest if longest else 0.0, BAR),
    }


def speedup(cell: Any) -> tuple[str, str]:
    """A speed-up and its interval from quartile to quartile."""
    if absent(cell.speedup):
        return "", ""
    if absent(cell.speedup_low) or absent(cell.speedup_high):
        return numbers.ratio(cell.speedup), ""
    return numbers.ratio(cell.speedup), " to ".join(
        numbers.significant(one, 2) for one in (cell.speedup_low, cell.speedup_high)
    )


def speedup_words(cell: Any) -> str:
    """The speed-up as its interval where that is known; empty without a baseline."""
    ratio, between = speedup(cell)
    return f"{between}x" if between else ratio


def as_fast(cells: pd.DataFrame) -> list[str]:
    """The fastest implementation of one problem, and then those with overlapping quartiles."""
    first, *others = cells.sort_values("value", kind="stable").itertuples()
    known = not absent(first.q75)
    close = [other.implementation for other in others if known and not absent(other.q25) and other.q25 <= first.q75]
    return [first.implementation, *close]


def bar(share: float, width: int) -> str:
    """A share as a bar of up to `width` characters."""
    eighths = max(1, round(share * width * 8))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _compared(group: pd.DataFrame) -> dict[tuple, Any]:
    """Cells by implementation and problem, the implementation that is fastest over all problems first."""
    fastest = group[group.status == "ok"].groupby("row").value.min()
    relative = {
        name: [cell.value / fastest[cell.row] for cell in of.itertuples() if cell.status == "ok" and fastest[cell.row]]
        for name, of in group.groupby("implementation", sort=False)
    }
    # Implementations with fewer times come last.
    order = sorted(
        relative, key=lambda name: (-len(relative[name]), math.prod(relative[name]) ** (1 / (len(relative[name]) or 1)))
    )
    return {
        ((name,), ", ".join(cell.row)): cell for name in order for cell in group[group.implementation == name].itertuples()
    }


def _grid(places: dict[tuple, Any], console: Console) -> None:
    """Print one line per row with time, spread and speed-up, in as many tables as the width requires."""
    # Rows and columns without any time appear only among the reasons below the table.
    alive = [place for place, cell in places.items() if cell.status in ("ok", "failed")]
    rows = [", ".join(row) for row in dict.fromkeys(row for row, _ in places) if any(row == r for r, _ in alive)]
    columns = [name for name in dict.fromkeys(name for _, name in places) if any(name == n for _, n in alive)]
    texts = {(", ".join(row), name): _cell(cell) for (row, name), cell in places.items()}
    first = _first(rows, console.width)
    for part in _parts(rows, columns, texts, console.width):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("", overflow="fold", min_width=first)
        for name in part:
            table.add_column(one_line(name), justify="right", overflow="fold")
        for row in rows:
            table.add_row(one_line(row), *(texts.get((row, name), one_line("")) for name in part))
        console.print(table)


def _places(group: pd.DataFrame) -> dict[tuple, Any]:
    """Cells by their row and column: the last parameter goes across."""
    return {(cell.row[:-1] or cell.row, cell.row[-1] if len(cell.row) > 1 else "result"): cell for cell in group.itertuples()}


def _first(rows: list[str], width: int) -> int:
    """The width of the rows' names."""
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
    """The text of a table's cell: the time, and its speed-up over the baseline."""
    if cell is None or cell.status == "not measured":
        return one_line("")
    if cell.status != "ok":
        return one_line(
            (text(cell.reason) or cell.status).partition(":")[0] if cell.status == "skipped" else cell.status, style="dim"
        )
    shown = numbers.with_spread(cell.value, cell.unit, None if absent(cell.spread) else cell.spread)
    if text(cell.reason):
        shown += " !"  # measured with a reservation, which is among the reasons
    if not absent(cell.speedup):
        shown += f"  {numbers.ratio(cell.speedup, cell.speedup_spread)}"
    if not absent(cell.cold):
        shown += f"  {numbers.quantity(cell.cold, 'seconds')} cold"
    return Text(line(shown))


def before_and_after() -> Table:
    """A table whose first columns are a name, both values and their ratio."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("", no_wrap=True)
    for column in ("before", "after", "ratio"):
        grid.add_column(column, justify="right", no_wrap=True)
    return grid


def show_rows(
    make: Callable[[Sequence[str], Sequence[str]], Table], names: Sequence[str], remarks: Sequence[str], console: Console
) -> None:
    """Print a table made of its rows' names and remarks. If it is too wide, rows are numbered and both follow below."""
    table = make(names, remarks)
    if Measurement.get(console, console.options.update_width(ENDLESS), table).maximum <= console.width:
        console.print(table)
        return
    console.print(make([f"{i}" for i in range(1, len(names) + 1)], []))
    below = (line(f"{i}: {name}; {remark}") for i, (name, remark) in enumerate(zip(names, remarks, strict=True), 1))
    console.print(Text("\n".join(below) + "\n"), soft_wrap=console.width >= ENDLESS)


def counted(group: pd.DataFrame) -> list[str]:
    """The reasons why cells have no time: each failure and reservation, and counts of the rest by kind."""
    untold = group[group.status == "skipped"]
    kinds = Counter((text(reason) or "no reason recorded").partition(":")[0] for reason in untold.reason)
    found = reasons(group.drop(untold.index))
    if kinds:
        found.append(f"skipped: {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}; --why shows each")
    return found


def reasons(group: pd.DataFrame) -> list[str]:
    """The reasons why cells have no time, each once with its implementations."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell in group.itertuples():
        if cell.status in ("skipped", "failed") or text(cell.reason):
            name = text(cell.implementation)
            # Without the implementation's name, those that lack the same share one line.
            reason = (text(cell.reason) or "no reason recorded").replace(f"unavailable: {name} ", "unavailable: it ")
            # A reason with figures differs from cell to cell, so only its kind is shown.
            kind = reason.partition(":")[0] if reason.startswith("too slow here") else reason
            found[f"FAILED, {kind}" if cell.status == "failed" else kind][name].append(", ".join(cell.row))
    names = group.implementation.dropna().unique()
    return [f"{_named(holders, len(names))}{reason}" for reason, holders in found.items()]


def _named(holders: dict[str, list[str]], implementations: int) -> str:
    """The implementations with one reason and their rows, or all at once."""
    counts = {len(rows) for rows in holders.values()}
    if len(holders) == implementations > 1 and len(counts) == 1:
        each = counts.pop()
        return f"every implementation ({each} rows each): " if each > 1 else "every implementation: "
    named = []
    for name, rows in holders.items():
        where = rows[0] if len(rows) == 1 else f"{len(rows)} rows"
        named.append(f"{name} ({where})" if name and where else name or where)
    return ", ".join(filter(None, named)) + ": " * any(named)


def text(value: Any) -> str:
    return "" if absent(value) else str(value)


def absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
