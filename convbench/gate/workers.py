"""The two processes of a round, one of base and one of head, which run in turn and may end at any time."""

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
from convbench.common.cells import spelling
from convbench.gate.answers import Answer
from convbench.gate.build import SIDES, Built
from convbench.gate.failures import Reason

PROGRAM = Path(__file__).with_name("programs") / "worker.py"
SPAWNED = "each cell loads the suite anew, since loading it starts threads, which a fork would lose"
THREADED = "it computes in threads of its own, all of them on one core"
SHARED = "all cells share what setup_cache left, since a copy for each would be large"
APART_SHARE = 0.1  # of a block's time, in threads of a benchmark's own, from which on that is told
START_TIMEOUT = 600.0  # seconds for a worker to import its suite, which may create data on import
# Many short blocks rather than few long ones: the nearer two blocks lie in time, the more of the noise they share.
MAX_BLOCKS = 15  # of a worker, cell and round
MIN_BLOCKS = 3
BLOCK_SHARE = 0.2  # of a benchmark's sample_time, for one block
LONG_SECONDS = 0.3  # seconds of a cell and round, both workers; slower cells get fewer blocks
MAX_STANDING_SECONDS = 5.0  # seconds of a block that a coarse clock may read as 0
EXTRA_SECONDS = 5.0  # seconds for an answer, beyond a benchmark's own timeout
# What tells the pools in a process how many threads to have. All of these are read before a pool starts.
POOLS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA", "RAYON", "VECLIB_MAXIMUM")


@dataclass(frozen=True)
class TimedCell:
    """One combination of a benchmark's parameters, and how it is run.

    places: by side, the number of the combination among that side's own, by which asv_runner addresses it. Parameters may
    come from the code that is measured: what one side alone has, has a place there alone. timeout: seconds for any answer.
    cores: how many it runs on. home: the name of a folder on each side, of which it runs in a copy: that of its setup_cache,
    if it has one. value_unit: of the value that it returns, None where it is timed. base_params: if the base has it.
    """

    benchmark: str
    params: tuple[str, ...]
    places: Mapping[str, int]
    timeout: float
    sample_time: float
    cores: int
    home: Path
    value_unit: str | None = None
    base_params: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """The cell's name for `--bench`: name(parameters)."""
        return spelling((self.benchmark, self.params))

    def id(self, side: str) -> str:
        """The cell's name for asv_runner on a side."""
        return f"{self.benchmark}-{self.places[side]}" if self.params else self.benchmark

    def spelled(self, side: str) -> tuple[str, ...]:
        """Its parameters as they are listed on a side."""
        return (side == "base" and self.base_params) or self.params

    def folder(self, side: str) -> Path:
        """The folder in which it runs on a side."""
        return self.home.parent / side / self.home.name


class Lost(Exception):
    """A worker gave no answer; the text says why."""


@dataclass
class Sampled:
    """The result of one round of a cell.

    By side, measured: seconds of a call, a list of blocks; or one value. answers: the array that the benchmark returned, if
    it is one. failed, skipped: why it was not sampled. notes: reservations about the times.
    planned: the seconds that blocks would have taken where there were none.
    """

    measured: dict[str, list[float]] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    failed: dict[str, Reason] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    planned: float = 0.0


def environment(built: Built, cores: int, seed: int) -> dict[str, str]:
    """The environment of a worker: its own code, programs and Numba cache in front, as many threads as cores."""
    mine = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    mine |= {f"{pool}_NUM_THREADS": str(cores) for pool in POOLS}
    # Left to itself, glibc moves these with every large piece that is freed, and whether a call's output is faulted in
    # page by page then depends on what ran before it: the same call took 0.2 ms in one process and 2 ms in the next.
    mine |= {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1)}
    mine |= built.variables
    mine["PATH"] = os.pathsep.join((str(Path(built.python).parent), mine.get("PATH", os.defpath)))
    # Both workers of a round order their sets and dictionaries alike; the next round orders them differently.
    mine |= {"PYTHONPATH": str(built.code), "PYTHONHASHSEED": str(seed), "NUMBA_CACHE_DIR": str(built.numba_cache)}
    return mine


class Worker:
    """A running worker.py: imports its suite on the core `start`, serves on `cores`."""

    def __init__(self, built: Built, cores: tuple[int, ...], start: int, seed: int) -> None:
        self.built = built
        requests, self._out = os.pipe()
        self._in, answers = os.pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 closed with the worker
        command = [built.python, str(PROGRAM), "serve", str(built.suite), str(requests), str(answers)]
        command += [",".join(map(str, cores)), str(start), str(seed), "spawn" if built.spawns else "fork"]
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

    def tell(self, **request: Any) -> None:
        """Send a request."""
        with contextlib.suppress(BrokenPipeError):  # the caller that waits for the answer reports the end
            os.write(self._out, json.dumps(request).encode() + b"\n")

    def answer(self, timeout: float, since: float | None = None) -> dict[str, Any]:
        """Wait for the next answer. Raises Lost where none comes in time, which is counted from now or an earlier moment."""
        until = (since or time.monotonic()) + timeout
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
            self._process.wait(EXTRA_SECONDS)
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 4000))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        words = f": {lines[-1][:300]}" if lines else ""
        code = self._process.returncode
        if code is not None and code < 0:
            cause = ", probably out of memory" if code == -signal.SIGKILL else ""
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
def _signals_deferred() -> Iterator[None]:
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


class Workers:
    """A round's two processes for the cells of one number of cores; started anew where one was lost."""

    def __init__(self, built: Mapping[str, Built], cores: tuple[int, ...], generator: random.Random) -> None:
        self.built, self.cores, self.generator = built, cores, generator
        self.running: dict[str, Worker] = {}
        self.spawned = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """End both processes."""
        for worker in self.running.values():
            worker.close()
        self.running = {}

    def start(self) -> None:
        """Have both processes running, their suites imported. Raises Lost, with the side in its words."""
        seed = self.generator.randrange(2**32)
        have = load.core_numbers()
        for i, side in enumerate(self.generator.sample(SIDES, 2)):
            with _signals_deferred():  # otherwise an interrupt could leave the process running
                self.running[side] = Worker(self.built[side], self.cores, have[i % len(have)], seed)
        for side, worker in self.running.items():
            try:
                self.spawned = worker.answer(START_TIMEOUT)["spawned"] and not worker.built.spawns
            except Lost as lost:
                self.close()
                raise Lost(f"the suite does not start with the code of the {side}: {lost}") from None

    def sample(self, cell: TimedCell, slower: float, keep: Path | None, once: bool = False) -> Sampled:
        """Sample a cell on both sides in turn, if both are ready. Raises Lost where a worker does not start.

        slower: the share by which the head's blocks are artificially slowed, and its values enlarged. keep: the folder for
        answers, None for none. once: no blocks are timed, it is only called and planned.
        """
        if not self.running:
            self.start()
        found = Sampled()
        order = self.generator.sample(SIDES, 2)
        told = time.monotonic()
        for side in order:  # both prepare at the same time, and on the same cores; nothing is timed yet
            self.running[side].tell(
                id=cell.id(side),
                params=cell.spelled(side),
                place=cell.places[side],
                folder=str(cell.folder(side)),
                slower=slower if side == "head" else 0.0,
            )
        waiting = {side for side in order if "prepared" in self._hear(side, 2 * cell.timeout, found, told)}
        ready: dict[str, dict[str, Any]] = {}
        if len(waiting) == 2:
            for side in order:
                answer = self._ask(side, cell.timeout, found, warm=True)
                if "ready" in answer:
                    ready[side] = answer
                else:
                    waiting.discard(side)
                if "value" in answer:
                    found.measured[side] = [answer["value"] + abs(answer["value"]) * (slower if side == "head" else 0.0)]
        if len(ready) == 2 and all(answer["single"] for answer in ready.values()):
            _take(ready, found)
        elif len(ready) == 2 and once:
            units, count, wall = _plan(cell, ready)
            found.planned = 2 * units * count * wall
        elif len(ready) == 2:
            self._alternate(cell, ready, found)
            if keep and not found.failed:
                self._keep_answers(cell, keep, found)
        for side in waiting & self.running.keys():
            self._ask(side, cell.timeout, found, end=True)
        if not found.failed:
            found.notes += sorted({note for answer in ready.values() for note in _notes(answer, len(self.cores))})
            found.notes += [SPAWNED] * self.spawned
        elif len(self.running) < 2:  # the other worker is alive, but its round is over: both start together
            self.close()
        return found

    def _ask(self, side: str, timeout: float, found: Sampled, **request: Any) -> dict[str, Any]:
        """The answer to a request, as for `_hear`."""
        self.running[side].tell(**request)
        return self._hear(side, timeout, found)

    def _hear(self, side: str, timeout: float, found: Sampled, since: float | None = None) -> dict[str, Any]:
        """A worker's next answer, {} where it was lost, which ends its process; what failed or was skipped is noted."""
        try:
            answer = self.running[side].answer(timeout + EXTRA_SECONDS, since)
        except Lost as lost:
            found.failed[side] = Reason(str(lost))
            self.running.pop(side).close()
            return {}
        if "skipped" in answer:
            found.skipped[side] = answer["skipped"]
        elif "failed" in answer:
            found.failed[side] = Reason(answer["failed"], answer.get("trace"))
        return answer

    def _alternate(self, cell: TimedCell, ready: dict[str, dict[str, Any]], found: Sampled) -> None:
        """Time blocks of both workers in turn, in random order, back to back."""
        units, count, wall = _plan(cell, ready)
        while not self._blocks(cell, units, count, found):
            units *= 2
            if units * wall > MAX_STANDING_SECONDS:
                found.failed = dict.fromkeys(SIDES, Reason("its timer repeatedly returned 0 seconds"))
                return

    def _blocks(self, cell: TimedCell, units: int, count: int, found: Sampled) -> bool:
        """Time so many blocks of so many units; False where a coarse clock says 0 for one, which is then too short."""
        found.measured = {side: [] for side in SIDES}
        for _ in range(count):
            for side in self.generator.sample(SIDES, 2):
                answer = self._ask(side, cell.timeout, found, units=units)
                if "seconds" not in answer:
                    found.failed.setdefault(side, Reason("it ended while it was sampled"))
                    if side in self.running:
                        self.running.pop(side).close()
                    return True
                if not answer["seconds"]:
                    return False
                found.measured[side].append(answer["seconds"])
        return True

    def _keep_answers(self, cell: TimedCell, keep: Path, found: Sampled) -> None:
        """Have both workers keep what the benchmark returns."""
        for side in SIDES:
            file = keep / f"{side}.answer"  # next to the folders of both sides
            answer = self._ask(side, cell.timeout, found, answer=str(file))
            if answer.get("array"):
                kind, shape = answer["array"]
                found.answers[side] = Answer(kind, shape, file)
            if "lost" in answer:
                found.notes.append(f"answers are not compared: {answer['lost']}")


def _plan(cell: TimedCell, ready: Mapping[str, dict[str, Any]]) -> tuple[int, int, float]:
    """The units of a block, the number of blocks a side, and the seconds of a unit.

    Long enough for the clock, of as many calls on one side as on the other, and not for ever where the time that is not
    counted (a setup before each call) is far longer than the time that is.
    """
    units = max(math.ceil(BLOCK_SHARE * cell.sample_time / answer["seconds"]) for answer in ready.values())
    wall = max(1e-9, *(answer["wall"] for answer in ready.values()))
    units = max(1, min(units, int(max(2 * cell.sample_time, 0.02) / wall)))
    return units, max(MIN_BLOCKS, min(MAX_BLOCKS, int(LONG_SECONDS / (2 * units * wall)))), wall


def _take(ready: Mapping[str, dict[str, Any]], found: Sampled) -> None:
    """Take the first calls as the round's only ones."""
    for side, answer in ready.items():
        found.measured[side] = [answer["seconds"]]
        if not answer["seconds"]:
            found.failed[side] = Reason("its timer returned 0 seconds for its only call")


def _notes(answer: dict[str, Any], cores: int) -> list[str]:
    """Notes on a worker whose threads differ from those requested, or lie on one core."""
    notes = [f"{pool} has {n} threads on {cores} cores" for pool, n in answer["threads"].items() if n != cores]
    if answer["cores"] not in (None, cores):
        notes.append(f"it changed its own CPU affinity to {answer['cores']} cores")
    if cores == 1 and answer["apart"] > APART_SHARE * answer["wall"]:
        notes.append(THREADED)
    return notes + [SHARED] * answer["shared"]
