"""How often a gate cries wolf on this machine, and what it finds: the head against itself, slowed down on purpose."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.common import interrupts, lock, numbers
from convbench.gate import judge, pipeline, report
from convbench.gate.report import Outcome
from convbench.gate.sample import Session

SLOWER = (0.0, 0.05, 0.10, 0.25)


@dataclass
class Rate:
    """What a gate said of the cells that were made slower by a share, and of those that were not."""

    share: float
    slowed: Counter
    unchanged: Counter
    seconds: float


class NotMeasured(click.ClickException):
    """A self-test that did not come to its end; the rates that it found are printed by then."""

    exit_code = report.NOT_MEASURED


def run(project: Project, request: pipeline.Request, console: Console) -> list[Rate]:
    """One gate for each of SLOWER, in which half of the cells are made slower. Raises NotMeasured where it cannot be."""
    head = pipeline.resolve(project, request)["head"]
    result = Outcome(head, head, machine.facts(), {})
    rates: list[Rate] = []
    try:
        with lock.lock(project.work, project.results), interrupts.termination():
            session = pipeline.prepare(project, request, {"base": head, "head": head}, result, console)
            if session is None:
                raise NotMeasured(str(result.error))
            for seed, share in enumerate(SLOWER):
                session = Session(session.built, session.suite, session.smallest, request.budget, seed=seed)
                rates.append(_rate(session, share, result, console, project.work / "gate"))
                console.print(_line(rates[-1]), highlight=False)
    except (KeyboardInterrupt, interrupts.Interrupted):
        found = f"the rates of {len(rates)} of {len(SLOWER)} gates stand above" if rates else "no gate had been finished"
        raise NotMeasured(f"interrupted: {found}") from None
    return rates


def _rate(session: Session, share: float, result: Outcome, console: Console, work: Path) -> Rate:
    """One gate, in which half of the cells are made slower by a share."""
    names = sorted(cell.name for cell in session.suite.cells)
    chosen = set(random.Random(session.seed).sample(names, (len(names) + 1) // 2) if share else ())
    session.slower = lambda cell: share if cell.name in chosen else 0.0
    start = time.monotonic()
    pipeline.report(session, result, [], lambda: None, console, work)
    slowed = Counter(row.verdict for row in result.rows if row.name in chosen)
    unchanged = Counter(row.verdict for row in result.rows if row.name not in chosen)
    return Rate(share, slowed, unchanged, time.monotonic() - start)


def _line(rate: Rate) -> str:
    alarms = rate.unchanged["regressed"] + rate.unchanged["improved"]
    found = f"found {rate.slowed['regressed']} of {rate.slowed.total()} slowed by {rate.share:.0%}, " if rate.share else ""
    return f"{found}{alarms} false alarms in {rate.unchanged.total()} cells, {numbers.minutes(rate.seconds)}"


def show(rates: list[Rate], console: Console) -> None:
    """Print the rates."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    verdicts = ("regressed", "improved", "same", "ambiguous", "not measured")
    for heading in ("slow-down", "cells", *verdicts):
        grid.add_column(heading, justify="right")
    for rate in rates:
        groups = [("none", rate.unchanged), (f"{rate.share:.0%}", rate.slowed)]
        for label, counts in groups:
            if counts:
                grid.add_row(label, str(counts.total()), *(str(counts[verdict]) for verdict in verdicts))
    console.print(
        f"{machine.facts()['machine']}: the head against itself, smallest change {judge.SMALLEST:.1%}", highlight=False
    )
    console.print(grid)


def exit_status(rates: list[Rate]) -> int:
    """As a gate's: 1 where something was called changed that was not, 4 where something was not measured."""
    if any(rate.unchanged["regressed"] + rate.unchanged["improved"] for rate in rates):
        return report.REGRESSED
    missing = sum(rate.unchanged["not measured"] + rate.slowed["not measured"] for rate in rates)
    return report.NOT_MEASURED if missing else 0
