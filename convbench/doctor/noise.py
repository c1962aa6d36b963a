"""Measures this machine's noise: a minute of fresh processes that do the same work, two at a time in turn."""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click
import numpy as np
from rich.console import Console
from scipy import special

from convbench.common import load, progress
from convbench.gate.judge import SMALLEST
from convbench.gate.workers import POOLS

WORKER = Path(__file__).with_name("noise_worker.py")
KINDS = {"compute": "a product of two 128x128 matrices", "memory": "a copy of 32 MiB"}
ROUNDS = 20  # rounds of two processes of each kind
BLOCKS = 15  # blocks of each process, as in the gate
MAX_SECONDS = 50.0  # seconds after which no further round begins
MAX_PROCESS_SECONDS = 60.0  # seconds after which a process is killed; it needs half a second
SLOWDOWN = 0.05  # the slow-down to detect, as a share
LEVEL, POWER = 0.95, 0.9  # of the interval that must lie beyond the smallest change, and how often it does
MAX_ROUNDS = 1000  # a machine that needs more rounds is too noisy


@dataclass(frozen=True)
class Noise:
    """The noise of one kind of work, from rounds of two processes with blocks timed in turn.

    seconds: of a call, the medians of all processes. ratios: of each round, the log-ratio of its processes. within: half the
    interquartile range of a typical process, over its median.
    """

    kind: str
    seconds: tuple[float, ...]
    ratios: tuple[float, ...]
    within: float

    @property
    def between(self) -> float:
        """Relative standard deviation of processes, as they come one after the other."""
        return float(np.std(np.log(self.seconds), ddof=1))

    @property
    def ratio_deviation(self) -> float:
        """Standard deviation of the ratio of two processes timed in turn, which share the machine's disturbances."""
        return float(np.std(self.ratios, ddof=1))

    @property
    def rounds(self) -> int | None:
        """The rounds needed to detect a slow-down of SLOWDOWN, or None if MAX_ROUNDS are too few.

        A round is a pair of fresh processes. A change is detected if its 95 % interval by Student's t lies beyond the
        gate's smallest change worth reporting, in nine of ten tries.
        """
        room = math.log1p(SLOWDOWN) - math.log1p(SMALLEST)
        count = np.arange(2, MAX_ROUNDS + 1)
        needed = special.stdtrit(count - 1, (1 + LEVEL) / 2) + special.stdtrit(count - 1, POWER)
        enough = np.flatnonzero(needed * self.ratio_deviation <= room * np.sqrt(count))
        return int(count[enough[0]]) if len(enough) else None


def measure(console: Console) -> list[Noise]:
    """Make the rounds, for a minute at most. Raises ClickException if a process ends before its time."""
    found: dict[str, list[tuple[list[float], list[float]]]] = {kind: [] for kind in KINDS}
    end = time.monotonic() + MAX_SECONDS
    with progress.bar(console) as bar:
        task = bar.add_task("measuring noise", total=ROUNDS)
        for i in range(ROUNDS):
            if i > 2 and time.monotonic() > end:
                break
            for kind in sorted(KINDS, reverse=bool(i % 2)):
                found[kind].append(_round(kind, random.Random(i)))
            bar.advance(task)
    return [_noise(kind, rounds) for kind, rounds in found.items()]


def _noise(kind: str, rounds: Sequence[tuple[list[float], list[float]]]) -> Noise:
    quartiles = [np.quantile(blocks, [0.25, 0.5, 0.75]) for both in rounds for blocks in both]
    within = median(float((high - low) / 2 / middle) for low, middle, high in quartiles)
    ratios = tuple(float(np.median(np.log(first) - np.log(second))) for first, second in rounds)
    return Noise(kind, tuple(float(middle) for _, middle, _ in quartiles), ratios, within)


def _round(kind: str, generator: random.Random) -> tuple[list[float], list[float]]:
    """Seconds of a call in each block of two fresh processes on the last core that may be used, timed in turn."""
    seconds: tuple[list[float], list[float]] = ([], [])
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(_process(kind)) for _ in seconds]
        for process in processes:
            _answer(process)
        for _ in range(BLOCKS):
            for i in generator.sample((0, 1), 2):
                seconds[i].append(float(_answer(processes[i], "block\n")))
    return seconds


@contextlib.contextmanager
def _process(kind: str) -> Iterator[subprocess.Popen]:
    """A fresh process; it has ended when this is left, and is killed where it takes too long."""
    command = [sys.executable, str(WORKER), kind, str(load.core_numbers()[-1])]
    environment = os.environ | {f"{pool}_NUM_THREADS": "1" for pool in POOLS}
    with subprocess.Popen(
        command,
        env=environment,
        text=True,
        bufsize=1,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        deadline = threading.Timer(MAX_PROCESS_SECONDS, process.kill)
        deadline.daemon = True  # nothing waits for it after Ctrl-C
        deadline.start()
        try:
            yield process
        finally:
            deadline.cancel()
            process.kill()
            with contextlib.suppress(BrokenPipeError):  # its unread input
                process.communicate()


def _answer(process: subprocess.Popen, question: str = "") -> str:
    """The next line of a process. Raises ClickException if it is gone."""
    assert process.stdin is not None  # pipes, all of them
    assert process.stdout is not None
    assert process.stderr is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(question)
        process.stdin.flush()
    if line := process.stdout.readline():
        return line
    if process.wait() == -signal.SIGKILL:
        raise click.ClickException(f"a process of the noise measurement took over {MAX_PROCESS_SECONDS:.0f} s, or was killed")
    lines = process.stderr.read().strip().splitlines() or ["it said nothing"]
    raise click.ClickException(f"a process of the noise measurement failed: {lines[-1]}")
