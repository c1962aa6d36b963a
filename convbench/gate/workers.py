"""Two live processes, one of each side, that are told in turn what to do and never believed to be alive."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convbench.common import load
from convbench.gate.build import SIDES, Built

SIDE = Path(__file__).with_name("worker.py")
START = 120.0  # seconds a side may take to import its suite
# Many short blocks rather than few long ones: the nearer two blocks lie in time, the more of the noise they share.
SAMPLES = 15  # blocks a side and round
BLOCK = 0.2  # of a benchmark's sample_time
LONG = 0.3  # seconds of a cell and round, both sides, beyond which fewer blocks are enough
LEAST = 3  # of them
PATIENCE = 5.0  # seconds beyond a benchmark's own timeout
# What tells the pools in a process how many threads to have. All of these are read before a pool starts.
POOLS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA", "RAYON", "VECLIB_MAXIMUM")


class Lost(Exception):
    """A side that gave no answer; says what became of it."""


class Failed(Exception):
    """A benchmark that cannot be sampled on a side; says why."""


@dataclass
class Sampled:
    """What one round found of a cell.

    seconds: of a call, a list of blocks for each side. answers: (format, shape, file) for each side that returned an array.
    notes: what a reader of the times has to know.
    """

    seconds: dict[str, list[float]] = field(default_factory=dict)
    answers: dict[str, tuple[str, list[int], Path]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def environment(built: Built, cores: int, seed: int) -> dict[str, str]:
    """The environment of a side: its own code and Numba cache in front, as many threads as cores."""
    mine = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    mine |= {f"{pool}_NUM_THREADS": str(cores) for pool in POOLS}
    # Left to itself, glibc moves these with every large piece that is freed, and whether a call's output is faulted in
    # page by page then depends on what ran before it: the same call took 0.2 ms in one process and 2 ms in the next.
    mine |= {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1)}
    mine |= built.variables
    # Both sides of a round order their sets and dictionaries alike; the next round orders them differently.
    mine |= {"PYTHONPATH": str(built.code), "PYTHONHASHSEED": str(seed), "NUMBA_CACHE_DIR": str(built.numba_cache)}
    return mine


class Side:
    """A running worker.py: imports its suite on the core `start`, serves on `cores`."""

    def __init__(self, built: Built, cores: tuple[int, ...], start: int, seed: int) -> None:
        self.built = built
        requests, self._out = os.pipe()
        self._in, answers = os.pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 closed with the side
        command = [built.python, str(SIDE), "serve", str(built.suite), str(requests), str(answers)]
        command += [",".join(map(str, cores)), str(start), str(seed)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            cwd=built.folder,
            env=environment(built, len(cores), seed),
            pass_fds=(requests, answers),
            start_new_session=True,  # a benchmark's own processes end with it
        )
        os.close(requests)
        os.close(answers)
        self._rest = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._in, selectors.EVENT_READ)

    def ask(self, timeout: float, **request: Any) -> dict[str, Any]:
        """Send a request, if there is one, and wait for the answer. Raises Lost where none comes in time."""
        if request:
            with contextlib.suppress(BrokenPipeError):  # its end is told below
                os.write(self._out, json.dumps(request).encode() + b"\n")
        until = time.monotonic() + timeout
        while b"\n" not in self._rest:
            if not self._selector.select(max(0.0, until - time.monotonic())):
                raise Lost(f"it gave no answer within {timeout:.0f} seconds")
            if not (more := os.read(self._in, 1 << 16)):
                raise Lost(self._end())
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def _end(self) -> str:
        """How the process ended, with the last words it printed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE)
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 4000))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        words = f": {lines[-1][:300]}" if lines else ""
        code = self._process.returncode
        if code is not None and code < 0:
            cause = ", perhaps for want of memory" if code == -signal.SIGKILL else ""
            return f"its process was killed by {signal.Signals(-code).name}{cause}{words}"
        return f"its process ended with status {code}{words}"

    def close(self) -> None:
        """End the process and all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._selector.close()
        for descriptor in (self._in, self._out):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._errors.close()


@contextlib.contextmanager
def _signals_held_back() -> Iterator[None]:
    """Ctrl-C and SIGTERM arrive when this ends, and not before."""
    arrived: list[int] = []
    stopping = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda number, _: arrived.append(number)) for number in stopping}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in arrived:
            signal.raise_signal(late)


class Pair:
    """A round's two processes for the cells of one number of cores; started anew where one was lost."""

    def __init__(self, built: Mapping[str, Built], cores: tuple[int, ...], generator: random.Random) -> None:
        self.built, self.cores, self.generator = built, cores, generator
        self.sides: dict[str, Side] = {}

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """End both processes."""
        for side in self.sides.values():
            side.close()
        self.sides = {}

    def start(self) -> None:
        """Have both processes running, their suites imported. Raises Lost, with the side in its words."""
        seed = self.generator.randrange(2**32)
        have = load.core_numbers()
        for i, name in enumerate(self.generator.sample(SIDES, 2)):
            with _signals_held_back():  # between its start and its name nobody would end it
                self.sides[name] = Side(self.built[name], self.cores, have[i % len(have)], seed)
        for name, side in self.sides.items():
            try:
                side.ask(START)
            except Lost as lost:
                self.close()
                raise Lost(f"the suite does not start with the code of the {name}: {lost}") from None

    def sample(self, cell: Any, slower: float, keep: Path | None) -> tuple[Sampled, dict[str, str], dict[str, str]]:
        """Sample a cell on both sides in turn; keep answers in a folder, if one is named.

        Returns what was found, what failed and what is skipped, the latter two by side. Nothing is sampled unless both
        sides are ready. slower: the share by which the head's blocks are made slower on purpose.
        """
        if not self.sides:
            self.start()
        found = Sampled()
        failed: dict[str, str] = {}
        skipped: dict[str, str] = {}
        ready: dict[str, dict[str, Any]] = {}
        for name in self.generator.sample(SIDES, 2):
            request = {"id": cell.id, "folder": str(cell.folder(name)), "slower": slower if name == "head" else 0.0}
            answer = self._ask(name, cell.timeout, failed, **request)
            if "ready" in answer:
                ready[name] = answer
            elif "skipped" in answer:
                skipped[name] = answer["skipped"]
            elif answer:
                failed[name] = answer["failed"]
        if len(ready) == 2:
            self._alternate(cell, ready, found, failed)
            if keep and not failed:
                self._compare(cell, keep, found, failed)
        for name in ready:
            if name in self.sides:
                self._ask(name, cell.timeout, failed, end=True)
        if not failed:
            found.notes += sorted({note for answer in ready.values() for note in _notes(answer, len(self.cores))})
        if failed and len(self.sides) < 2:  # the other side is alive, but its round is over: both sides start together
            self.close()
        return found, failed, skipped

    def _ask(self, name: str, timeout: float, failed: dict[str, str], **request: Any) -> dict[str, Any]:
        """The answer of a side, {} where it was lost, which is noted as a failure and ends its process."""
        try:
            answer = self.sides[name].ask(timeout + PATIENCE, **request)
        except Lost as lost:
            failed[name] = str(lost)
            self.sides.pop(name).close()
            return {}
        return answer

    def _alternate(self, cell: Any, ready: dict[str, dict[str, Any]], found: Sampled, failed: dict[str, str]) -> None:
        """Time blocks of both sides in turn, in random order, back to back."""
        # Long enough for the clock, of as many calls on one side as on the other, and not for ever where the time
        # that is not counted (a setup before each call) is far longer than the time that is.
        units = max(math.ceil(BLOCK * cell.sample_time / answer["seconds"]) for answer in ready.values())
        wall = max(1e-9, *(answer["wall"] for answer in ready.values()))
        units = max(1, min(units, int(max(2 * cell.sample_time, 0.02) / wall)))
        count = max(LEAST, min(SAMPLES, int(LONG / (2 * units * wall))))
        found.seconds = {name: [] for name in SIDES}
        for _ in range(count):
            for name in self.generator.sample(SIDES, 2):
                answer = self._ask(name, cell.timeout, failed, units=units)
                if "seconds" in answer:
                    found.seconds[name].append(answer["seconds"])
                else:
                    failed.setdefault(name, answer.get("failed", "it ended while it was sampled"))
                    if name in self.sides:
                        self.sides.pop(name).close()
                    return

    def _compare(self, cell: Any, keep: Path, found: Sampled, failed: dict[str, str]) -> None:
        """Have both sides keep what the benchmark returns."""
        for name in SIDES:
            file = keep / f"{name}.answer"  # beside the sides' folders
            answer = self._ask(name, cell.timeout, failed, answer=str(file))
            if answer.get("array"):
                found.answers[name] = (*answer["array"], file)
            if "lost" in answer:
                found.notes.append(f"answers are not compared: {answer['lost']}")


def _notes(answer: dict[str, Any], cores: int) -> list[str]:
    """What a side says of its threads that is not as it was asked."""
    notes = [f"{pool} has {n} threads on {cores} cores" for pool, n in answer["threads"].items() if n != cores]
    if answer["cores"] not in (None, cores):
        notes.append(f"it moved itself to {answer['cores']} cores")
    return notes
