"""Is this machine fit to measure on? What it is, what disturbs it, what it lacks, and how far apart equal times lie."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
import psutil
from rich.console import Console
from rich.table import Table
from rich.text import Text
from threadpoolctl import threadpool_info

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.common import interrupts, load, lock, numbers
from convbench.common.terminal import one_line
from convbench.doctor import noise
from convbench.suite import ask

FIT, RESERVATIONS, UNFIT = "fit to measure on", "fit to measure on, with reservations", "not fit to measure on"
SYSTEM = Path("/sys/devices/system/cpu")
WATCH = 3.0  # seconds for which the load is watched
SOME_STOLEN = 0.02  # share of its time taken by the host from which single cells are disturbed
LITTLE_MEMORY = 2 * 2**30  # bytes below which large problems may be refused
FEW_ROUNDS, MANY_ROUNDS = 15, 30  # what the gate spends on all cells, and on those that are not settled
LIBRARIES = ("asv", "asv_runner", "convbench", "numpy", "scipy")


@dataclass(frozen=True)
class Doubt:
    """Why a machine is not fit, or only with reservations, and what to do about it."""

    grave: bool
    reason: str
    cure: str


@dataclass(frozen=True)
class Body:
    """The machine. stolen: share of its time that the host takes. governors, boost, mhz: None where they cannot be read."""

    processor: str
    cores: int
    usable: tuple[int, ...]
    memory: int  # bytes
    available: int
    load: float  # processes that ran or waited, over the last minute
    used: float  # cores in use, while watched
    stolen: float
    governors: tuple[str, ...] | None
    boost: bool | None
    mhz: int | None
    compiler: str | None


@dataclass
class Suite:
    """What the suite says of the environment. silence: why it says nothing."""

    ready: dict[str, list[str]] = field(default_factory=dict)
    lacking: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    pools: dict[str, int] = field(default_factory=dict)
    silence: str | None = None


@dataclass(frozen=True)
class Report:
    """Everything that was found. others: cores that other processes used while the noise was measured."""

    body: Body
    noises: Sequence[noise.Noise]
    suite: Suite
    others: float = 0.0

    @property
    def doubts(self) -> list[Doubt]:
        """The grave ones first."""
        found = [*_doubts(self.body), *(doubt for one in self.noises for doubt in _noise_doubts(one))]
        if self.others > load.BUSY:
            reason = f"other processes used {self.others:.1f} cores while the noise was measured"
            found.insert(0, Doubt(True, reason, "stop them and ask again"))
        return sorted(found, key=lambda doubt: not doubt.grave)

    @property
    def verdict(self) -> str:
        grave = [doubt.grave for doubt in self.doubts]
        return UNFIT if any(grave) else RESERVATIONS if grave else FIT


def examine(project: Project, console: Console) -> Report:
    """Look at the machine, measure its noise, ask the suite. Raises ClickException where that cannot be done."""
    with (
        lock.lock(project.work, project.results),
        interrupts.interruptible(lambda: "there is no verdict, and nothing was left running"),
    ):
        body = _body(console)
        start, before = time.monotonic(), _spent_by_others()
        noises = noise.measure(console)
        others = (_spent_by_others() - before) / (time.monotonic() - start)
        return Report(body, noises, _ask(project, console), others)


def _spent_by_others() -> float:
    """Seconds of all cores so far that neither this process nor those it has waited for used."""
    total, own = psutil.cpu_times()._asdict(), os.times()
    busy = sum(total.get(name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
    return busy - own.user - own.system - own.children_user - own.children_system


def _body(console: Console) -> Body:
    with console.status(f"watching what runs here for {WATCH:.0f} s"):
        used, stolen = load.usage(WATCH)
    memory = psutil.virtual_memory()
    usable = tuple(load.core_numbers())
    return Body(
        processor=machine.facts()["cpu"],
        cores=psutil.cpu_count() or 1,
        usable=usable,
        memory=memory.total,
        available=memory.available,
        load=os.getloadavg()[0],
        used=used,
        stolen=stolen,
        governors=_governors(),
        boost=_boost(),
        mhz=_mhz(usable[-1]),
        compiler=_compiler(),
    )


def _governors() -> tuple[str, ...] | None:
    found = {_read(path) for path in SYSTEM.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return tuple(sorted(filter(None, found))) or None


def _boost() -> bool | None:
    """Whether cores may run above their base frequency; two drivers say it in two ways."""
    if said := _read(SYSTEM / "cpufreq" / "boost"):
        return said == "1"
    said = _read(SYSTEM / "intel_pstate" / "no_turbo")
    return said == "0" if said else None


def _mhz(core: int) -> int | None:
    said = _read(SYSTEM / f"cpu{core}" / "cpufreq" / "scaling_cur_freq")
    return int(said) // 1000 if said and said.isdigit() else None


def _read(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return None


def _compiler() -> str | None:
    """What the C compiler says of itself; None where there is none."""
    words = shlex.split(os.environ.get("CC", "")) or ["cc"]  # CC may hold options, or begin with ccache
    if shutil.which(words[0]) is None:
        return None
    done = subprocess.run([*words, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0] or None


def _ask(project: Project, console: Console) -> Suite:
    found = Suite(
        versions=_versions(), pools={f"{p['internal_api']} {p['prefix']}": p["num_threads"] for p in threadpool_info()}
    )
    try:
        for event in ask.ask(project, "doctor", {}, console):
            found.versions |= event.get("versions", {})
            found.pools = event.get("pools", found.pools)
            if "implementation" not in event:
                continue
            name, operation = event["implementation"], event["operation"]
            if event["lacks"] is None:
                found.ready.setdefault(operation, []).append(name)
            else:
                # Said by its name, what one lacks would be told once for each of those who lack the same.
                reason = event["lacks"].removeprefix(f"{name} ")
                found.lacking.setdefault(operation, {}).setdefault(reason, []).append(name)
    except click.ClickException as error:
        found.silence = error.message
    return found


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _doubts(body: Body) -> list[Doubt]:
    found = []
    if reason := load.disturbance(body.used, body.stolen):
        cure = "stop what runs beside it" if body.used > load.BUSY else "measure at another time, or elsewhere"
        found.append(Doubt(True, reason, cure))
    elif body.stolen > SOME_STOLEN:
        cure = "cells that it disturbed are marked with ! in tables; decide by `convbench gate`, which measures in turn"
        found.append(Doubt(False, f"the host takes {numbers.percent(body.stolen)} of its time", cure))
    if len(body.usable) == 1:
        found.append(Doubt(False, "one core for what is measured and everything else", "give it another"))
    if body.available < LITTLE_MEMORY:
        free = numbers.quantity(body.available, "bytes")
        found.append(Doubt(False, f"{free} of memory are free, and large problems need more", "end what holds the rest"))
    if slow := [governor for governor in body.governors or () if governor != "performance"]:
        reason = f"the frequency governor is {' and '.join(slow)}: clocks follow the load"
        found.append(Doubt(False, reason, "as root: cpupower frequency-set --governor performance"))
    if body.boost:
        reason = "cores may run above their base frequency, by temperature and by what the others do"
        found.append(Doubt(False, reason, "switch boost off in the firmware or, as root, in the system"))
    return found


def _noise_doubts(one: noise.Noise) -> list[Doubt]:
    rounds = one.rounds or noise.MOST + 1
    if rounds <= FEW_ROUNDS:
        return []
    spread = f"fresh processes of {noise.KINDS[one.kind]}, timed in turn, differ by {numbers.percent(one.pair)}"
    reason = f"{spread}, so that {_told(one)}"
    cure = "measure when nothing else runs here, or on a machine of its own"
    return [Doubt(rounds > MANY_ROUNDS, reason, cure)]


def _told(one: noise.Noise) -> str:
    """How soon a slow-down is told, in words."""
    what = f"a slow-down of {numbers.percent(noise.SLOWER)}".replace(".0", "")
    if one.rounds is None:
        return f"{what} cannot be told in {noise.MOST} rounds"
    return f"{what} is told in about {one.rounds} rounds"


def document(report: Report) -> dict[str, Any]:
    """The report for programs."""
    return {
        "verdict": report.verdict,
        "doubts": [asdict(doubt) for doubt in report.doubts],
        "machine": asdict(report.body),
        "others": report.others,
        "noise": [
            {**asdict(one), "between": one.between, "pair": one.pair, "rounds_for_5_percent": one.rounds}
            for one in report.noises
        ],
        "suite": asdict(report.suite),
    }


def show(report: Report, console: Console) -> None:
    """Print the facts, the noise, what the implementations lack, and the verdict with its reasons."""
    _section("machine", _facts(report), console)
    _section("noise, where a round is two fresh processes whose blocks are timed in turn", _noises(report), console)
    _section("suite", _suite(report.suite), console)
    style = {FIT: "bold green", RESERVATIONS: "bold yellow", UNFIT: "bold red"}[report.verdict]
    doubts = [("not fit" if doubt.grave else "reservation", f"{doubt.reason}; {doubt.cure}") for doubt in report.doubts]
    _section(one_line(f"this machine is {report.verdict}", style=style), doubts, console)


def _section(title: str | Text, rows: Sequence[tuple[str, str]], console: Console) -> None:
    console.print(title if isinstance(title, Text) else one_line(title, style="bold"))
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(one_line(f"  {name}"), one_line(text))
    if rows:
        console.print(table)


def _facts(report: Report) -> list[tuple[str, str]]:
    body = report.body
    frequency = [f"governor {', '.join(body.governors)}"] if body.governors else []
    frequency += ["boost on" if body.boost else "boost off"] if body.boost is not None else []
    frequency += [f"now {body.mhz} MHz"] if body.mhz else []
    cores = ", ".join(map(str, body.usable))
    return [
        ("processor", body.processor),
        ("cores", f"{body.cores}, of which this process may use {len(body.usable)} (number {cores})"),
        ("memory", " of ".join(numbers.quantity(count, "bytes") for count in (body.available, body.memory)) + " free"),
        ("load", f"{body.load:.1f} in the last minute; {body.used:.2f} cores in use over {WATCH:.0f} s"),
        ("stolen", f"{numbers.percent(body.stolen)} of the time, by the host"),
        ("frequency", ", ".join(frequency) or "not readable here, as on most virtual machines"),
        ("compiler", body.compiler or "none; the Cython kernels need one"),
    ]


def _noises(report: Report) -> list[tuple[str, str]]:
    return [
        (
            one.kind,
            f"{noise.KINDS[one.kind]}, {len(one.ratios)} rounds: {numbers.percent(one.pair)} between the two of a round, "
            f"{numbers.percent(one.between)} between all processes, {numbers.percent(one.within)} within one; {_told(one)}",
        )
        for one in report.noises
    ]


def _suite(found: Suite) -> list[tuple[str, str]]:
    rows = [
        ("libraries", ", ".join(f"{name} {version}" for name, version in found.versions.items())),
        ("pools", ", ".join(f"{pool}: {numbers.many(count, 'thread')}" for pool, count in found.pools.items()) or "none"),
    ]
    for operation in dict.fromkeys([*found.ready, *found.lacking]):
        rows.append((operation, f"ready: {', '.join(found.ready.get(operation, ['none']))}"))
        rows += [("", f"{', '.join(names)}: {reason}") for reason, names in found.lacking.get(operation, {}).items()]
    if found.silence:
        rows.append(("implementations", f"not known: {found.silence}"))
    return rows
