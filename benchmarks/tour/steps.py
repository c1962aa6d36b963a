"""A step of a story: a guess, a measurement, what to look for in its numbers, and why."""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from benchmarks.commands.interleaved import Candidates
from benchmarks.errors import Missing, Skip, WrongAnswer
from benchmarks.harness import cell
from benchmarks.timing import memory, stopping
from benchmarks.timing.prepared_cell import PreparedCell
from benchmarks.tour import charts, systems
from benchmarks.tour.charts import Picture
from benchmarks.tour.sentences import Ratio, compared, duration, gain, times_as

MIN_SAMPLES = 5  # of each candidate, however slow it is

Event = dict[str, Any]
Numbers = dict[str, Any]  # plain data, so that a result can be kept as JSON
Round = TypeVar("Round")


class Lacking(Exception):
    """Something that a step needs is not there; the text says what, and how to get it."""


UNAVAILABLE = "unavailable: "  # begins a reason of the suite, and says no more than the words before it in a step
UNMEASURED = (Lacking, Skip, Missing, ImportError, OSError, WrongAnswer)


@dataclass(frozen=True)
class Setting:
    """fast: a few seconds a step. folder: where files go that the reader opens with other programs."""

    fast: bool
    folder: Path

    def choose(self, fast: Any, usual: Any) -> Any:
        """One of two values."""
        return fast if self.fast else usual


@dataclass
class Found:
    """What a step has measured: numbers, from which all sentences come, and what tools have printed and drawn."""

    numbers: Numbers
    texts: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)


class Table(NamedTuple):
    """A table; its first column is on the left, the others end on the right."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]


class Step:
    """One step. would: what it would have shown, after "It would have shown". why: true whatever comes out."""

    name = title = guess = command = why = would = ""

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        """Yield progress; return what was found. Raises one of UNMEASURED where that is not possible here."""
        raise NotImplementedError

    def lacking(self, numbers: Numbers) -> str | None:
        """Return why its sentences cannot be said of these numbers, or None."""
        return None

    def look(self, numbers: Numbers) -> list[str]:
        """The sentences that these numbers support."""
        raise NotImplementedError

    def tables(self, numbers: Numbers) -> list[Table]:
        """The numbers as tables."""
        return []

    def texts(self, numbers: Numbers) -> list[str]:
        """The numbers as tables that a library lays out."""
        return []

    def notes(self, numbers: Numbers) -> list[str]:
        """What has no number, and why."""
        return [f"{name} has no time: {reason}" for name, reason in numbers.get("lacking", {}).items()]

    def draw(self, numbers: Numbers) -> Picture | None:
        """The numbers as a picture."""
        return None


class Comparison(NamedTuple):
    """A sentence about how fast one implementation is beside another.

    what: the change from `than` to `ours`; or, with `other`, a noun for `ours`, and `other` one for `than`.
    """

    ours: str
    than: str
    what: str
    other: str = ""

    @property
    def key(self) -> str:
        return f"{self.ours}/{self.than}"

    def said(self, numbers: Numbers) -> str:
        found = Ratio(*numbers["ratios"][self.key])
        return compared(self.what, self.other, found) if self.other else gain(self.what, found)


def said(comparisons: Sequence[Comparison], numbers: Numbers) -> list[str]:
    """The sentences whose implementations both have a time."""
    return [each.said(numbers) for each in comparisons if each.key in numbers["ratios"]]


class Timings(Step):
    """A step that times implementations on one problem in turn, each checked before and after.

    names: those without which its sentences say nothing; also: others. times: how many calls a shown time is of, and unit
    what these are called.
    """

    operation = "conv2d"
    problem = ""
    names: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    seconds = 0.3, 1.5  # for each candidate, fast and usual
    times, unit = 1, "a call"

    def measure(self, setting: Setting) -> Generator[Event, None, Found]:
        problem = cell.kind(self.operation).find(self.problem)
        wanted = problem, [*self.names, *self.also], self.comparisons, setting.choose(*self.seconds)
        return Found((yield from timed(*wanted, self.operation)))

    def lacking(self, numbers: Numbers) -> str | None:
        return absent(numbers, self.names)

    def look(self, numbers: Numbers) -> list[str]:
        return said(self.comparisons, numbers)

    def tables(self, numbers: Numbers) -> list[Table]:
        return [times_table(numbers, self.times, self.unit)]

    def draw(self, numbers: Numbers) -> Picture | None:
        if not numbers["seconds"]:
            return None
        seconds = {name: [self.times * each for each in quartiles] for name, quartiles in numbers["seconds"].items()}
        return charts.dots(seconds, f"time of {self.unit}", f"Time of {self.unit} by implementation")


def timed(
    problem: Any,
    names: Sequence[str],
    comparisons: Sequence[Comparison],
    seconds: float,
    operation: str = "conv2d",
    count: int = 1,
    beside: Mapping[str, PreparedCell] = MappingProxyType({}),
) -> Generator[Event, None, Numbers]:
    """Check and time implementations in turn, on `count` threads; return their numbers.

    beside: what else is timed in turn, unchecked. {"problem": label, "seconds": {name: quartiles}, "ratios": {"ours/than":
    [ratio, low, high]}, "lacking": {name: reason}, "beside": {name: seconds}}
    """
    memory.keep_freed_memory()
    candidates = Candidates(problem, count, operation)
    for name in names:
        yield {"preparing": name}
        candidates.add(name, functools.partial(_checked, candidates, name))
    for share in candidates.in_turn(seconds, MIN_SAMPLES, dict(beside)):
        yield {"sampled": share}
    results = {result["name"]: result for result in candidates.results()}
    samples = {name: result["samples"] for name, result in results.items() if result["status"] == "ok"}
    ratios = {}
    for each in comparisons:
        if each.ours in samples and each.than in samples:
            ours, than = samples[each.ours], samples[each.than]
            ratios[each.key] = [float(np.median(than) / np.median(ours)), *stopping.interval(ours, than)]
    return {
        "problem": problem.label,
        "seconds": {name: np.percentile(each, [25, 50, 75]).tolist() for name, each in samples.items()},
        "ratios": ratios,
        "lacking": {name: result["reason"] for name, result in results.items() if result["status"] != "ok"},
        "beside": {name: float(np.median(candidates.measured[name].samples)) for name in beside},
    }


def _checked(candidates: Candidates, name: str) -> Any:
    return candidates.check(name, cell.load(name, candidates.task.operation))


def absent(numbers: Numbers, names: Sequence[str]) -> str | None:
    """Return why the first of these implementations that has no time has none; None if all have one."""
    return next((f"{name}: {numbers['lacking'][name]}" for name in names if name in numbers["lacking"]), None)


def median(numbers: Numbers, name: str) -> float:
    """Seconds of one call."""
    return numbers["seconds"][name][1]


def last_of(rounds: Iterable[Round], count: int) -> Generator[Event, None, Round]:
    """Take so many rounds of measuring, with progress; return what is known after the last."""
    for i, last in enumerate(itertools.islice(rounds, count), 1):
        found = last
        yield {"sampled": i / count}
    return found


def times_table(numbers: Numbers, times: int, unit: str) -> Table:
    """Times and speed-ups, the fastest first."""
    ranked = sorted(numbers["seconds"], key=lambda name: median(numbers, name))
    slowest = median(numbers, ranked[-1]) if ranked else 0.0
    rows = []
    for name in ranked:
        low, middle, high = (times * each for each in numbers["seconds"][name])
        rows.append([name, duration(middle), f"{duration(low)} to {duration(high)}", times_as(slowest * times / middle)])
    return Table(["implementation", unit, "quartiles", f"times as fast as {ranked[-1]}" if ranked else ""], rows)


def tell(story: str, step: Step, setting: Setting, cores: Sequence[int]) -> Generator[Event, None, Event]:
    """Measure a step; return all there is to say of it, as plain data. cores: those of the process at its start."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)  # the step before may have confined the process to one
    try:
        found = yield from step.measure(setting)
    except UNMEASURED as error:
        return told(story, step, None, _reason(error))
    return told(story, step, found, step.lacking(found.numbers))


def _reason(error: Exception) -> str:
    """Why there is no answer, in the error's own words if it has better ones than Python."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{error.name.partition('.')[0]} is not installed"
    return f"{error}" or type(error).__name__


def told(story: str, step: Step, found: Found | None, missing: str | None) -> Event:
    """All there is to say of a step, as plain data."""
    picture = None
    if found and not missing:
        try:
            picture = step.draw(found.numbers)
        except ImportError as error:
            found.texts.append(f"No picture: {_reason(error)}")
    return {
        "story": story,
        **{word: getattr(step, word) for word in ("name", "title", "guess", "command", "why", "would")},
        "missing": missing and missing.replace(UNAVAILABLE, ""),
        "sentences": step.look(found.numbers) if found and not missing else [],
        "tables": [table._asdict() for table in step.tables(found.numbers)] if found else [],
        "texts": [*step.texts(found.numbers), *found.texts] if found else [],
        "pictures": [asdict(each) for each in [*([picture] if picture else []), *(found.pictures if found else [])]],
        "systems": systems.of(story, step.name),
        "notes": [note.replace(UNAVAILABLE, "") for note in step.notes(found.numbers)] if found else [],
        "numbers": found.numbers if found else {},
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }
