"""The summary on one screen: the fastest implementation of each kind of problem, and what was not timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from convbench.common import numbers
from convbench.common.terminal import one_line
from convbench.stored import crossovers, table

MAX_ROWS = 23  # lines of problems and crossovers: with what stands around them, a screen of 40 lines
MAX_OF_ONE = 3  # problems of one benchmark
MAX_SIZE = 12  # characters of one size, or two
MAX_WORDS = 40  # characters of a problem's name
HEADINGS, JUSTIFIED = ("problem", "fastest", "median", "speed-up", "limit"), ("left", "left", *["right"] * 3)


def show(cells: pd.DataFrame, known: dict[str, dict[str, Any]], notes: table.Notes, console: Console) -> None:
    """Print the fastest implementation of each problem in the suite's short selection.

    cells: with what roofline.derive adds. known: benchmarks.json.
    """
    timed = cells[(cells.status == "ok") & (cells.unit == "seconds") & cells.implementation.notna()]
    groups = list(_short(timed, known))
    changes = crossovers.sentences(timed)
    shown = groups[: MAX_ROWS - len(changes)]
    console.print(one_line(notes.heading, style="bold"))
    if limits := _limits(cells, known):
        console.print(one_line(f"limits, 1 thread: {limits}"))
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading, justify in zip(HEADINGS, JUSTIFIED, strict=True):
        grid.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for benchmark, row, group in shown:
        grid.add_row(*map(one_line, _line(benchmark, row, group)))
    console.print(grid)
    if more := len(groups) - len(shown):
        console.print(f"and {more} more problems")
    for sentence in changes:
        console.print(one_line(sentence), highlight=False)
    for sentence in _counts(cells, known, notes.baseline):
        console.print(one_line(sentence), highlight=False)


def is_meant_for(cells: pd.DataFrame) -> bool:
    """Whether there are implementations to choose from."""
    return bool((cells.implementation.notna() & (cells.status == "ok")).any())


def _short(timed: pd.DataFrame, known: dict[str, dict[str, Any]]) -> Iterator[tuple[str, tuple[str, ...], pd.DataFrame]]:
    """The problems of the short selection by benchmark, a few of each; without such a selection, of all."""
    for benchmark, group in timed.groupby("benchmark", sort=False):
        facts = known.get(str(benchmark), {})
        quick = facts.get("quick")
        place = [name for name in facts.get("param_names", []) if name != "implementation"]
        axis = place.index(facts["axis"]) if facts.get("axis") in place else 0
        count = 0
        for row, of in group.groupby("row", sort=False):
            own = (
                of.params.iloc[0][facts["param_names"].index(facts["axis"])] if quick and facts.get("axis") in place else None
            )
            if (quick and own not in quick) or len(of) < 2 or count == MAX_OF_ONE:
                continue
            count += 1
            yield str(benchmark), row[axis:] + row[:axis], of


def _line(benchmark: str, row: tuple[str, ...], group: pd.DataFrame) -> list[str]:
    fastest, *close = table.as_fast(group)
    first = next(cell for cell in group.itertuples() if cell.implementation == fastest)
    sweep = benchmark.rpartition(".")[0] or benchmark
    label = ", ".join(row)
    # A label describes the whole problem; a size needs the name of its sweep.
    words = f"{sweep if len(label) <= MAX_SIZE else sweep.partition('.')[0]} {label}"
    spread = None if table.absent(first.spread) else first.spread
    return [
        words if len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 1]}…",
        f"{fastest}{f' +{len(close)}' if close else ''}",
        numbers.quantity(first.value, first.unit, spread),
        table.speedup_words(first),
        "" if table.absent(first.percent_of_limit) else numbers.percent(first.percent_of_limit / 100),
    ]


def _limits(cells: pd.DataFrame, known: dict[str, dict[str, Any]]) -> str:
    """The machine's highest rates, as its benchmarks of limits measured them on one thread."""
    rates: dict[str, tuple[float, float, str]] = {}
    for cell in cells[(cells.status == "ok") & (cells.value > 0)].itertuples():
        facts = known.get(cell.benchmark, {}).get("ceilings", {}).get(cell.params[0] if cell.params else "", {})
        if cell.threads != 1 or facts.get("device", "cpu") != "cpu":
            continue
        for key, unit in (("flops", "GFLOP/s"), ("bytes", "GB/s")):
            if amount := facts.get(key):
                kind = cell.row[0].partition(", ")[0] if key == "bytes" else facts.get("dtype", cell.row[0])
                # The largest copy is shown, which is out of cache; of arithmetic there is one rate per precision.
                rates[kind] = max(rates.get(kind, (0.0, 0.0, "")), (amount, amount / cell.value / 1e9, f"{unit} {kind}"))
    return ", ".join(f"{numbers.significant(rate, 3)} {words}" for _, rate, words in rates.values())


def _counts(cells: pd.DataFrame, known: dict[str, dict[str, Any]], baseline: str | None) -> Iterator[str]:
    if baseline:
        yield f"speed-up: over {baseline}, from quartile to quartile"
    yield f"+1: one more is as fast; {table.AGREEMENT}"
    timed = cells[cells.status == "ok"]
    limits = sum(bool(known.get(name, {}).get("ceilings")) for name in timed.benchmark)
    # Where a suite has errors for some, what is timed was checked: by other measures, if not by this one.
    checked = ", each checked against the reference" * bool("relative_l2" in cells and cells.relative_l2.notna().any())
    others = f"; {numbers.many(limits, 'limit')}" * bool(limits)
    yield f"timed: {numbers.many(len(timed) - limits, 'cell')}{checked}{others}"
    if failed := (cells.status == "failed").sum():
        yield f"FAILED: {numbers.many(failed, 'cell')}; convbench table --bench . --why shows them"
    kinds = Counter(
        (table.text(reason) or "no reason recorded").partition(":")[0] for reason in cells[cells.status == "skipped"].reason
    )
    if kinds:
        yield f"skipped: {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}"
