"""Measures the cells of two builds round by round, where rounds are needed, until the verdicts stand or the time is up."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from convbench.common import load
from convbench.gate import judge
from convbench.gate.build import SIDES, Built
from convbench.gate.discover import Cell, Suite
from convbench.gate.workers import Lost, Pair, Sampled

MOST = 40  # rounds of a cell, whatever the time: what is undecided then stays so
USUAL = 15  # rounds of all cells that the time is enough for, where nobody says how long; half of them are hardly ever needed
TRIES = 2  # rounds in which a cell may fail before it is given up: a neighbour on the machine may have killed it once


@dataclass
class State:
    """What is known of a cell so far.

    ratios: log of head over base, a round each; confirming: those of the rounds after it came under suspicion, which
    alone decide. verdict: once decided. suspected: what the first rounds said.
    """

    cell: Cell
    ratios: list[float] = field(default_factory=list)
    confirming: list[float] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    verdict: str | None = None
    reason: str | None = None
    suspected: str | None = None
    finding: judge.Finding | None = None
    failures: dict[str, list[str]] = field(default_factory=lambda: {side: [] for side in SIDES})
    answer: str | None = None
    notes: set[str] = field(default_factory=set)

    @property
    def decisive(self) -> list[float]:
        """The rounds that decide."""
        return self.confirming if self.suspected else self.ratios


@dataclass
class Session:
    """A gate while it runs.

    budget: seconds, None for those of USUAL rounds. slower: the share by which a cell of the head is slowed down on purpose.
    """

    built: dict[str, Built]
    suite: Suite
    smallest: dict[str, float]
    budget: float | None
    slower: Callable[[Cell], float] = lambda cell: 0.0
    seed: int = 0
    states: dict[str, State] = field(default_factory=dict)
    rounds: int = 0
    started: float = 0.0

    def run(self, work: Path) -> Iterator[tuple[int, int]]:
        """Measure; yields (cells settled, cells in all) whenever a cell has been sampled."""
        self.states = {cell.name: State(cell) for cell in self.suite.cells}
        for side, lost in self.suite.broken.items():
            for name in lost.keys() & self.states.keys():
                self.states[name].failures[side] = [lost[name]] * TRIES
        generator = random.Random(self.seed)
        self.started = time.monotonic()
        self._settle()
        while (todo := [state for state in self.states.values() if self._due(state)]) and self.rounds < MOST:
            for count in sorted({state.cell.cores for state in todo}):
                mine = [state for state in todo if state.cell.cores == count]
                with Pair(self.built, _last_cores(count), generator) as pair:
                    for state in generator.sample(mine, len(mine)):
                        if self._due(state):
                            self._sample(pair, state, work)
                        yield sum(state.verdict is not None for state in self.states.values()), len(self.states)
            self.rounds += 1
            self._settle()
            if self.budget is None:
                self.budget = USUAL * (time.monotonic() - self.started)
        self._finish()

    def _due(self, state: State) -> bool:
        """Is the cell to be measured? When the time is up, only what is suspected, until it can be judged."""
        unsure = state.suspected is not None and len(state.confirming) < judge.FIRST
        return state.verdict is None and (unsure or self.left() > 0)

    def left(self) -> float:
        """Seconds left; infinite while nobody knows how long a round takes."""
        return math.inf if self.budget is None else self.budget - (time.monotonic() - self.started)

    def _finish(self) -> None:
        for state in self.states.values():
            if state.verdict is None:
                state.verdict = "ambiguous" if state.finding else "not measured"
                if not state.finding:
                    state.reason = "the time was up before it had enough rounds"

    def _sample(self, pair: Pair, state: State, work: Path) -> None:
        keep = None if state.answer or state.ratios else work
        try:
            found, failed, skipped = pair.sample(state.cell, self.slower(state.cell), keep)
        except Lost as lost:
            found, failed, skipped = Sampled(), {"base": str(lost), "head": str(lost)}, {}
        for side, reason in failed.items():
            state.failures[side].append(reason)
        if skipped:
            where = "on both sides" if len(skipped) == 2 else f"on the {next(iter(skipped))} alone"
            state.verdict = "skipped" if len(skipped) == 2 or "base" in skipped else None
            state.reason = f"{next(iter(skipped.values()))} ({where})"
            if state.verdict is None:  # works on the base, and the head has given it up
                state.failures["head"] = [f"it is skipped, and on the base it is not: {skipped['head']}"] * TRIES
        if failed or skipped:
            return
        state.failures = {side: [] for side in state.failures}
        (state.confirming if state.suspected else state.ratios).append(_ratio(found))
        for side, seconds in found.seconds.items():
            state.seconds[side].append(median(seconds))
        state.notes.update(found.notes)
        if keep:
            state.answer = _compare(found)

    def _settle(self) -> None:
        """Decide what can be decided after a round."""
        live = {name: state for name, state in self.states.items() if state.verdict is None}
        for state in live.values():
            if any(len(reasons) >= TRIES for reasons in state.failures.values()):
                _give_up(state)
        first = {n: s.ratios for n, s in self.states.items() if len(s.ratios) >= judge.FIRST}
        again = {n: s.confirming for n, s in self.states.items() if len(s.confirming) >= judge.FIRST}
        for name, finding in judge.judge(first, self.smallest).items():
            state = self.states[name]
            if state.verdict or state.suspected:
                continue
            state.finding = finding
            if finding.verdict == "same":
                state.verdict = "same"
            elif finding.verdict != "ambiguous":
                state.suspected = finding.verdict
        for name, finding in judge.judge(again, self.smallest).items():
            state = self.states[name]
            if state.verdict is None:
                state.finding = finding
                if finding.verdict != "ambiguous":
                    state.verdict = finding.verdict


def _ratio(found: Sampled) -> float:
    """A round's log-ratio: the median over the pairs of blocks that were timed one right after the other.

    Of what was tried it varies least between rounds: by half as much as the ratio of the sides' fastest blocks.
    """
    return float(np.median(np.log(found.seconds["head"]) - np.log(found.seconds["base"])))


def _give_up(state: State) -> None:
    base, head = (state.failures[side][-1:] for side in SIDES)
    if len(state.failures["base"]) >= TRIES and len(state.failures["head"]) >= TRIES:
        state.verdict, state.reason = "not measured", f"fails on both sides: {head[0]}"
    elif len(state.failures["head"]) >= TRIES:
        state.verdict, state.reason = "broken", f"works on the base and fails on the head: {head[0]}"
    else:
        state.verdict, state.reason = "new", f"works on the head alone; on the base: {base[0]}"


def _compare(found: Sampled) -> str | None:
    """Say whether both sides returned the same array, None where one returned none."""
    if len(found.answers) < 2:
        return None
    try:
        arrays = [np.fromfile(file, np.dtype(kind)).reshape(shape) for kind, shape, file in found.answers.values()]
    except (TypeError, ValueError, OSError):  # a format that NumPy does not have
        return None
    base, head = arrays
    if base.shape != head.shape or base.dtype != head.dtype:
        return f"changed: {base.dtype}{list(base.shape)} became {head.dtype}{list(head.shape)}"
    if base.tobytes() == head.tobytes():
        return "same"
    with np.errstate(all="ignore"):
        finite = np.isfinite(base) & np.isfinite(head)
        if not np.array_equal(base[~finite], head[~finite], equal_nan=base.dtype.kind in "fc"):
            return "changed: NaN or infinite where it was not, or no longer"
        largest = float(np.abs(base[finite]).max(initial=0)) or 1.0
        difference = float(np.abs(head[finite].astype(complex) - base[finite]).max(initial=0))
    return f"changed: by at most {difference / largest:.1e} of the largest value" if difference else "same"


def _last_cores(count: int) -> tuple[int, ...]:
    """The cores to measure on: the last, since what else runs tends to sit on the first."""
    return tuple(load.core_numbers()[-count:])
