"""How many false alarms a gate raises on this machine, and what it finds: the head against itself, with slow-downs."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.common import interrupts, lock, numbers
from convbench.gate import judge, pipeline, report, resolve
from convbench.gate.failures import NOT_MEASURED, REGRESSED, Failure
from convbench.gate.sample import Sampling

SLOWER = (0.0, 0.05, 0.10, 0.25)


@dataclass(frozen=True)
class Rate:
    """What a gate said of the cells that were made slower by a share, and of those that were not."""

    share: float
    slowed: Counter
    unchanged: Counter
    seconds: float


def run(project: Project, request: pipeline.Request, console: Console) -> list[Rate]:
    """One gate for each of SLOWER, in which half of the cells are made slower; prints each rate.

    Raises Usage for a wrong question, and Failure where not all of the gates come to their end.
    """
    head = resolve.newest(project, request.head)
    rates: list[Rate] = []
    try:
        with lock.lock(project.work, project.results), interrupts.termination():
            built, suite = pipeline.prepare(project, {"base": head, "head": head}, request, console)
            if suite.failure and not suite.cells:
                raise suite.failure
            for seed, share in enumerate(SLOWER):
                sampling = Sampling(built, suite, request.budget, seed=seed)
                rates.append(_rate(sampling, share, pipeline.folder(project), console))
                console.print(_line(rates[-1]), highlight=False)
    except (KeyboardInterrupt, interrupts.Interrupted):
        found = f"the rates of {len(rates)} of {len(SLOWER)} gates stand above" if rates else "no gate had been finished"
        raise Failure(f"interrupted: {found}") from None
    return rates


def _rate(sampling: Sampling, share: float, work: Path, console: Console) -> Rate:
    """One gate, in which half of the cells are made slower by a share."""
    names = sorted(sampling.states)
    chosen = set(random.Random(sampling.seed).sample(names, (len(names) + 1) // 2) if share else ())
    sampling.slower = lambda cell: share if cell.name in chosen else 0.0
    start = time.monotonic()
    for _ in pipeline.rounds(sampling, work, console):
        pass
    rows = report.rows(list(sampling.states.values()), [])
    slowed = Counter(row.verdict for row in rows if row.name in chosen)
    unchanged = Counter(row.verdict for row in rows if row.name not in chosen)
    return Rate(share, slowed, unchanged, time.monotonic() - start)


def _line(rate: Rate) -> str:
    alarms = rate.unchanged["regressed"] + rate.unchanged["improved"]
    found = f"found {rate.slowed['regressed']} of {rate.slowed.total()} slowed by {rate.share:.0%}, " if rate.share else ""
    return f"{found}{alarms} false alarms in {rate.unchanged.total()} cells, {numbers.minutes(rate.seconds)}"


def show(rates: list[Rate], console: Console) -> None:
    """Print the rates."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    verdicts = ("regressed", "improved", "same", "ambiguous", "not measured", "not reached")
    for heading in ("slow-down", "cells", *verdicts):
        grid.add_column(heading, justify="right")
    for rate in rates:
        groups = [("none", rate.unchanged), (f"{rate.share:.0%}", rate.slowed)]
        for label, counts in groups:
            if counts:
                grid.add_row(label, str(counts.total()), *(str(counts[verdict]) for verdict in verdicts))
    console.print(f"{machine.name()}: the head against itself, smallest change {judge.SMALLEST:.1%}", highlight=False)
    console.print(grid)


def exit_status(rates: list[Rate]) -> int:
    """As a gate's: 1 where something was called changed that was not, 4 where something was not measured."""
    if any(rate.unchanged["regressed"] + rate.unchanged["improved"] for rate in rates):
        return REGRESSED
    missing = sum(counts[verdict] for rate in rates for counts in (rate.unchanged, rate.slowed) for verdict in report.MISSING)
    return NOT_MEASURED if missing else 0
