"""A gate's report as text for a terminal, as JSON and as Markdown."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tabulate import tabulate

from convbench.common import atomic_write, numbers
from convbench.common.markup import code, escaped
from convbench.common.terminal import line, one_line
from convbench.gate.failures import Failure
from convbench.gate.report import SCHEMA, Kind, Report, Row, counted

FEW = 3  # cells of one remark that are named
MAX_ROWS = 60  # rows of a table; a longer one lists changed cells and counts the others by module
PROPOSED = "proposed by the head, and not accepted"
STYLES = {"broken": "red", "regressed": "red", "improved": "green"}  # rows of changed cells
HEADINGS = ("verdict", "cell", "before", "after", "ratio", "interval", "rounds")


def again(report: Report, row: Row) -> str:
    """The line that repeats a finding: this cell alone, on the same two commits."""
    # A quote is written as any character, and a space as itself: the line is to be read, and pasted into a shell.
    pattern = re.escape(row.name).replace("\\ ", " ").replace("'", ".")
    installed = report.kind is Kind.INSTALLED
    sides = shlex.join(["--installed", report.base, report.head]) if installed else f"{report.base[:10]} {report.head[:10]}"
    return f"convbench gate {sides} --bench {shlex.quote(f'^{pattern}$')}"


def show(report: Report, console: Console) -> None:
    """Print the table, worst first: all that is not the same, then how it ended."""

    def tell(said: str, is_command: bool = False) -> None:
        console.print(one_line(said), highlight=False, soft_wrap=is_command)

    where = f", {report.environment}; not in {', '.join(report.others)}" if report.others else ""
    different = f"; different: {', '.join(report.differences)}" if report.differences else ""
    left = "".join(
        f"; {verdict}: {count} of {len(report.rows)} cells"
        for verdict in ("not reached", "untouched")
        if (count := report.counts[verdict])
    )
    tell(f"base {report.label('base')}, head {report.label('head')}, {report.machine['machine']}{where}{different}{left}")
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading, justify in zip(HEADINGS, ("left", "left", "right", "right", "right", "right", "right"), strict=True):
        grid.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    notable = [row for row in report.rows if row.verdict != "same" or _beside(row)] or report.rows
    shown = [row for row in notable if row.verdict not in ("skipped", "new", "gone", "not reached", "untouched")]
    listed, modules = _listed(shown)
    for row in listed:
        grid.add_row(*map(one_line, _fields(row)), style=STYLES.get(row.verdict))
    if listed:
        console.print(grid)
    for module, counts in modules.items():
        tell(f"{module}: {counts}")
    for remark, names in _grouped(notable).items():
        tell(f"{names}: {remark}")
    for name, reason in report.listed:
        tell(f"{name} {reason}")
    for row in listed:
        if row.verdict in ("regressed", "ambiguous", "broken"):
            tell(f"again: {again(report, row)}", is_command=True)
    for acceptance in report.proposed:
        tell(" ".join(f"{PROPOSED}: {acceptance.cell} ({acceptance.reason})".split()))
    if report.proposal_error:
        tell(_no_proposal(report))
    if said := _identical(report):
        tell(said)
    if report.failure:
        tell(report.failure.message)
    tell(report.summary)


def _listed(found: list[Row]) -> tuple[list[Row], dict[str, str]]:
    """The rows of a table, and how many of the other cells of each module have which verdict."""
    if len(found) <= MAX_ROWS:
        return found, {}
    modules: dict[str, Counter] = {}
    for row in found:
        if row.verdict not in STYLES:
            modules.setdefault(row.module, Counter())[row.verdict] += 1
    return [row for row in found if row.verdict in STYLES], {module: counted(modules[module]) for module in sorted(modules)}


def _identical(report: Report) -> str | None:
    """What is said of files that differ in nothing else than the commit that they name, and where nothing differs."""
    but = f"{', '.join(report.ignored)} {'differ' if len(report.ignored) > 1 else 'differs'} in the commit alone"
    if report.identical:
        return f"nothing to measure: both sides have installed the same files{f'; {but}' * bool(report.ignored)}"
    return but if report.ignored else None


def _no_proposal(report: Report) -> str:
    return " ".join(f"The head's {report.proposal_error}, and proposes nothing".split())


def _beside(row: Row) -> list[str]:
    """Notes of a row that do not depend on its verdict."""
    answer = [f"its answer has {row.answer}"] if row.answer and row.answer.startswith("changed") else []
    return answer + row.notes


def _fields(row: Row) -> list[str]:
    between = f"{row.interval[0]:.3f} to {row.interval[1]:.3f}" if row.interval else ""
    return [
        f"{row.verdict}, accepted" if row.accepted else row.verdict,
        row.name,
        _quantity(row.before, row.unit),
        _quantity(row.after, row.unit),
        f"{row.ratio:.3f}" if row.ratio is not None else "",
        between,
        str(row.rounds or ""),
    ]


def _grouped(found: list[Row]) -> dict[str, str]:
    """Notes with their cells: a reason that many cells share is printed once."""
    names: dict[str, list[str]] = {}
    for row in found:
        for remark in _remarks(row):
            names.setdefault(remark, []).append(row.name)
    return {
        remark: ", ".join(of) if len(of) <= FEW else f"{len(of)} cells, {of[0]} the first" for remark, of in names.items()
    }


def _quantity(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit not in numbers.UNITS:
        return f"{value:.6g} {unit}"
    return numbers.quantity(value, unit, 0.005 if unit == "seconds" else 0.0005)  # memory repeats, and 1 % of it is a change


def _remarks(row: Row) -> list[str]:
    where = f"measured on {row.measured_on}" if row.measured_on else None
    return [remark for remark in (row.reason, row.accepted, *_beside(row), where) if remark]


def as_json(report: Report) -> dict[str, Any]:
    """The report as one object; numbers that are not finite as null."""
    content = {
        "schema": SCHEMA,
        "version": version("convbench"),
        "shard": report.shard,
        "partial": report.partial,
        "smallest": dict(report.smallest),
        "base": report.base,
        "head": report.head,
        "machine": report.machine,
        "environment": report.environment,
        "other_environments": list(report.others),
        "compared": report.kind.value,
        "differences": list(report.differences),
        "settings": report.settings,
        "exit_status": report.exit_status,
        "summary": report.summary,
        "error": report.failure.message if report.failure else None,
        "traceback": report.failure.trace if report.failure else None,
        "rounds": report.rounds,
        "seconds": round(report.seconds, 1),
        "untouched": report.counts["untouched"],
        "identical": report.identical,
        "ignored": list(report.ignored),
        "cells": [asdict(row) | {"again": again(report, row)} for row in report.rows],
        "not_timed": [{"benchmark": name, "reason": reason} for name, reason in report.listed],
        "proposed": [{"cell": acceptance.cell, "reason": acceptance.reason} for acceptance in report.proposed],
        "proposal_error": report.proposal_error,
    }
    return atomic_write.finite(content)


def as_markdown(report: Report) -> str:
    """The report for a job's summary or a comment."""
    parts = [f"### Speed: {escaped(report.summary)}"]
    sides = f"{escaped(report.label('head'))} against {escaped(report.label('base'))}"
    parts.append(f"{sides} on `{report.machine['machine']}`, both measured in turn.")
    if report.differences:
        parts.append(f"Different on both sides: {escaped(', '.join(report.differences))}.")
    if report.others:
        parts.append(f"In {code(report.environment or '')}, and not in {code(', '.join(report.others))}.")
    if report.failure:
        parts.append(escaped(report.failure.message))
    if said := _identical(report):
        parts.append(f"{escaped(said[0].upper() + said[1:])}.")
    unremarkable = ("same", "skipped", "not reached", "untouched")
    notable = [row for row in report.rows if row.verdict not in unremarkable or _beside(row)]
    if notable:
        parts.append(_table(notable))
        parts.append("\n".join(f"* {code(names)}: {escaped(text)}" for text, names in _grouped(notable).items()))
        found = [row for row in _listed(notable)[0] if row.verdict in ("regressed", "ambiguous", "broken")]
        if found:
            repeated = "\n".join(line(again(report, row)) for row in found)  # no line can end the block of code
            parts.append(f"To repeat a finding:\n\n```\n{repeated}\n```")
    if report.proposed:
        proposed = "\n".join(f"* {code(acceptance.cell)}: {escaped(acceptance.reason)}" for acceptance in report.proposed)
        parts.append(f"{PROPOSED.capitalize()}:\n\n{proposed}")
    if report.proposal_error:
        parts.append(escaped(_no_proposal(report)))
    if rest := [row for row in report.rows if row not in notable and row.verdict != "untouched"]:
        parts.append(f"<details><summary>{len(rest)} more cells</summary>\n\n{_table(rest)}\n\n</details>")
    if report.listed:
        listed = "\n".join(f"* {code(name)} {escaped(reason)}" for name, reason in report.listed)
        parts.append(f"<details><summary>{len(report.listed)} not timed</summary>\n\n{listed}\n\n</details>")
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(found: list[Row]) -> str:
    listed, modules = _listed(found)
    lines = []
    for row in listed:
        verdict, name, *numbers = map(escaped, _fields(row))
        lines.append([verdict, f"<code>{name}</code>", *numbers])
    table = tabulate(lines, HEADINGS, tablefmt="github", disable_numparse=True) if lines else ""
    grouped = "\n".join(f"* {code(module)}: {counts}" for module, counts in modules.items())
    return "\n\n".join(filter(None, (table, grouped)))


def write(path: Path, text: str) -> None:
    """Write a report in one step. Raises Failure if it cannot be written."""
    try:
        with atomic_write.whole(path) as beside:
            beside.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror}") from None


def write_json(path: Path, report: Report) -> None:
    """Write the report as JSON."""
    write(path, json.dumps(as_json(report), indent=1, allow_nan=False) + "\n")
