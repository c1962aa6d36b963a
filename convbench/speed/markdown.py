"""Goals and times as Markdown: what `convbench speed` prints and puts into docs/speed.md."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from tabulate import tabulate

from convbench.common import numbers
from convbench.speed.goals import PACKED, THREADS, CandidateResult, Goals, Row, Times, judge, mean, times_faster

# The libraries' names in the report, by their stored names.
LIBRARIES = {
    "python": "Python",
    "numpy": "NumPy",
    "torch": "torch",
    "opencv-python-headless": "OpenCV",
    "numba": "Numba",
    "Cython": "Cython",
}
FEW = 4  # notes of one kind about one candidate that are spelled out


def text(goals: Goals, rows: Iterable[Row], times: Times, machine: str, code: str) -> str:
    """The whole report: heading, goals, and a table of problems for every row and number of threads.

    code: which code was measured and how, in words.
    """
    rows = list(rows)
    parts = [heading(times, machine, code), "## Goals", _goals(goals, rows, times)]
    for row in rows:
        parts += [f"## {row.name.capitalize()}", f"{row.what[0].upper()}{row.what[1:]}. Judged by `{row.ours}`."]
        for threads in THREADS:
            parts += [f"{numbers.many(threads, 'thread').capitalize()}:", _problems(goals, row, times, threads)]
        parts += ["\n".join(f"* {note}" for note in _notes(goals, row, times))]
    return "\n\n".join(filter(None, parts)) + "\n"


def heading(times: Times, machine: str, code: str) -> str:
    """Where, when and with what the times were measured."""
    lines = [line for several in times.lines.values() for line in several]
    days = sorted({line["date"][:10] for line in lines})
    versions = [
        f"{title} {' and '.join(found)}"
        for name, title in LIBRARIES.items()
        if (found := sorted({line["versions"][name] for line in lines if name in line["versions"]}))
    ]
    when = " to ".join(dict.fromkeys([days[0], days[-1]]))
    where = f"Measured on `{machine}` with {', '.join(versions)}, on {when}, {code}."
    how = "Times are medians ± half the interquartile range."
    if counts := Counter(len(several) for several in times.lines.values() if len(several) > 1):
        made = ", ".join(f"{count} of {len(times.lines)} in {processes}" for processes, count in sorted(counts.items()))
        how += f" Measured in several processes, because the first was close to a goal for each problem: {made};"
        how += " a ratio is the median of all processes."
    return f"{where} {how}"


def _goals(goals: Goals, rows: list[Row], times: Times) -> str:
    lines = [
        [row.name, str(goal), *(str(judge([row], goal, times, threads)) for threads in THREADS)]
        for row in rows
        for goal in row.goals
    ]
    lines += [
        [
            each.name,
            f"{goal}{', each row counting once' * bool(goal.geomean)}",
            *(str(judge(each.rows, goal, times, threads)) for threads in THREADS),
        ]
        for each in goals.overall
        for goal in each.goals
        if set(each.rows) & set(rows)
    ]
    return _table(["row", "goal", *(numbers.many(threads, "thread") for threads in THREADS)], lines, left=4)


def _problems(goals: Goals, row: Row, times: Times, threads: int) -> str:
    """Problems down; times of all candidates, ratios and the error of ours across."""
    names = _columns(goals, row, times, threads)
    compared = [(than, row.ours) for than in row.compared]
    compared += [(row.baseline, row.ours + PACKED)] * (row.ours + PACKED in names)
    lines = []
    for label in row.problems:
        wanted = {*goals.candidates(label), *times.names(label, threads)}
        cells = [_time(times.result(label, threads, name)) if name in wanted else "" for name in names]
        ratios = [_ratio(times.ratio(label, threads, *pair)) for pair in compared]
        ours = times.result(label, threads, row.ours)
        error = f"{ours.entry['relative_l2']:.1e}" if "relative_l2" in ours.entry else ""  # a mask has none
        lines.append([label, *cells, *ratios, error])
    means = [_ratio(mean(row, *pair, times, threads)) for pair in compared]
    lines.append(["geometric mean", *[""] * len(names), *means, ""])
    titles = [f"{ours} over {than}" for than, ours in compared]
    return _table(["problem", *names, *titles, "relative L2 error"], lines, left=1)


def _columns(goals: Goals, row: Row, times: Times, threads: int) -> list[str]:
    """The candidates of a row in order, each followed by itself with packed weights if that was measured."""
    measured = {name for label in row.problems for name in times.names(label, threads)}
    names = dict.fromkeys([row.baseline, *row.beside, *row.compared, row.ours, *row.also])
    return [name for own in names for name in (own, own + PACKED) if name == own or name in measured]


def _notes(goals: Goals, row: Row, times: Times) -> list[str]:
    """Why candidates have no time, and what disturbed a measurement; what is skipped again and again for one kind of reason
    is said once, with how often.
    """
    found: list[str] = []
    skipped: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for label in row.problems:
        for threads in THREADS:
            where = f"{label}, {numbers.many(threads, 'thread')}"
            for name in _columns(goals, row, times, threads):
                result = times.result(label, threads, name)
                if result.status == "failed":
                    found.append(f"{where}: {name} failed: {result.entry['reason']}")
                elif result.status == "skipped":
                    reason = result.entry["reason"]
                    skipped.setdefault((name, reason.partition(":")[0]), []).append((where, reason))
            for line in times.lines.get((label, threads), ()):
                if line["disturbed"]:
                    found.append(f"{where}: measured while {line['disturbed']}")
    for (name, kind), notes in skipped.items():
        reasons = {reason for _, reason in notes}
        if len(notes) > FEW:
            found.append(f"{name} skipped {len(notes)} times: {reasons.pop() if len(reasons) == 1 else kind}")
        else:
            found += [f"{where}: {name} skipped: {reason}" for where, reason in notes]
    return found


def _time(result: CandidateResult) -> str:
    if result.status != "ok":
        return result.status
    low, middle, high = result.quartiles
    spread = (high - low) / 2 / middle
    return numbers.with_spread(middle, "seconds", spread)


def _ratio(value: float) -> str:
    return "" if math.isnan(value) else times_faster(value)


def _table(titles: list[str], lines: list[list[str]], left: int) -> str:
    """The first `left` columns begin at the left, the others end at the right."""
    sides = ["left"] * left + ["right"] * (len(titles) - left)
    return tabulate(lines, titles, tablefmt="pipe", disable_numparse=True, colalign=sides)
