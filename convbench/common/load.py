"""The load of this machine: cores in use, and time stolen by the host."""

from __future__ import annotations

import os
import time

import click
import psutil

# Limits for measurements on one core: cores in use by other processes, and the share of time stolen by the host.
MAX_BUSY_CORES = 0.5
MAX_STOLEN_SHARE = 0.1
MAX_WAIT_SECONDS = 20  # for a short disturbance to end, an installation just finished for example


class MachineFault(click.ClickException):
    """This machine cannot measure now, whatever is measured: another might."""


def wait_until_quiet(seconds: float = MAX_WAIT_SECONDS) -> None:
    """Wait until the machine is idle. Raises MachineFault that names what is busy where that takes too long."""
    give_up, told = time.monotonic() + seconds, False
    while reason := busy():
        if not told:
            click.echo(f"waiting up to {seconds:.0f} s until this machine is idle: {reason}", err=True)
            told = True
        if time.monotonic() > give_up:
            raise MachineFault(
                f"this machine is too busy to measure on: {reason}; stop other processes, or use --busy to measure anyway"
            )


def core_numbers() -> list[int]:
    """The cores that this process may run on."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(psutil.cpu_count() or 1))


def cores() -> int:
    """The number of these cores."""
    return len(core_numbers())


def stolen() -> float:
    """Seconds stolen by the host since the machine started; 0 if unknown."""
    return getattr(psutil.cpu_times(), "steal", 0.0)


def usage(seconds: float) -> tuple[float, float]:
    """Watch for some seconds; return the cores in use and the share of time stolen by the host."""
    before, start = psutil.cpu_times(), time.monotonic()
    time.sleep(seconds)
    # Taken from the times themselves: psutil's percentages are of a second at least, whatever the interval.
    spent = {name: value - getattr(before, name) for name, value in psutil.cpu_times()._asdict().items()}
    passed = time.monotonic() - start
    used = sum(spent.get(name, 0.0) for name in ("user", "nice", "system", "irq", "softirq")) / passed
    return used, spent.get("steal", 0.0) / passed / (psutil.cpu_count() or 1)


def busy(seconds: float = 1.0) -> str | None:
    """Watch for a second; return what disturbs measurements, or None."""
    return disturbance(*usage(seconds))


def disturbance(used: float, stolen: float) -> str | None:
    """What disturbs a measurement, in words, where that many cores are in use and that share of the time is taken."""
    if used > MAX_BUSY_CORES:
        return f"other processes use {used:.1f} of {psutil.cpu_count() or 1} cores"
    if stolen > MAX_STOLEN_SHARE:
        return f"the host takes {stolen:.0%} of its time"
    return None
