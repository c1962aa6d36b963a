"""The properties and load of this machine, and the contents of its measured environment."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import click
import psutil
from rich.console import Console

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.common import load
from convbench.suite import ask

SYSTEM_CPUS = Path("/sys/devices/system/cpu")
WATCH_SECONDS = 3.0  # seconds of watching the load
LIBRARIES = ("asv", "asv_runner", "convbench", "numpy", "scipy")


@dataclass(frozen=True)
class MachineFacts:
    """The machine. stolen: share of its time that the host takes. governors, boost, mhz: None if they cannot be read."""

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
class SuiteFacts:
    """What the suite says of the environment. ready and lacking: by operation. silence: why it says nothing.

    instructions: what its kernels were compiled for.
    """

    ready: dict[str, list[str]] = field(default_factory=dict)
    lacking: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    pools: dict[str, int] = field(default_factory=dict)
    instructions: str | None = None
    silence: str | None = None


def read_machine(console: Console) -> MachineFacts:
    """Read the system's properties, and watch its load for WATCH_SECONDS."""
    with console.status(f"watching other processes for {WATCH_SECONDS:.0f} s"):
        used, stolen = load.usage(WATCH_SECONDS)
    memory = psutil.virtual_memory()
    usable = tuple(load.core_numbers())
    return MachineFacts(
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
        compiler=compiler(),
    )


def cpu_seconds_of_others() -> float:
    """Seconds of all cores so far that neither this process nor those it has waited for used."""
    total, own = psutil.cpu_times()._asdict(), os.times()
    busy = sum(total.get(name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
    return busy - own.user - own.system - own.children_user - own.children_system


def compiler() -> str | None:
    """The first line of the C compiler's version; None if there is none."""
    words = shlex.split(os.environ.get("CC", "")) or ["cc"]  # CC may hold options, or begin with ccache
    if shutil.which(words[0]) is None:
        return None
    done = subprocess.run([*words, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0] or None


def ask_suite(project: Project, console: Console) -> SuiteFacts:
    """Ask the suite which implementations can run here; where it does not answer, the reason is in `silence`."""
    found = SuiteFacts(versions=_versions())
    try:
        for event in ask.ask(project, "doctor", {}, console):
            found.versions |= event.get("versions", {})
            found.pools = event.get("pools", found.pools)
            found.instructions = event.get("instructions", found.instructions)
            if "implementation" not in event:
                continue
            name, operation = event["implementation"], event["operation"]
            if event["lacks"] is None:
                found.ready.setdefault(operation, []).append(name)
            else:
                # Without the implementation's name, implementations with the same reason share one line.
                reason = event["lacks"].removeprefix(f"{name} ")
                found.lacking.setdefault(operation, {}).setdefault(reason, []).append(name)
    except click.ClickException as error:
        found.silence = error.message
    return found


def _governors() -> tuple[str, ...] | None:
    found = {_read(path) for path in SYSTEM_CPUS.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return tuple(sorted(filter(None, found))) or None


def _boost() -> bool | None:
    """Whether boost is on; two drivers report it in different files."""
    if said := _read(SYSTEM_CPUS / "cpufreq" / "boost"):
        return said == "1"
    said = _read(SYSTEM_CPUS / "intel_pstate" / "no_turbo")
    return said == "0" if said else None


def _mhz(core: int) -> int | None:
    said = _read(SYSTEM_CPUS / f"cpu{core}" / "cpufreq" / "scaling_cur_freq")
    return int(said) // 1000 if said and said.isdigit() else None


def _read(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return None


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
