"""The goals of docs/speed.md, and whether stored times meet them. Measures nothing and prints nothing."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import click
import numpy as np

from convbench.common import numbers

THREADS = (1, 2)  # what the goals are judged for
BOUNDS = ("copy", "limit")  # lower bounds of the time, which are not answers themselves
PACKED = " packed once"  # behind an implementation's name: its weights packed beforehand
# Between processes a ratio differs by more than the samples of one tell. On two cores of an AMD EPYC, two commits of nearly
# the same code, nine of ten of 530 came out 0.85 to 1.22 times as large the second time. What is closer than that to what a
# goal wants of each problem is measured in several processes, and in more where these do not agree.
CLOSE, SEVERAL, MAX_PROCESSES = 1.25, 3, 5
# The same of how much longer ours takes than the fastest, which is never less than nothing: on two threads, of 54 of another
# process three were beyond a tenth though the first was not, and of 22 ten were not though the first was.
CLOSE_TO_FASTEST = 2.5
TRANSFORMS = ("winograd", "fft")  # families that round more than a sum of products

Key = tuple[str, int]  # a problem's label and a number of threads
Line = Mapping[str, Any]  # what one process found of a problem


@dataclass(frozen=True)
class Goal:
    """One thing that a row, or rows together, promise; benchmarks/commands/speed.toml says what each field means."""

    than: str = ""
    ours: str = ""
    geomean: float = 0.0
    each: float = 0.0
    problems: tuple[str, ...] = ()
    error: float = 0.0
    exact: bool = False
    near: float = 0.0
    share: float = 0.0

    def __str__(self) -> str:
        """The goal in words."""
        if self.exact:
            return "exact arithmetic"
        if self.error:
            return f"relative L2 error at most {self.error:g}"
        if self.near:
            return f"within {self.near:.0%} of the fastest on {self.share:.0%} of the problems"
        which = f"each of {len(self.problems)} problems" if self.problems else "each"
        parts = [f"geometric mean at least {self.geomean:g}x {self.than}"] * bool(self.geomean)
        parts += [f"{which} at least {self.each:g}x {self.than}"] * bool(self.each)
        return f"{self.ours}: " * bool(self.ours) + ", ".join(parts)


@dataclass(frozen=True)
class Row:
    """Problems of one operation that are judged together, by the times of one implementation of ours.

    baseline: what all candidates are compared with. beside and also: what else is measured and shown. seconds: of timed
    blocks for each candidate. within: how many times as long as the fastest those of `also` may take, or they are left out.
    """

    name: str
    what: str
    ours: str
    problems: tuple[str, ...]
    goals: tuple[Goal, ...]
    baseline: str
    seconds: float
    beside: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    operation: str = "conv2d"
    within: float = math.inf

    @property
    def compared(self) -> list[str]:
        """The candidates that ours is compared with, the baseline first."""
        return list(dict.fromkeys([self.baseline, *(goal.than for goal in self.goals if goal.than)]))


@dataclass(frozen=True)
class Overall:
    """What rows promise together: each counts the same, however many problems it has."""

    name: str
    rows: tuple[Row, ...]
    goals: tuple[Goal, ...]


@dataclass(frozen=True)
class Goals:
    """All rows, and rows together. A label stands for one problem of one operation."""

    rows: tuple[Row, ...]
    overall: tuple[Overall, ...] = ()

    def candidates(self, label: str) -> list[str]:
        """All candidates of a problem, whichever rows it is in."""
        names = []
        for row in self.of(label):
            names += [row.baseline, *row.beside]
            names += [goal.than for goal in row.goals if goal.than and label in (goal.problems or row.problems)]
            names += [row.ours, *row.also]
        for overall in self.overall:
            if any(label in row.problems for row in overall.rows):
                names += [name for goal in overall.goals for name in (goal.than, goal.ours) if name]
        return list(dict.fromkeys(names))

    def rivals(self, label: str) -> dict[str, Any]:
        """Which candidates that judge nothing on a problem are left out, if how slow: none that a row has at any speed."""
        rows = self.of(label)
        judged = {name for row in rows for name in (*row.compared, *row.beside, row.ours)}
        judged |= {name for overall in self.overall for goal in overall.goals for name in (goal.than, goal.ours)}
        judged |= {name for row in rows if math.isinf(row.within) for name in row.also}
        names = [name for name in self.candidates(label) if name not in judged]
        factor = max((row.within for row in rows if math.isfinite(row.within)), default=math.inf)
        return {"within": {"rivals": names, "factor": factor}} if names else {}

    def comparisons(self, label: str) -> list[tuple[str, str, float]]:
        """Ours, another, and how many times as fast some goal wants ours to be on this very problem at least."""
        found = []
        for ours, goal in self._promises(label):
            if goal.each:
                found.append((ours, goal.than, goal.each))
            if goal.near:
                others = [name for name in self.candidates(label) if name != ours and name not in BOUNDS]
                found += [(ours, name, 1 / (1 + goal.near)) for name in others]
        return list(dict.fromkeys(found))

    def processes(self, key: Key, times: Times) -> int:
        """The number of processes to measure a problem in, from the times so far: at least one."""
        wanted = 1
        for ours, goal in self._promises(key[0]):
            if goal.near:
                found, least, close = times.longer(*key, ours), goal.near, CLOSE_TO_FASTEST
            else:
                found, least, close = times.ratios(*key, goal.than, ours) if goal.each else [], goal.each, CLOSE
            if not found or not least / close < found[0] < least * close:
                continue
            agreed = len(found) < SEVERAL or not min(found[:SEVERAL]) < least <= max(found[:SEVERAL])
            wanted = max(wanted, SEVERAL if agreed else MAX_PROCESSES)
        return wanted

    def _promises(self, label: str) -> Iterator[tuple[str, Goal]]:
        """The goals for a problem, and the implementation that each goal is for."""
        for row in self.of(label):
            yield from ((goal.ours or row.ours, goal) for goal in row.goals if label in (goal.problems or row.problems))
        for overall in self.overall:
            for row in overall.rows:
                if label in row.problems:
                    yield from ((goal.ours or row.ours, goal) for goal in overall.goals)

    def of(self, label: str) -> list[Row]:
        """The rows that a problem is in."""
        return [row for row in self.rows if label in row.problems]

    def company(self, row: Row) -> list[Row]:
        """The row and those that promise something together with it."""
        return [row, *(other for overall in self.overall if row in overall.rows for other in overall.rows)]

    def only(self, names: tuple[str, ...]) -> tuple[Row, ...]:
        """The rows of these names, all if none is given. Raises ClickException for a name that no row has."""
        known = [row.name for row in self.rows]
        for name in names:
            if name not in known:
                raise click.ClickException(f"no row is called {name!r}; there are {', '.join(known)}")
        return tuple(row for row in self.rows if row.name in (names or known))


def load(path: Path) -> Goals:
    """Read the goals. Raises ClickException in one sentence for what is none."""
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
        entries, together = content.pop("row"), content.pop("overall", ())
        rows = {row.name: row for row in (_row({**content, **entry}) for entry in entries)}
        overall = tuple(
            Overall(entry["name"], tuple(rows[name] for name in entry["rows"]), tuple(map(_goal, entry["goals"])))
            for entry in together
        )
        return Goals(tuple(rows.values()), overall)
    except FileNotFoundError:
        raise click.ClickException(f"this suite has no goals: {'/'.join(path.parts[-3:])} is not there") from None
    except (ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"{'/'.join(path.parts[-3:])} cannot be read: {error!r}") from None


def _row(entry: dict[str, Any]) -> Row:
    lists = {name: tuple(entry.get(name, ())) for name in ("beside", "also")}
    lists["problems"] = tuple(entry["problems"])
    return Row(**{**entry, **lists, "goals": tuple(map(_goal, entry["goals"]))})


def _goal(entry: dict[str, Any]) -> Goal:
    return Goal(**{**entry, "problems": tuple(entry.get("problems", ()))})


@dataclass(frozen=True)
class CandidateResult:
    """The entry of a candidate in a problem's line, {} if it has not been measured."""

    entry: Mapping[str, Any]

    @property
    def status(self) -> str:
        """ "ok", "failed", "skipped" or "not measured"."""
        return self.entry.get("status", "not measured")

    @cached_property
    def quartiles(self) -> tuple[float, float, float]:
        """Of the samples, in seconds; the middle one is the median."""
        low, middle, high = np.percentile(self.entry["samples"], [25, 50, 75])
        return float(low), float(middle), float(high)

    @property
    def median(self) -> float:
        """Seconds; NaN if there is no time."""
        return self.quartiles[1] if self.status == "ok" else math.nan


class Times:
    """The stored lines of one commit on one machine, by problem and threads, one for each process that measured it.

    Ratios are worked out in each process by itself, where both sides met the machine in the same state.
    """

    def __init__(self, lines: Mapping[Key, Sequence[Line]]) -> None:
        self.lines = lines
        self._results: dict[tuple[str, int, str], list[CandidateResult]] = {}
        self._medians: dict[Key, list[dict[str, float]]] = {}  # of each process: of all candidates that have a time
        for key, several in lines.items():
            for line in several:
                results = {entry["name"]: CandidateResult(entry) for entry in line["cells"]}
                for name, result in results.items():
                    self._results.setdefault((*key, name), []).append(result)
                timed = {name: result.median for name, result in results.items() if result.status == "ok"}
                self._medians.setdefault(key, []).append(timed)

    def result(self, label: str, threads: int, name: str) -> CandidateResult:
        """The result of a candidate: the samples of all processes, or why one of them has none."""
        results = self._results.get((label, threads, name), [])
        timed = [result for result in results if result.status == "ok"]
        if len(timed) < 2 or any(result.status == "failed" for result in results):
            order = ("failed", "ok", "skipped")
            return min(results, key=lambda result: order.index(result.status), default=CandidateResult({}))
        worst = max(timed, key=lambda result: result.entry.get("relative_l2", 0.0))
        return CandidateResult({**worst.entry, "samples": [sample for each in timed for sample in each.entry["samples"]]})

    def names(self, label: str, threads: int) -> list[str]:
        """The candidates that were measured, in order."""
        return list(dict.fromkeys(entry["name"] for line in self.lines.get((label, threads), ()) for entry in line["cells"]))

    def ratios(self, label: str, threads: int, than: str, ours: str) -> list[float]:
        """How many times faster ours is than another, by medians, in each process that timed both; none where one failed."""
        if "failed" in (self.result(label, threads, name).status for name in (than, ours)):
            return []
        timed = self._medians.get((label, threads), ())
        return [medians[than] / medians[ours] for medians in timed if medians.keys() >= {than, ours}]

    def ratio(self, label: str, threads: int, than: str, ours: str) -> float:
        """How many times faster ours is than another, the median of all processes; NaN where either has no time."""
        return median(self.ratios(label, threads, than, ours) or [math.nan])

    def behind(self, label: str, threads: int, ours: str) -> float:
        """How many times as long ours takes as the fastest implementation, its weights packed in the call or never.

        This is the largest median ratio to any other, so that one implementation is the fastest in all processes: of several
        that are as fast, chance puts another first each time. One without a time in a process was skipped there as slow.
        Undefined for ours without a time.
        """
        several = [medians for medians in self._medians[label, threads] if ours in medians]
        rivals = {name for medians in several for name in medians if name not in BOUNDS and not name.endswith(PACKED)}
        return max(median(medians[ours] / medians.get(name, math.inf) for medians in several) for name in rivals)

    def longer(self, label: str, threads: int, ours: str) -> list[float]:
        """By what part of its time ours takes longer than the fastest, in each process that timed ours."""
        each = (Times({(label, threads): [line]}) for line in self.lines.get((label, threads), ()))
        return [one.behind(label, threads, ours) - 1 for one in each if one.result(label, threads, ours).status == "ok"]

    def undecided(self, label: str, threads: int, ours: str, least: float, than: str = "") -> bool:
        """Is `least` in the interval of how many times faster ours is than another? Of several: and is none clearly ahead?

        The interval is that of the samples of one process, or from the smallest to the largest ratio of several.
        """
        lines = self.lines.get((label, threads), ())
        every = [(one, other, low, high) for line in lines for one, other, low, high in line.get("intervals", ())]
        wanted = {than} if than else {name for _, name, *_ in every} - set(BOUNDS)
        found = {(one, other): (low, high) for one, other, low, high in every if one == ours and other in wanted}
        if len(lines) > 1:
            several = [self.ratios(label, threads, other, ours) for _, other in found]
            found = {pair: (min(ratios), max(ratios)) for pair, ratios in zip(found, several, strict=True) if ratios}
        return any(low < least < high for low, high in found.values()) and all(high > least for _, high in found.values())


@dataclass(frozen=True)
class Verdict:
    """Whether a goal is met, and the figure: status is "met", "missed" or "not judged"."""

    status: str
    figure: str

    def __str__(self) -> str:
        return f"{self.status}: {self.figure}"


def judge(rows: Sequence[Row], goal: Goal, times: Times, threads: int) -> Verdict:
    """Hold one goal of a row, or of rows together, against the times. Where a single one is missing it is not judged."""
    every = [(row, label) for row in rows for label in row.problems]
    wanted = [(row, label) for row, label in every if not goal.problems or label in goal.problems]
    lacking = {label for row, label in every if math.isnan(times.result(label, threads, goal.ours or row.ours).median)}
    if goal.than:
        lacking |= {label for _, label in wanted if math.isnan(times.result(label, threads, goal.than).median)}
    if lacking:
        return Verdict("not judged", f"no time for {len(lacking)} of {len({label for _, label in every})} problems")
    results = {label: times.result(label, threads, goal.ours or row.ours) for row, label in wanted}
    if goal.exact:
        families = sorted({str(result.entry.get("family")) for result in results.values()})
        return _verdict(not set(families) & set(TRANSFORMS), " and ".join(families))
    if goal.error:
        largest = max(results, key=lambda label: results[label].entry["relative_l2"])
        error = results[largest].entry["relative_l2"]
        return _verdict(error <= goal.error, f"at most {error:.1e} ({largest})")
    if goal.near:
        return _judge_near(goal, times, threads, results)
    ratios = {label: times.ratio(label, threads, goal.than, result.entry["name"]) for label, result in results.items()}
    means = [geometric_mean(ratios[label] for label in row.problems if label in ratios) for row in rows]
    mean, least = geometric_mean(means), min(ratios, key=ratios.__getitem__)
    under = [label for label, ratio in ratios.items() if ratio < goal.each]
    figure = f"{times_faster(mean)}, worst {times_faster(ratios[least])} ({least})"
    figure += f", {len(under)} of {len(ratios)} under {goal.each:g}x" * bool(under)
    figure += _too_close(results, under, times, threads, goal.each, goal.than)
    return _verdict(mean >= goal.geomean and not under, figure)


def _judge_near(goal: Goal, times: Times, threads: int, results: Mapping[str, CandidateResult]) -> Verdict:
    """On how many problems ours takes hardly longer than the fastest of all that were measured."""
    behind = {label: times.behind(label, threads, result.entry["name"]) for label, result in results.items()}
    beyond, worst = [label for label, each in behind.items() if each > 1 + goal.near], max(behind, key=behind.__getitem__)
    count = len(behind) - len(beyond)
    figure = f"{count} of {len(behind)}, at worst {numbers.significant(behind[worst], 3)} times as long ({worst})"
    figure += _too_close(results, beyond, times, threads, 1 / (1 + goal.near))
    return _verdict(count >= goal.share * len(behind), figure)


def _too_close(
    results: Mapping[str, CandidateResult], missed: Sequence[str], times: Times, threads: int, least: float, than: str = ""
) -> str:
    """How many of the missed problems and of the others may be so by noise alone, in words; "" where none."""
    close = {label for label, result in results.items() if times.undecided(label, threads, result.entry["name"], least, than)}
    among, others = len(close & set(missed)), len(close - set(missed))
    return f"; too close to tell: {among} of those that miss it, {others} of the others" * bool(close)


def mean(row: Row, than: str, ours: str, times: Times, threads: int) -> float:
    """The geometric mean of how many times faster ours is, over a row's problems; NaN where one lacks a time."""
    ratios = [times.ratio(label, threads, than, ours) for label in row.problems]
    return math.nan if any(map(math.isnan, ratios)) else geometric_mean(ratios)


def times_faster(ratio: float) -> str:
    """A ratio as it is shown."""
    return f"{numbers.significant(ratio, 3)}x"


def _verdict(met: bool, figure: str) -> Verdict:
    return Verdict("met" if met else "missed", figure)
