"""The benchmark types of this suite, which asv_runner finds in front of its own."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from typing import Any

from asv_runner.benchmarks import benchmark_types
from asv_runner.benchmarks.time import TimeBenchmark
from asv_runner.benchmarks.track import TrackBenchmark

from benchmarks.errors import Skip
from benchmarks.harness.side_file import SideFileLine
from benchmarks.timing import clock, cuda_clock


class _SideFile:
    """Writes a line of the side file for every cell, also a failed one.

    The suite's classes prepare and check in setup() and leave a `cell` behind (benchmarks.timing.prepared_cell.PreparedCell).
    """

    # Attributes of asv_runner's Benchmark, the other base of the types below.
    name: str
    _current_params: tuple
    _setups: list[Callable]
    _build_params: Callable[[], tuple]

    def do_setup(self):
        self.line = SideFileLine(self.name, [repr(value) for value in self._current_params])
        try:
            for setup in self._setups:
                setup(*self._build_params())
        except Skip as skip:
            self._skip(skip)
            return True
        except Exception as error:
            self._fail(error)
            raise
        return False

    def do_run(self):
        try:
            return super().do_run()  # type: ignore[misc]
        except Skip as skip:
            self._skip(skip)
            raise
        except Exception as error:
            self._fail(error)
            raise

    def _skip(self, skip):
        self.line.close("skipped", str(skip))
        print(f"skipped: {skip}")

    def _fail(self, error):
        self.line.close("failed", f"{type(error).__name__}: {error}")


class CheckedTime(_SideFile, TimeBenchmark):
    """Times a prepared cell in blocks, checks its last timed output, and returns samples as asv stores them.

    asv's attributes keep their meaning: sample_time, warmup_time, repeat, number, rounds. What differs from asv's own
    type: `setup` runs once and not before every call, and a wrong answer has no time.
    """

    name_regex = re.compile("^time_.+$")

    def run(self, *params):
        cell, repeat = self.func.__self__.cell, self.repeat or clock.Plan().repeat
        min_samples, max_samples, enough = repeat if isinstance(repeat, (tuple, list)) else (int(repeat), int(repeat), 0.0)
        warmup = clock.Plan().warmup_time if self.warmup_time < 0 else self.warmup_time
        plan = cell.block, min_samples, max_samples, enough, warmup, self.number, 1
        # By way of benchmark_timing, as in asv's own type, where other samples of a prepared cell can be put in its place.
        samples, number = self.benchmark_timing(*plan)
        if cell.block.held_back:
            cell.block.held_back = None
            samples, number = self.benchmark_timing(*plan)
        reservation = cell.block.reservation()
        if cell.block.held_back:
            reservation = f"{reservation}, twice"
        device: dict[str, Any] = {}
        if cell.on_device:
            device["device"] = cuda_clock.facts(cell.arrays)  # before it has had time to rest
        called = cell.called + self.called
        if cold := cuda_clock.cold(cell.block):
            device["cold"] = float(f"{statistics.median(cold.samples):.6g}")
            called += cold.called
        facts = cell.verify(cell.block.output) | device
        self.line.close(
            "ok",
            reservation,
            samples=[float(f"{sample:.6g}") for sample in samples],
            number=number,
            called=round(called + facts.pop("called", 0.0), 6),
            threads=cell.threads,
            **facts,
        )
        return {"samples": samples, "number": number}

    def benchmark_timing(self, timer, min_repeat, max_repeat, max_time, warmup_time, number, min_run_count):
        plan = clock.Plan(self.sample_time, warmup_time, (min_repeat, max_repeat, max_time), number)
        measured = clock.measure(timer, plan)
        self.called = measured.called
        return measured.samples, measured.number


class CheckedTrack(_SideFile, TrackBenchmark):
    """A figure that is not a time, with its line in the side file."""

    def run(self, *params):
        value = super().run(*params)
        cell = self.func.__self__.cell
        facts = cell.verify(cell.block.output)
        called = cell.called + facts.pop("called", 0.0)
        self.line.close("ok", value=value, called=round(called, 6), threads=cell.threads, **facts)
        return value


CheckedTrack.name_regex = TrackBenchmark.name_regex


def register() -> None:
    """Put the types above in front of asv_runner's, so that they match first."""
    for kind in (CheckedTrack, CheckedTime):
        if kind not in benchmark_types:
            benchmark_types.insert(0, kind)
