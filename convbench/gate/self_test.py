"""Measures the false alarms and found slow-downs of gates on this machine: the head compared with itself."""

from __future__ import annotations

import dataclasses
import json
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.common import interrupts, lock, numbers
from convbench.gate import formats, judge, pipeline, report, resolve
from convbench.gate.failures import NOT_MEASURED, REGRESSED, Failure
from convbench.gate.sample import Sampling

SLOWER = (0.0, 0.05, 0.10, 0.25)
FOUND_SHARE = 0.9  # share of the slow-downs of a size that must be found
MIN_SLOWED = 10  # slowed cells of a size that are needed for a conclusion
SCHEMA = 1  # of the JSON


@dataclass(frozen=True)
class Rate:
    """The verdicts of a gate on cells that were made slower by a share, and on the others."""

    share: float
    slowed: Counter
    unchanged: Counter
    seconds: float


@dataclass(frozen=True)
class Proportion:
    """A count of a total, as a share with its 95 % interval; None if the total is zero."""

    count: int
    of: int
    share: float | None
    interval: tuple[float, float] | None

    @classmethod
    def counted(cls, count: int, of: int) -> Proportion:
        return cls(count, of, count / of, judge.proportion(count, of)) if of else cls(count, of, None, None)

    def __str__(self) -> str:
        if not self.interval:
            return f"{self.count} of {self.of}"
        low, high = map(numbers.percent, self.interval)
        return f"{self.count} of {self.of}, {numbers.percent(self.count / self.of)} (95 % interval {low} to {high})"


def run(project: Project, request: pipeline.Request, repeats: int, console: Console) -> list[Rate]:
    """Run several gates for each of SLOWER, in which half of the cells are made slower; print each rate.

    Raises Usage for a wrong question, and Failure where not all of the gates come to their end.
    """
    head = resolve.newest(project, request.head)
    rates: list[Rate] = []
    shares = SLOWER * repeats
    try:
        with lock.lock(project.work, project.results), interrupts.termination():
            everything = dataclasses.replace(request, every=True)
            built, suite, _ = pipeline.prepare(project, {"base": head, "head": head}, everything, console)
            if suite.failure and not suite.cells:
                raise suite.failure
            for seed, share in enumerate(shares):
                sampling = Sampling(built, suite, request.budget, seed=seed)
                rates.append(_rate(sampling, share, pipeline.folder(project), console))
                console.print(_line(rates[-1]), highlight=False)
                if request.json:
                    content = json.dumps(document(head, pipeline.settings(request), rates), indent=1)
                    formats.write(request.json, content + "\n")
    except (KeyboardInterrupt, interrupts.Interrupted):
        found = f"see above for the rates of {len(rates)} of {len(shares)} gates" if rates else "no gate was finished"
        raise Failure(f"interrupted: {found}") from None
    return rates


def _rate(sampling: Sampling, share: float, work: Path, console: Console) -> Rate:
    """One gate, in which half of the cells are made slower by a share."""
    names = sorted(sampling.states)
    chosen = set(random.Random(sampling.seed).sample(names, (len(names) + 1) // 2) if share else ())
    sampling.slower = lambda cell: share if cell.name in chosen else 0.0
    start = time.monotonic()
    pipeline.estimate(sampling, work, console)
    for _ in pipeline.rounds(sampling, work, console):
        pass
    rows = report.rows(list(sampling.states.values()), [])
    slowed = Counter(row.verdict for row in rows if row.name in chosen)
    unchanged = Counter(row.verdict for row in rows if row.name not in chosen)
    return Rate(share, slowed, unchanged, time.monotonic() - start)


def _line(rate: Rate) -> str:
    found = f"found {rate.slowed['regressed']} of {rate.slowed.total()} slowed by {rate.share:.0%}, " if rate.share else ""
    return f"{found}{_changed(rate)} false alarms in {rate.unchanged.total()} cells, {numbers.minutes(rate.seconds)}"


def _changed(rate: Rate) -> int:
    """How many of the cells that were left alone were called changed."""
    return rate.unchanged["regressed"] + rate.unchanged["improved"]


def _sum(counts: Iterable[Counter]) -> Counter:
    return sum(counts, Counter())


def alarms(rates: Sequence[Rate]) -> Proportion:
    """The false alarms among the cells that were judged and not made slower."""
    judged = _sum(rate.unchanged for rate in rates)
    return Proportion.counted(sum(map(_changed, rates)), sum(judged[verdict] for verdict in judge.VERDICTS))


def failed(rates: Sequence[Rate]) -> Proportion:
    """The gates of identical builds that called a cell slower."""
    identical = [rate for rate in rates if not rate.share]
    return Proportion.counted(sum(rate.unchanged["regressed"] > 0 for rate in identical), len(identical))


def found(rates: Sequence[Rate], share: float) -> Proportion:
    """The slow-downs of a size that were found; those of cells that were not reached were not."""
    slowed = _sum(rate.slowed for rate in rates if rate.share == share)
    return Proportion.counted(slowed["regressed"], sum(slowed[verdict] for verdict in (*judge.VERDICTS, *report.MISSING)))


def smallest_found(rates: Sequence[Rate]) -> float | None:
    """The smallest slow-down of which, as of all that are larger, FOUND_SHARE are found; None where there is none."""
    smallest = None
    for share in sorted(filter(None, SLOWER), reverse=True):
        of_size = found(rates, share)
        if of_size.of < MIN_SLOWED or of_size.count < FOUND_SHARE * of_size.of:
            break
        smallest = share
    return smallest


def document(head: str, settings: dict[str, Any], rates: Sequence[Rate]) -> dict[str, Any]:
    """The rates as one object."""
    return {
        "schema": SCHEMA,
        "version": version("convbench"),
        "head": head,
        "machine": machine.facts(),
        "settings": settings,
        "exit_status": exit_status(rates),
        "gates": [
            {"slow_down": rate.share, "seconds": round(rate.seconds, 1), "slowed": rate.slowed, "unchanged": rate.unchanged}
            for rate in rates
        ],
        "false_alarms": asdict(alarms(rates)),
        "failed_gates": asdict(failed(rates)),
        "found": [{"slow_down": share, **asdict(found(rates, share))} for share in SLOWER if share],
        "smallest_found": smallest_found(rates),
    }


def show(rates: Sequence[Rate], console: Console) -> None:
    """Print the verdicts by slow-down, the rates with their intervals, and what is found in the time."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    verdicts = ("regressed", "improved", "same", "ambiguous", "not measured", "not reached")
    for heading in ("slow-down", "cells", *verdicts):
        grid.add_column(heading, justify="right")
    groups = [("none", _sum(rate.unchanged for rate in rates))]
    groups += [(f"{share:.0%}", _sum(rate.slowed for rate in rates if rate.share == share)) for share in SLOWER if share]
    for label, counts in groups:
        if counts:
            grid.add_row(label, str(counts.total()), *(str(counts[verdict]) for verdict in verdicts))
    console.print(f"{machine.name()}: head compared with itself, smallest change {judge.SMALLEST:.1%}", highlight=False)
    console.print(grid)
    for line in _summary(rates):
        console.print(line, highlight=False, soft_wrap=True)


def _summary(rates: Sequence[Rate]) -> list[str]:
    lines = [f"false alarms: {alarms(rates)}", f"gates of identical builds that failed: {failed(rates)}"]
    lines += [f"found, slower by {share:.0%}: {found(rates, share)}" for share in SLOWER if share]
    here = f"in {numbers.minutes(median(rate.seconds for rate in rates))}, a gate here finds"
    if share := smallest_found(rates):
        return [*lines, f"{here} {FOUND_SHARE:.0%} or more of slow-downs of {share:.0%} and up"]
    if found(rates, max(SLOWER)).of < MIN_SLOWED:
        few = f"fewer than {MIN_SLOWED} slow-downs of {max(SLOWER):.0%} are not enough to tell what a gate here finds"
        return [*lines, f"{few}: repeat them with --self-test {MIN_SLOWED}"]
    missed = f"{here} less than {FOUND_SHARE:.0%} of slow-downs of {max(SLOWER):.0%}"
    return [*lines, f"{missed}: increase --budget, or select fewer cells with --bench"]


def exit_status(rates: Sequence[Rate]) -> int:
    """As a gate's: 1 where something was called changed that was not, 4 where something was not measured."""
    if any(map(_changed, rates)):
        return REGRESSED
    missing = sum(counts[verdict] for rate in rates for counts in (rate.unchanged, rate.slowed) for verdict in report.MISSING)
    return NOT_MEASURED if missing else 0
