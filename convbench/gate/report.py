"""The report of a gate: a row for each cell, worst first, the exit status and the summary."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from types import MappingProxyType
from typing import Any

from convbench.common.cells import spelling
from convbench.gate.accept import Acceptance, find
from convbench.gate.build import SIDES
from convbench.gate.failures import HEAD_BROKEN, NOT_MEASURED, REGRESSED, Failure
from convbench.gate.judge import Finding
from convbench.gate.sample import CellState
from convbench.gate.workers import TimedCell

SCHEMA = 3  # of the JSON; 1 had no shards, 2 times alone
MISSING = {"not measured", "unstable", "not reached"}  # verdicts of cells that should have been measured
ORDER = (
    "broken",
    "regressed",
    "not measured",
    "not reached",
    "unstable",
    "ambiguous",
    "improved",
    "new",
    "gone",
    "same",
    "skipped",
    "untouched",
)
MEANING = {
    0: "passes",
    REGRESSED: "fails: cells have regressed",
    HEAD_BROKEN: "fails: a benchmark that works on the base breaks on the head",
    NOT_MEASURED: "cannot pass: cells that should have been measured were not",
}


class Kind(enum.Enum):
    """What a gate compares: two commits; a commit and the working tree; two installed builds."""

    COMMITS = "commits"
    DIRTY = "uncommitted changes"
    INSTALLED = "installed"


@dataclass(frozen=True)
class Row:
    """A cell as reports have it.

    before, after: seconds of a call, of the median round split by the ratio; or values, in their unit. ratio: head over base,
    with its interval. log_ratios: of the rounds of a timed cell, the first and the confirming ones. values: of the rounds of
    others, base and head. touched: the difference for which it was measured, None if that is not known. measured_on: which of
    several has measured it.
    """

    benchmark: str
    params: list[str]
    verdict: str
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    interval: list[float] | None = None
    rounds: int = 0
    reason: str | None = None
    accepted: str | None = None
    traceback: str | None = None
    answer: str | None = None
    notes: list[str] = field(default_factory=list)
    log_ratios: dict[str, list[float]] = field(default_factory=dict)
    unit: str = "seconds"
    values: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    touched: str | None = None
    measured_on: str | None = None

    @property
    def name(self) -> str:
        return spelling((self.benchmark, tuple(self.params)))

    @property
    def module(self) -> str:
        """The suite's module: what stands before the function, without a class, which begins with a capital."""
        *module, _ = self.benchmark.split(".")
        return ".".join(module[:-1] if module[1:] and module[-1][:1].isupper() else module) or self.benchmark


@dataclass(frozen=True)
class Report:
    """A gate's report while it runs and when it has ended.

    base, head: full hashes, or paths of what is installed. failure: why it cannot pass, beside the verdicts. listed: what is
    not measured and not missing. proposed: entries of the head's file of accepted regressions that accept nothing here, since
    another file was named; proposal_error: why that file could not be read. others: the environments of the configuration in
    which nothing was measured. differences: Pythons and packages that are not alike on both sides. partial: it may pass
    without the cells that it had no time for. shard: which part of the cells it has, as "2/5". smallest: the smallest
    changes worth reporting, of cells that have one of their own. identical: both sides have installed the same, but for the
    files `ignored`, which differ in the commit that they name.
    """

    base: str
    head: str
    machine: dict[str, str]
    settings: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    listed: list[tuple[str, str]] = field(default_factory=list)
    proposed: list[Acceptance] = field(default_factory=list)
    proposal_error: str | None = None
    failure: Failure | None = None
    rounds: int = 0
    seconds: float = 0.0
    environment: str | None = None
    others: tuple[str, ...] = ()
    kind: Kind = Kind.COMMITS
    differences: tuple[str, ...] = ()
    partial: bool = False
    shard: str | None = None
    smallest: Mapping[str, float] = field(default_factory=dict)
    identical: bool = False
    ignored: tuple[str, ...] = ()

    def label(self, side: str) -> str:
        """The readable name of a side."""
        of = self.base if side == "base" else self.head
        if self.kind is Kind.INSTALLED:
            return of
        return f"{of[:10]}, uncommitted changes" if self.kind is Kind.DIRTY and side == "head" else of[:10]

    def failed(self, failure: Failure) -> Report:
        """This report of a gate that ended with a failure."""
        return dataclasses.replace(self, failure=failure)

    @property
    def exit_status(self) -> int:
        """The exit status: the first that applies."""
        verdicts = {row.verdict for row in self.rows if not row.accepted}
        if "broken" in verdicts or (self.failure and self.failure.exit_code == HEAD_BROKEN):
            return HEAD_BROKEN
        if "regressed" in verdicts:
            return REGRESSED
        if (
            self.failure
            or verdicts & MISSING - ({"not reached"} if self.partial else set())
            or not any(row.rounds or row.verdict == "untouched" for row in self.rows)
        ):
            return NOT_MEASURED
        return 0

    @property
    def counts(self) -> Counter:
        """Cells by verdict, and those accepted."""
        return Counter("accepted" if row.accepted else row.verdict for row in self.rows)

    @property
    def summary(self) -> str:
        """One line: what was found, in how long, and what it means."""
        found = counted(self.counts) or "no cell"
        status = self.exit_status
        meaning = MEANING[status]
        if self.failure and status == self.failure.exit_code:
            meaning = f"{meaning.partition(':')[0]}: {self.failure.message.partition(':')[0]}"
        return f"{found}; {self.rounds} rounds in {self.seconds:.0f} s. The gate {meaning}."


def counted(counts: Counter) -> str:
    """How many cells have which verdict, worst first."""
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("accepted", *ORDER) if counts[verdict])


def in_order(found: Sequence[Row]) -> list[Row]:
    """The cells, worst first."""
    return sorted(found, key=lambda row: (ORDER.index(row.verdict), -(row.ratio or 0.0), row.name))


def rows(
    states: Sequence[CellState], acceptances: Sequence[Acceptance], touched: Mapping[str, str] = MappingProxyType({})
) -> list[Row]:
    """The cells, worst first. touched: by name, the difference for which a cell was measured."""
    found = [_row(state, acceptances) for state in states]
    return in_order([dataclasses.replace(row, touched=touched.get(row.name)) for row in found])


def untouched(cells: Sequence[TimedCell]) -> list[Row]:
    """The cells that no difference touches."""
    return in_order([Row(cell.benchmark, list(cell.params), "untouched") for cell in cells])


def _row(state: CellState, acceptances: Sequence[Acceptance]) -> Row:
    verdict = state.verdict or "not measured"
    acceptance = find(state.cell.name, acceptances) if verdict == "regressed" else None
    finding = state.finding if verdict not in ("broken", "new", "gone", "skipped") else None
    ratio, interval = change(finding)
    before, after = _before_and_after(state, ratio)
    rounds: dict[str, list[Any]] = {"first": list(state.ratios), "confirming": list(state.confirming)}
    return Row(
        state.cell.benchmark,
        list(state.cell.params),
        verdict,
        before,
        after,
        ratio,
        interval,
        len(state.ratios) + len(state.confirming),
        state.reason if state.verdict else "it was not finished",
        str(acceptance) if acceptance else None,
        state.trace if state.verdict else None,
        state.answer,
        sorted(state.notes),
        {} if state.cell.value_unit else rounds,
        state.cell.value_unit or "seconds",
        rounds if state.cell.value_unit else {},
    )


def change(finding: Finding | None) -> tuple[float | None, list[float] | None]:
    """The ratio and its interval as a row has them."""
    if not finding or math.isnan(finding.estimate.ratio):
        return None, None
    return finding.estimate.ratio, [finding.estimate.low, finding.estimate.high]


def _before_and_after(state: CellState, ratio: float | None) -> tuple[float | None, float | None]:
    """Seconds of a call before and after, or the values, of the rounds that decide."""
    count = len(state.decisive)
    if not count:
        return None, None
    base, head = (state.measured[side][-count:] for side in SIDES)
    if ratio is None or state.cell.value_unit:
        return median(base), median(head)
    # Rounds differ by more than the two sides of one: medians of each side alone would not have the ratio of the rounds.
    middle = median(math.sqrt(b * h) for b, h in zip(base, head, strict=True))
    return middle / math.sqrt(ratio), middle * math.sqrt(ratio)
