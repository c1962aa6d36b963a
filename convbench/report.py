"""Goals and times as Markdown: what `convbench speed` prints and puts into docs/speed.md."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tabulate import tabulate

from convbench import figures
from convbench.goals import PACKED, THREADS, Cell, Goals, Row, Times, judge, judge_overall, mean, times_faster

# How the libraries are called where they are named, by what is stored.
LIBRARIES = {
    "python": "Python",
    "numpy": "NumPy",
    "torch": "torch",
    "opencv-python-headless": "OpenCV",
    "numba": "Numba",
    "Cython": "Cython",
}


def text(goals: Goals, rows: Iterable[Row], times: Times, machine: str, code: str) -> str:
    """The whole report: heading, goals, and a table of problems for every row and number of threads.

    code: which code was measured and how, in words.
    """
    rows = list(rows)
    parts = [heading(times, machine, code), "## Goals", _goals(goals, rows, times)]
    for row in rows:
        parts += [f"## {row.name.capitalize()}", f"{row.what[0].upper()}{row.what[1:]}. Judged by `{row.ours}`."]
        for threads in THREADS:
            parts += [f"{figures.many(threads, 'thread').capitalize()}:", _problems(goals, row, times, threads)]
        parts += ["\n".join(f"* {note}" for note in _notes(goals, row, times))]
    return "\n\n".join(filter(None, parts)) + "\n"


def heading(times: Times, machine: str, code: str) -> str:
    """Where, when and with what the times were measured."""
    lines = times.lines.values()
    days = sorted({line["date"][:10] for line in lines})
    versions = [
        f"{title} {' and '.join(found)}"
        for name, title in LIBRARIES.items()
        if (found := sorted({line["versions"][name] for line in lines if name in line["versions"]}))
    ]
    when = " to ".join(dict.fromkeys([days[0], days[-1]]))
    where = f"Measured on `{machine}` with {', '.join(versions)}, on {when}, {code}."
    return f"{where} Times are medians ± half the interquartile range."


def _goals(goals: Goals, rows: list[Row], times: Times) -> str:
    lines = [
        [row.name, str(goal), *(str(judge(row, goal, times, threads)) for threads in THREADS)]
        for row in rows
        for goal in row.goals
    ]
    words = f"geometric mean of the rows' geometric means at least {goals.overall:g}x {goals.baseline}"
    lines.append(["all rows", words, *(str(judge_overall(goals, times, threads)) for threads in THREADS)])
    return _table(["row", "goal", *(figures.many(threads, "thread") for threads in THREADS)], lines, left=4)


def _problems(goals: Goals, row: Row, times: Times, threads: int) -> str:
    """Problems down; times of everybody, ratios and the error of ours across."""
    names = _columns(goals, row, times, threads)
    compared = [(than, row.ours) for than in row.compared(goals.baseline)]
    compared += [(goals.baseline, row.ours + PACKED)] * (row.ours + PACKED in names)
    lines = []
    for label in row.problems:
        wanted = {*goals.contenders(label), *times.names(label, threads)}
        cells = [_time(times.cell(label, threads, name)) if name in wanted else "" for name in names]
        ratios = [_ratio(times.ratio(label, threads, *pair)) for pair in compared]
        ours = times.cell(label, threads, row.ours)
        error = f"{ours.entry['relative_l2']:.1e}" if ours.status == "ok" else ""
        lines.append([label, *cells, *ratios, error])
    means = [_ratio(mean(row, *pair, times, threads)) for pair in compared]
    lines.append(["geometric mean", *[""] * len(names), *means, ""])
    titles = [f"{ours} over {than}" for than, ours in compared]
    return _table(["problem", *names, *titles, "relative L2 error"], lines, left=1)


def _columns(goals: Goals, row: Row, times: Times, threads: int) -> list[str]:
    """The contenders of a row in order, each followed by itself with packed weights where that was measured."""
    measured = {name for label in row.problems for name in times.names(label, threads)}
    names = dict.fromkeys([goals.baseline, *goals.beside, *row.compared(goals.baseline), row.ours, *row.also])
    return [name for own in names for name in (own, own + PACKED) if name == own or name in measured]


def _notes(goals: Goals, row: Row, times: Times) -> list[str]:
    """Why contenders have no time, and what disturbed a measurement."""
    found = []
    for label in row.problems:
        for threads in THREADS:
            where = f"{label}, {figures.many(threads, 'thread')}"
            for name in _columns(goals, row, times, threads):
                cell = times.cell(label, threads, name)
                if cell.status in ("failed", "skipped"):
                    found.append(f"{where}: {name} {cell.status}: {cell.entry['reason']}")
            if disturbed := times.lines.get((label, threads), {}).get("disturbed"):
                found.append(f"{where}: measured while {disturbed}")
    return found


def _time(cell: Cell) -> str:
    if cell.status != "ok":
        return cell.status
    low, middle, high = cell.quartiles
    spread = (high - low) / 2 / middle
    return figures.with_spread(middle, "seconds", spread)


def _ratio(value: float) -> str:
    return "" if math.isnan(value) else times_faster(value)


def _table(titles: list[str], lines: list[list[str]], left: int) -> str:
    """The first `left` columns begin at the left, the others end at the right."""
    sides = ["left"] * left + ["right"] * (len(titles) - left)
    return tabulate(lines, titles, tablefmt="pipe", disable_numparse=True, colalign=sides)
