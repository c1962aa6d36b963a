"""A diagnosis as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from convbench.common import numbers
from convbench.common.terminal import one_line
from convbench.doctor.facts import WATCH_SECONDS, MachineFacts, SuiteFacts
from convbench.doctor.noise import KINDS, Noise
from convbench.doctor.verdict import FIT, RESERVATIONS, UNFIT, Diagnosis, rounds_needed


def document(found: Diagnosis) -> dict[str, Any]:
    """The diagnosis for programs."""
    return {
        "verdict": found.verdict,
        "doubts": [asdict(concern) for concern in found.concerns],
        "machine": asdict(found.machine),
        "others": found.others,
        "noise": [
            {**asdict(one), "between": one.between, "pair": one.ratio_deviation, "rounds_for_5_percent": one.rounds}
            for one in found.noises
        ],
        "suite": asdict(found.suite),
    }


def show(found: Diagnosis, console: Console) -> None:
    """Print the facts, the noise, what the implementations lack, and the verdict with its reasons."""
    _section("machine", _machine_rows(found.machine), console)
    _section(
        "noise: how much the same work differs between fresh processes",
        _noise_rows(found.noises),
        console,
    )
    _section("suite", _suite_rows(found.suite), console)
    style = {FIT: "bold green", RESERVATIONS: "bold yellow", UNFIT: "bold red"}[found.verdict]
    concerns = [("unsuitable" if one.grave else "reservation", f"{one.reason}; {one.cure}") for one in found.concerns]
    _section(one_line(f"this machine is {found.verdict}", style=style), concerns, console)


def _section(title: str | Text, rows: Sequence[tuple[str, str]], console: Console) -> None:
    console.print(title if isinstance(title, Text) else one_line(title, style="bold"))
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(one_line(f"  {name}"), one_line(text))
    if rows:
        console.print(table)


def _machine_rows(machine: MachineFacts) -> list[tuple[str, str]]:
    frequency = [f"governor {', '.join(machine.governors)}"] if machine.governors else []
    frequency += ["boost on" if machine.boost else "boost off"] if machine.boost is not None else []
    frequency += [f"now {machine.mhz} MHz"] if machine.mhz else []
    cores = ", ".join(map(str, machine.usable))
    return [
        ("processor", machine.processor),
        ("cores", f"{machine.cores}, of which this process may use {len(machine.usable)} (numbered {cores})"),
        ("memory", " of ".join(numbers.quantity(count, "bytes") for count in (machine.available, machine.memory)) + " free"),
        ("load", f"{machine.load:.1f} in the last minute; {machine.used:.2f} cores in use over {WATCH_SECONDS:.0f} s"),
        ("stolen", f"{numbers.percent(machine.stolen)} of the time, by the host"),
        ("frequency", ", ".join(frequency) or "not readable here, as on most virtual machines"),
        ("compiler", machine.compiler or "none; the Cython kernels need one"),
    ]


def _noise_rows(noises: Sequence[Noise]) -> list[tuple[str, str]]:
    return [
        (
            one.kind,
            f"{KINDS[one.kind]}, {len(one.ratios)} rounds of two processes: "
            f"{numbers.percent(one.ratio_deviation)} between the two, "
            f"{numbers.percent(one.between)} between all processes, {numbers.percent(one.within)} within one; "
            f"{rounds_needed(one)}",
        )
        for one in noises
    ]


def _suite_rows(found: SuiteFacts) -> list[tuple[str, str]]:
    rows = [("libraries", ", ".join(f"{name} {version}" for name, version in found.versions.items()))]
    if not found.silence:
        pools = [f"{pool}: {numbers.many(count, 'thread')}" for pool, count in found.pools.items()]
        rows.append(("pools", ", ".join(pools) or "none"))
    if found.instructions:
        rows.append(("kernels", f"compiled for {found.instructions}"))
    for operation in dict.fromkeys([*found.ready, *found.lacking]):
        rows.append((operation, f"ready: {', '.join(found.ready.get(operation, ['none']))}"))
        rows += [("", f"{', '.join(names)}: {reason}") for reason, names in found.lacking.get(operation, {}).items()]
    if found.silence:
        rows.append(("implementations", f"not known: {found.silence}"))
    return rows
