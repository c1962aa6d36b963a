"""Candidates on one problem: each is checked first, timed in turn with the others, and checked again at the end."""

from __future__ import annotations

import statistics
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import Missing, Skip, WrongAnswer
from benchmarks.harness import cell
from benchmarks.timing import clock, cuda_clock, stopping, threads
from benchmarks.timing.prepared_cell import PreparedCell

# A candidate is not too slow by fewer calls than these, the first of which may meet memory that is new to the process and two
# more a stall, nor by fewer seconds of calls: these are interrupted, and meet the threads of those before.
MIN_CALLS = 4
MIN_SECONDS = 0.05


class Candidates:
    """The candidates on one problem, in one process on `count` cores.

    arrays: what all of them are given. ready: the cells of those that were right so far. measured: what in_turn() found.
    """

    def __init__(self, problem: Any, count: int, operation: str = "conv2d") -> None:
        """Raises ValueError if the machine has fewer cores."""
        threads.require(count)
        self.task, self.problem, self.count = cell.task(operation, problem), problem, count
        self.arrays = self.task.arrays
        self.ready: dict[str, PreparedCell] = {}
        self.measured: dict[str, clock.Measurement] = {}
        self._results: dict[str, dict[str, Any]] = {}
        threads.confine(count)

    def add(self, name: str, make: Callable[[], PreparedCell]) -> None:
        """Make a candidate's cell, which checks its first output; one that cannot be timed has a result that says why."""
        self._results.setdefault(name, {"name": name})
        try:
            self.ready[name] = make()
        except (Skip, Missing) as lacking:
            self._results[name] |= {"status": "skipped", "reason": str(lacking)}
        except Exception as error:
            self._fail(name, f"{type(error).__name__}: {error}{_place(error)}")

    def check(self, name: str, function: Any, **more: Any) -> PreparedCell:
        """The cell of an implementation or of something like it; more: what else the task's check takes.

        Raises Skip or WrongAnswer.
        """
        self._results[name] = {"name": name, "device": function.device, "family": function.family}
        cell.require_support(function, self.task)
        pools = threads.set_pools(self.count)  # after every load, since a library brings its own
        return self.task.check(function, pools, **more)

    def leave_out(self, names: Sequence[str], factor: float) -> None:
        """Leave out those of the named that take over `factor` times as long for a call as the fastest of all.

        By the shortest of at least MIN_CALLS calls, which together take at least MIN_SECONDS.
        """
        times = {name: each.block(1) for name, each in self.ready.items()}
        for name in names:
            if name not in times:
                continue
            calls, spent = 1, times[name]
            while (ratio := times[name] / min(times.values())) > factor and (calls < MIN_CALLS or spent < MIN_SECONDS):
                spent += (took := self.ready[name].block(1))
                times[name], calls = min(times[name], took), calls + 1
            if ratio > factor:
                reason = f"left out: a call takes {ratio:.2g} times as long as the fastest's"
                self._results[name] |= {"status": "skipped", "reason": reason}
                del self.ready[name]

    def in_turn(
        self,
        seconds: float,
        min_samples: int,
        others: dict[str, PreparedCell] | None = None,
        comparisons: Sequence[stopping.Comparison] = (),
    ) -> Iterator[float]:
        """Sample all that are ready, and others that are not checked; yields the share that is done.

        comparisons: as long as one of them is not decided all are sampled on, up to stopping.MAX_LOOKS times as much.
        """
        blocks = {name: each.block for name, each in {**(others or {}), **self.ready}.items()}

        def undecided() -> bool:
            return stopping.undecided(comparisons, {name: each.samples for name, each in self.measured.items()})

        return clock.in_turn(blocks, seconds, min_samples, self.measured, undecided, stopping.MAX_LOOKS)

    def results(self) -> list[dict[str, Any]]:
        """A result for each in the order of add(): status, samples and errors, the reason why not or a reservation, and
        what it declares. One whose last timed output is wrong has no samples.
        """
        for name, ready in self.ready.items():
            try:
                cold = cuda_clock.cold(ready.block)
                errors = ready.verify(ready.block.output)
                errors.pop("called", None)
                errors |= {"cold": statistics.median(cold.samples)} if cold else {}
                self._results[name] |= {"status": "ok", "samples": self.measured[name].samples, **errors}
                if reservation := ready.block.reservation():
                    self._results[name]["reason"] = reservation
            except Exception as error:
                self._fail(name, f"{type(error).__name__}: after timing: {error}")
        return list(self._results.values())

    def _fail(self, name: str, reason: str) -> None:
        self._results[name] |= {"status": "failed", "reason": reason}
        self.task.restore()  # the inputs are the others' too


def _place(error: Exception) -> str:
    """Where an error was raised, by file and line; nothing for a wrong answer, which the check raises."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, WrongAnswer) or not frames:
        return ""
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})"
