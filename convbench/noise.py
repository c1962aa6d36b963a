"""How far apart two measurements of the same work lie on this machine: a minute of fresh processes, in turn of two kinds."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from scipy import special

from convbench import machine
from convbench.gate.judge import SMALLEST
from convbench.gate.pair import POOLS

WORK = Path(__file__).with_name("noise_work.py")
KINDS = {"compute": "a product of two 128x128 matrices", "memory": "a copy of 32 MiB"}
ROUNDS = 20  # of one process of each kind
SECONDS = 50.0  # after which no further round begins
PATIENCE = 60.0  # seconds a process may take; it needs half a second
SLOWER = 0.05  # the slow-down that is to be found
LEVEL, POWER = 0.95, 0.9  # of the interval that has to lie beyond the smallest change, and how often it does
MOST = 1000  # rounds that nobody waits for


@dataclass(frozen=True)
class Noise:
    """What one kind of work showed. seconds: of a call, the medians of its processes in turn; within: half their typical IQR.

    Both spreads are relative.
    """

    kind: str
    seconds: tuple[float, ...]
    within: float

    @property
    def between(self) -> float:
        """Standard deviation of the processes."""
        return float(np.std(np.log(self.seconds), ddof=1))

    @property
    def pair(self) -> float:
        """Standard deviation of the ratio of two that follow each other: von Neumann's, which slow drifts leave alone."""
        return math.sqrt(float(np.mean(np.diff(np.log(self.seconds)) ** 2)))

    @property
    def rounds(self) -> int | None:
        """How many rounds tell a slow-down of SLOWER, or None where not even MOST do.

        A round is a pair of fresh processes. The change counts as told when its 95 % interval by Student's t lies beyond the
        gate's smallest change worth reporting, in nine of ten tries.
        """
        room = math.log1p(SLOWER) - math.log1p(SMALLEST)
        count = np.arange(2, MOST + 1)
        needed = special.stdtrit(count - 1, (1 + LEVEL) / 2) + special.stdtrit(count - 1, POWER)
        enough = np.flatnonzero(needed * self.pair <= room * np.sqrt(count))
        return int(count[enough[0]]) if len(enough) else None


def measure(console: Console) -> list[Noise]:
    """Run the processes, in turn, for a minute at most. Raises ClickException where one of them ends before its time."""
    found: dict[str, list[Sequence[float]]] = {kind: [] for kind in KINDS}
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), console=console, transient=True, disable=not console.is_terminal
    )
    give_up = time.monotonic() + SECONDS
    with bar:
        task = bar.add_task("measuring noise", total=ROUNDS)
        for i in range(ROUNDS):
            if i > 2 and time.monotonic() > give_up:
                break
            for kind in sorted(KINDS, reverse=bool(i % 2)):
                found[kind].append(_process(kind))
            bar.advance(task)
    return [_noise(kind, processes) for kind, processes in found.items()]


def _noise(kind: str, processes: Sequence[Sequence[float]]) -> Noise:
    quartiles = [np.quantile(blocks, [0.25, 0.5, 0.75]) for blocks in processes]
    within = median(float((high - low) / 2 / middle) for low, middle, high in quartiles)
    return Noise(kind, tuple(float(middle) for _, middle, _ in quartiles), within)


def _process(kind: str) -> list[float]:
    """Seconds of a call in each block of one fresh process, on the last core that may be used."""
    command = [sys.executable, str(WORK), kind, str(machine.core_numbers()[-1])]
    environment = os.environ | {f"{pool}_NUM_THREADS": "1" for pool in POOLS}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=True)
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise click.ClickException(f"a process of the noise measurement took over {PATIENCE:.0f} s") from None
    except (subprocess.CalledProcessError, ValueError) as error:
        lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise click.ClickException(f"a process of the noise measurement failed: {lines[-1]}") from None
