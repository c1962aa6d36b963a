"""What a gate came to: its cells in order, its exit status, and the reports of it as text, JSON and Markdown."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from tabulate import tabulate

from convbench.common import atomic_write, numbers
from convbench.common.cells import spelling
from convbench.common.terminal import line, one_line
from convbench.gate.accept import Acceptance, find
from convbench.gate.build import SIDES
from convbench.gate.sample import State

REGRESSED, USAGE, HEAD_BROKEN, NOT_MEASURED = 1, 2, 3, 4
ORDER = ("broken", "regressed", "not measured", "ambiguous", "improved", "new", "same", "skipped")
MEANING = {
    0: "passes",
    REGRESSED: "fails: cells have regressed",
    HEAD_BROKEN: "fails: a benchmark that works on the base breaks on the head",
    NOT_MEASURED: "cannot pass: cells that should have been measured were not",
}


@dataclass
class Row:
    """A cell as reports have it.

    before, after: seconds of a call, of the median round split by the ratio. ratio: head over base, with its interval.
    """

    benchmark: str
    params: list[str]
    verdict: str
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    interval: list[float] | None = None
    rounds: int = 0
    reason: str | None = None
    accepted: str | None = None
    answer: str | None = None
    notes: list[str] = field(default_factory=list)
    log_ratios: dict[str, list[float]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return spelling((self.benchmark, tuple(self.params)))


@dataclass
class Outcome:
    """A gate's report while it runs and when it has ended.

    error: what prevented it, in a sentence, with the exit status that is due to it. listed: what is not measured and not
    missing. proposed: entries of the head's file of accepted regressions that accept nothing here, since another file was
    named; proposal_error: why that file could not be read.
    """

    base: str
    head: str
    machine: dict[str, str]
    settings: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    listed: list[tuple[str, str]] = field(default_factory=list)
    proposed: list[Acceptance] = field(default_factory=list)
    proposal_error: str | None = None
    error: str | None = None
    error_status: int = 0
    rounds: int = 0
    seconds: float = 0.0
    environment: str | None = None

    @property
    def exit_status(self) -> int:
        """The first that applies."""
        verdicts = {row.verdict for row in self.rows if not row.accepted}
        if self.error_status == HEAD_BROKEN or "broken" in verdicts:
            return HEAD_BROKEN
        if "regressed" in verdicts:
            return REGRESSED
        if self.error or "not measured" in verdicts or not any(row.rounds for row in self.rows):
            return NOT_MEASURED
        return 0

    @property
    def counts(self) -> Counter:
        """Cells by verdict, and those accepted."""
        return Counter("accepted" if row.accepted else row.verdict for row in self.rows)

    @property
    def summary(self) -> str:
        """One line: what was found, in how long, and what it means."""
        order = ("accepted", *ORDER)
        found = ", ".join(f"{self.counts[verdict]} {verdict}" for verdict in order if self.counts[verdict]) or "no cell"
        status = self.exit_status
        meaning = MEANING[status]
        if self.error and status == self.error_status:
            meaning = f"{meaning.partition(':')[0]}: {self.error.partition(':')[0]}"
        return f"{found}; {self.rounds} rounds in {self.seconds:.0f} s. The gate {meaning}."


def rows(states: Sequence[State], acceptances: Sequence[Acceptance]) -> list[Row]:
    """The cells, worst first."""
    found = [_row(state, acceptances) for state in states]
    return sorted(found, key=lambda row: (ORDER.index(row.verdict), -(row.ratio or 0.0), row.name))


def _row(state: State, acceptances: Sequence[Acceptance]) -> Row:
    row = Row(state.cell.benchmark, list(state.cell.params), state.verdict or "not measured", reason=state.reason)
    if state.verdict is None:
        row.reason = "it was not finished"
    row.rounds = len(state.ratios) + len(state.confirming)
    count = len(state.decisive)
    if count:
        row.before, row.after = (median(state.seconds[side][-count:]) for side in SIDES)
    if state.finding and row.verdict not in ("broken", "new", "skipped"):
        estimate = state.finding.estimate
        row.ratio, row.interval = estimate.ratio, [estimate.low, estimate.high]
        # Rounds differ by more than the two sides of one: medians of each side alone would not have the ratio of the pairs.
        middle = median(math.sqrt(b * h) for b, h in list(zip(*state.seconds.values(), strict=True))[-count:])
        row.before, row.after = middle / math.sqrt(estimate.ratio), middle * math.sqrt(estimate.ratio)
    if row.verdict == "regressed" and (acceptance := find(row.name, acceptances)):
        row.accepted = str(acceptance)
    row.answer, row.notes = state.answer, sorted(state.notes)
    row.log_ratios = {
        "first": [round(value, 5) for value in state.ratios],
        "confirming": [round(value, 5) for value in state.confirming],
    }
    return row


def again(outcome: Outcome, row: Row) -> str:
    """The line that repeats a finding: this cell alone, on the same two commits."""
    # A quote is written as any character, and a space as itself: the line is to be read, and pasted into a shell.
    pattern = re.escape(row.name).replace("\\ ", " ").replace("'", ".")
    return f"convbench gate {outcome.base[:10]} {outcome.head[:10]} --bench {shlex.quote(f'^{pattern}$')}"


def show(outcome: Outcome, console: Console) -> None:
    """Print the table, worst first: all that is not the same, then how it ended."""

    def tell(said: str) -> None:
        console.print(one_line(said), highlight=False, soft_wrap=True)

    tell(f"base {outcome.base[:10]}, head {outcome.head[:10]}, {outcome.machine['machine']}")
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading, justify in zip(HEADINGS, ("left", "left", "right", "right", "right", "right", "right"), strict=True):
        grid.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    notable = [row for row in outcome.rows if row.verdict != "same" or _beside(row)] or outcome.rows
    shown = [row for row in notable if row.verdict not in ("skipped", "new")]
    for row in shown:
        style = {"broken": "red", "regressed": "red", "improved": "green"}.get(row.verdict)
        grid.add_row(*map(one_line, _fields(row)), style=style)
    if shown:
        console.print(grid)
    for remark, names in _grouped(notable).items():
        tell(f"{names}: {remark}")
    for name, reason in outcome.listed:
        tell(f"{name} {reason}")
    for row in shown:
        if row.verdict in ("regressed", "ambiguous", "broken"):
            tell(f"again: {again(outcome, row)}")
    for acceptance in outcome.proposed:
        tell(" ".join(f"{PROPOSED}: {acceptance.cell} ({acceptance.reason})".split()))
    if outcome.proposal_error:
        tell(_no_proposal(outcome))
    if outcome.error:
        tell(outcome.error)
    tell(outcome.summary)


FEW = 3  # cells of one remark that are named
PROPOSED = "proposed by the head, and not accepted"
HEADINGS = ("verdict", "cell", "before", "after", "ratio", "interval", "rounds")


def _no_proposal(outcome: Outcome) -> str:
    return " ".join(f"The head's {outcome.proposal_error}, and proposes nothing".split())


def _beside(row: Row) -> list[str]:
    """What is remarkable whatever the verdict is."""
    answer = [f"its answer has {row.answer}"] if row.answer and row.answer.startswith("changed") else []
    return answer + row.notes


def _fields(row: Row) -> list[str]:
    between = f"{row.interval[0]:.3f} to {row.interval[1]:.3f}" if row.interval else ""
    return [
        f"{row.verdict}, accepted" if row.accepted else row.verdict,
        row.name,
        _time(row.before),
        _time(row.after),
        f"{row.ratio:.3f}" if row.ratio is not None else "",
        between,
        str(row.rounds or ""),
    ]


def _grouped(found: list[Row]) -> dict[str, str]:
    """What is to be said, and of which cells: a reason that many share is told once."""
    names: dict[str, list[str]] = {}
    for row in found:
        for remark in _remarks(row):
            names.setdefault(remark, []).append(row.name)
    return {
        remark: ", ".join(of) if len(of) <= FEW else f"{len(of)} cells, {of[0]} the first" for remark, of in names.items()
    }


def _time(seconds: float | None) -> str:
    return "" if seconds is None else numbers.quantity(seconds, "seconds", 0.005)


def _remarks(row: Row) -> list[str]:
    return [remark for remark in (row.reason, row.accepted, *_beside(row)) if remark]


def as_json(outcome: Outcome) -> dict[str, Any]:
    """The report as one object; numbers that are not finite as null."""
    content = {
        "base": outcome.base,
        "head": outcome.head,
        "machine": outcome.machine,
        "environment": outcome.environment,
        "settings": outcome.settings,
        "exit_status": outcome.exit_status,
        "summary": outcome.summary,
        "error": outcome.error,
        "rounds": outcome.rounds,
        "seconds": round(outcome.seconds, 1),
        "cells": [asdict(row) | {"again": again(outcome, row)} for row in outcome.rows],
        "not_timed": [{"benchmark": name, "reason": reason} for name, reason in outcome.listed],
        "proposed": [{"cell": acceptance.cell, "reason": acceptance.reason} for acceptance in outcome.proposed],
        "proposal_error": outcome.proposal_error,
    }
    return atomic_write.finite(content)


def as_markdown(outcome: Outcome) -> str:
    """The report for a job's summary or a comment."""
    parts = [f"### Speed: {_escape(outcome.summary)}"]
    parts.append(f"{outcome.head[:10]} against {outcome.base[:10]} on `{outcome.machine['machine']}`, both measured in turn.")
    if outcome.error:
        parts.append(_escape(outcome.error))
    notable = [row for row in outcome.rows if row.verdict not in ("same", "skipped") or _beside(row)]
    if notable:
        parts.append(_table(notable))
        parts.append("\n".join(f"* {_code(names)}: {_escape(text)}" for text, names in _grouped(notable).items()))
        found = [row for row in notable if row.verdict in ("regressed", "ambiguous", "broken")]
        if found:
            repeated = "\n".join(line(again(outcome, row)) for row in found)  # none of which can end the block of code
            parts.append(f"To repeat a finding:\n\n```\n{repeated}\n```")
    if outcome.proposed:
        proposed = "\n".join(f"* {_code(acceptance.cell)}: {_escape(acceptance.reason)}" for acceptance in outcome.proposed)
        parts.append(f"{PROPOSED.capitalize()}:\n\n{proposed}")
    if outcome.proposal_error:
        parts.append(_escape(_no_proposal(outcome)))
    if rest := [row for row in outcome.rows if row not in notable]:
        parts.append(f"<details><summary>{len(rest)} more cells</summary>\n\n{_table(rest)}\n\n</details>")
    if outcome.listed:
        listed = "\n".join(f"* {_code(name)} {_escape(reason)}" for name, reason in outcome.listed)
        parts.append(f"<details><summary>{len(outcome.listed)} not timed</summary>\n\n{listed}\n\n</details>")
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(found: list[Row]) -> str:
    lines = []
    for row in found:
        verdict, name, *numbers = map(_escape, _fields(row))
        lines.append([verdict, f"<code>{name}</code>", *numbers])
    return tabulate(lines, HEADINGS, tablefmt="github", disable_numparse=True)


def _escape(text: str) -> str:
    """Text that Markdown and HTML leave alone."""
    special = r"[\\`*_{}\[\]<>|#@&~]|:(?=//)|(?<=www)\."  # the last two are of links without any markup
    return re.sub(special, lambda found: f"&#{ord(found[0])};", line(" ".join(text.split())))


def _code(text: str) -> str:
    return f"<code>{_escape(text)}</code>"


def write(path: Path, text: str) -> None:
    """Put a report where somebody reads it, in one step. Raises ClickException where it cannot be written."""
    try:
        with atomic_write.whole(path) as beside:
            beside.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from None


def write_json(path: Path, outcome: Outcome) -> None:
    """Write the report as JSON."""
    write(path, json.dumps(as_json(outcome), indent=1, allow_nan=False) + "\n")
