"""Measures the cells of two builds round by round, where rounds are needed, until the verdicts stand or the time is up."""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from convbench.common import load, numbers
from convbench.gate import answers, judge
from convbench.gate.build import SIDES, Built
from convbench.gate.discover import Suite
from convbench.gate.failures import Reason
from convbench.gate.workers import Lost, Sampled, TimedCell, Workers

MAX_ROUNDS = 40  # rounds of a cell, whatever the time; then it stays undecided
# Of the time left, for the first round of as many cells as that is enough for, should all of them have to be confirmed.
OPENING_SHARE = 1 / (2 * judge.MIN_ROUNDS + 1)
USUAL_ROUNDS = 15  # rounds of all cells in the time without a budget; half of them are hardly ever needed
EXPECTED_ROUNDS = 1.5 * judge.MIN_ROUNDS  # rounds of all cells where hardly any has changed
ESTIMATE_SHARE = 0.1  # share of a budget for the estimate
MAX_FAILURES = 2  # rounds in which a cell may fail before it is given up: a neighbour on the machine may have killed it once


@dataclass
class CellState:
    """The state of a cell so far.

    ratios: log of head over base, or both values, a round each; confirming: those of the rounds after it came under
    suspicion, which alone decide. measured: by side, seconds of a call or the value, a round each. verdict: once decided.
    suspected: what the first rounds said. trace: the traceback behind the reason. rounds: those in which it was sampled,
    whatever came of it.
    """

    cell: TimedCell
    ratios: list[judge.Round] = field(default_factory=list)
    confirming: list[judge.Round] = field(default_factory=list)
    measured: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    verdict: str | None = None
    reason: str | None = None
    suspected: str | None = None
    finding: judge.Finding | None = None
    failures: dict[str, list[Reason]] = field(default_factory=lambda: {side: [] for side in SIDES})
    trace: str | None = None
    rounds: int = 0
    answer: str | None = None
    notes: set[str] = field(default_factory=set)

    @property
    def decisive(self) -> list[judge.Round]:
        """The rounds that decide the verdict."""
        return self.confirming if self.suspected else self.ratios

    @property
    def is_open(self) -> bool:
        """Whether it has been sampled, and not as often as any cell has to be before it can be judged."""
        return self.rounds > 0 and len(self.decisive) < judge.MIN_ROUNDS

    @property
    def unsure(self) -> bool:
        """Whether it is suspected and cannot be judged yet."""
        return self.suspected is not None and len(self.confirming) < judge.MIN_ROUNDS

    def add(self, found: Sampled) -> None:
        """Add the result of a round."""
        self.rounds += 1
        for side, reason in found.failed.items():
            self.failures[side].append(reason)
        if found.skipped:
            self._skip(found.skipped)
        if found.failed or found.skipped:
            return
        self.failures = {side: [] for side in self.failures}
        for side, measured in found.measured.items():
            self.measured[side].append(median(measured))
        values = self.measured["base"][-1], self.measured["head"][-1]
        self.decisive.append(values if self.cell.value_unit else _log_ratio(found))
        self.notes.update(found.notes)
        self.answer = self.answer or answers.compare(found.answers)

    def _skip(self, skipped: dict[str, str]) -> None:
        where = "on both sides" if len(skipped) == 2 else f"on the {next(iter(skipped))} alone"
        self.reason = f"{next(iter(skipped.values()))} ({where})"
        if "base" in skipped:
            self.verdict = "skipped"
        else:  # it works on the base, and the head skips it
            self.failures["head"] = [Reason(f"it is skipped, and on the base it is not: {skipped['head']}")] * MAX_FAILURES

    def exclude(self, unstable: str | None) -> None:
        """Decide on a cell that is not to be measured: what one side alone has, or what cannot be told apart."""
        if unstable:
            self.verdict, self.reason = "unstable", unstable
        elif "base" not in self.cell.places:
            self.verdict, self.reason = "new", "the base has no such parameters"
        elif "head" not in self.cell.places:
            self.verdict, self.reason = "gone", "the head has no such parameters"

    def give_up(self) -> None:
        """Decide on a cell that has failed too often on one side or on both."""
        base, head = (len(self.failures[side]) >= MAX_FAILURES for side in SIDES)
        if base and head:
            self.verdict, where, last = "not measured", "fails on both sides", self.failures["head"][-1]
        elif head:
            self.verdict, where, last = "broken", "works on the base and fails on the head", self.failures["head"][-1]
        elif base:
            self.verdict, where, last = "new", "works on the head and fails on the base", self.failures["base"][-1]
        else:
            return
        self.reason, self.trace = f"{where}: {last.words}", last.trace

    def judged(self, finding: judge.Finding) -> None:
        """Record the judgement of the decisive rounds: a change that the first rounds find has to be confirmed by others."""
        self.finding = finding
        if finding.verdict in ("regressed", "improved") and not self.suspected:
            self.suspected = finding.verdict
        elif finding.verdict != "ambiguous" or self.cell.value_unit:  # more rounds do not make the spread of values smaller
            self.verdict = finding.verdict


@dataclass
class Sampling:
    """The measurement of a suite's cells while it runs.

    budget: seconds, None for those of USUAL_ROUNDS. costs: by cell, the seconds of a round, as estimated; starting: those
    of its workers' start. slower: the share by which a cell of the head is artificially slowed down.
    """

    built: dict[str, Built]
    suite: Suite
    budget: float | None
    slower: Callable[[TimedCell], float] = lambda cell: 0.0
    seed: int = 0
    rounds: int = 0
    shortest_round: float = 0.0
    started: float = 0.0
    starting: float = 0.0
    costs: dict[str, float] = field(default_factory=dict)
    states: dict[str, CellState] = field(init=False)

    def __post_init__(self) -> None:
        self.states = {cell.name: CellState(cell) for cell in self.suite.cells}
        for state in self.states.values():
            state.exclude(self.suite.unstable.get(state.cell.benchmark))
        for side, reasons in self.suite.broken.items():
            for name in reasons.keys() & self.states.keys():
                self.states[name].failures[side] = [reasons[name]] * MAX_FAILURES
        self._settle()

    def run(self, work: Path) -> Iterator[None]:
        """Measure in a folder; yields whenever a cell has been sampled, and at the end of every round."""
        generator = random.Random(self.seed)
        self.started = self.started or time.monotonic()
        while due := self._due():
            begun = time.monotonic()
            yield from self._round(due, generator, work)
            self.shortest_round = min(self.shortest_round or math.inf, time.monotonic() - begun)
            self.rounds += 1
            self._settle()
            if self.budget is None:
                self.budget = time.monotonic() - self.started + (USUAL_ROUNDS - 1) * self.shortest_round
            yield
        self._finish()

    def estimate(self, work: Path) -> Iterator[None]:
        """Call each cell before the rounds, to know what they cost; yields after each. What fails or is skipped counts."""
        generator = random.Random(self.seed)
        self.started = time.monotonic()
        until = self.started + ESTIMATE_SHARE * self.left()
        due = [state for state in self.states.values() if state.verdict is None]
        for count in sorted({state.cell.cores for state in due}):
            group = [state for state in due if state.cell.cores == count]
            with Workers(self.built, _last_cores(count), generator) as workers:
                begun = time.monotonic()
                with contextlib.suppress(Lost):  # the first cell that needs them reports the loss
                    workers.start()
                self.starting += time.monotonic() - begun
                for state in generator.sample(group, len(group)):
                    begun = time.monotonic()
                    if begun < until or not self.costs:
                        found = self._sample(workers, state, work, once=True)
                        self.costs[state.cell.name] = time.monotonic() - begun + found.planned
                        if found.failed or found.skipped:
                            state.add(found)
                    yield

    @property
    def expectation(self) -> str:
        """How long all cells take, and how many of them the budget reaches, as estimated."""
        open_states = [state for state in self.states.values() if state.verdict is None]
        seconds = EXPECTED_ROUNDS * (self.starting + sum(map(self._cost, open_states)))
        reached = len(self._affordable(open_states, 1 / judge.MIN_ROUNDS))
        of_them = "all" if reached == len(open_states) else f"about {reached}"
        cells = numbers.many(len(self.states), "cell")
        return f"{cells}, about {numbers.duration(seconds)}; --budget reaches {of_them} of them"

    def _cost(self, state: CellState) -> float:
        """Seconds of a round of a cell: of one that was not estimated, the mean of the others."""
        return self.costs.get(state.cell.name, sum(self.costs.values()) / max(1, len(self.costs)))

    def _affordable(self, states: list[CellState], share: float) -> list[CellState]:
        """As many cells as one round of takes a share of the time left, the cheapest first, and one at least."""
        ordered = sorted(states, key=self._cost)
        costs = itertools.accumulate(map(self._cost, ordered))
        time_left = share * self.left()
        return ordered[: max(1, sum(cost <= time_left for cost in costs))]

    @property
    def settled(self) -> int:
        """How many cells have a verdict."""
        return sum(state.verdict is not None for state in self.states.values())

    def left(self) -> float:
        """Seconds left; infinite until the time of a round is known."""
        return math.inf if self.budget is None else self.budget - (time.monotonic() - self.started)

    def _is_due(self, state: CellState) -> bool:
        """Whether the cell is to be measured. When the time is up, only suspected cells are, until they can be judged."""
        return state.verdict is None and state.rounds < MAX_ROUNDS and (state.unsure or self.left() > 0)

    def _due(self) -> list[CellState]:
        """The cells of the next round: those that were begun, then others, and at last those that stay undecided."""
        due = [state for state in self.states.values() if self._is_due(state)]
        has_time = self.left() > judge.MIN_ROUNDS * self.shortest_round
        fresh = self._affordable([state for state in due if not state.rounds], OPENING_SHARE) if has_time else []
        return [s for s in due if s.is_open] or fresh or [s for s in due if s.rounds]

    def _round(self, due: list[CellState], generator: random.Random, work: Path) -> Iterator[None]:
        """Sample each of the cells once, in workers that those of one number of cores share.

        Only as many new cells are begun as there is time to judge.
        """
        until = time.monotonic() + OPENING_SHARE * self.left()
        begun = 0
        for count in sorted({state.cell.cores for state in due}):
            group = [state for state in due if state.cell.cores == count]
            with Workers(self.built, _last_cores(count), generator) as workers:
                for state in generator.sample(group, len(group)):
                    if self._is_due(state) and (state.rounds or not begun or time.monotonic() < until):
                        begun += 1
                        state.add(self._sample(workers, state, work))
                    yield

    def _sample(self, workers: Workers, state: CellState, work: Path, once: bool = False) -> Sampled:
        keep = None if state.answer or state.ratios or once else work
        try:
            return workers.sample(state.cell, self.slower(state.cell), keep, once)
        except Lost as lost:
            return Sampled(failed=dict.fromkeys(SIDES, Reason(str(lost))))

    def _settle(self) -> None:
        """Decide what can be decided after a round."""
        for state in self.states.values():
            if state.verdict is None:
                state.give_up()
        # Cells that are decided stay in the family: the level of the intervals depends on how many are judged together.
        first = {name: state.ratios for name, state in self.states.items() if len(state.ratios) >= judge.MIN_ROUNDS}
        again = {name: state.confirming for name, state in self.states.items() if len(state.confirming) >= judge.MIN_ROUNDS}
        suspected = {name for name, state in self.states.items() if state.suspected}
        for names, rounds in ((self.states.keys() - suspected, first), (suspected, again)):
            for name, finding in judge.judge(rounds, self.suite.smallest).items():
                if name in names and self.states[name].verdict is None:
                    self.states[name].judged(finding)

    def _finish(self) -> None:
        """Give every cell its last verdict: a change by all that was judged together, whenever its own rounds were enough."""
        states = {name: state for name, state in self.states.items() if state.verdict in (None, *judge.VERDICTS)}
        first = {name: state.ratios for name, state in states.items()}
        again = {name: state.confirming for name, state in states.items()}
        for name, finding in judge.decide(first, again, self.suite.smallest).items():
            states[name].finding, states[name].verdict = finding, finding.verdict
        for state in self.states.values():
            if state.verdict is not None:
                continue
            failed = next((reasons[-1] for reasons in state.failures.values() if reasons), None)
            if failed:
                state.verdict, state.reason, state.trace = "not measured", failed.words, failed.trace
            else:
                state.verdict, state.reason = (
                    "not reached",
                    "the time was up before it had enough rounds: increase --budget",
                )


def _log_ratio(found: Sampled) -> float:
    """A round's log-ratio: the median over the pairs of blocks that were timed one right after the other.

    Of the estimates tried it varies least between rounds: half as much as the ratio of the sides' fastest blocks.
    """
    return float(np.median(np.log(found.measured["head"]) - np.log(found.measured["base"])))


def _last_cores(count: int) -> tuple[int, ...]:
    """The cores to measure on: the last, since what else runs tends to sit on the first."""
    return tuple(load.core_numbers()[-count:])
