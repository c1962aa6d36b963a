"""Finds the commit that made a cell slower: gates both ends of a range, then halves it against the good end."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rich.console import Console

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.bisect import ends
from convbench.bisect.answer import Found, label
from convbench.bisect.halving import Halving
from convbench.bisect.kept import Builds, Measured, Verdicts
from convbench.common import interrupts, lock, numbers, progress
from convbench.common.selection import Selection, exactly
from convbench.common.terminal import line, one_line
from convbench.gate import discover, formats, pipeline, report
from convbench.gate.build import Wanted
from convbench.gate.failures import Failure, HeadBroken, NothingInstalled, Usage
from convbench.gate.report import Report, Row
from convbench.gate.sample import Sampling
from convbench.stored.history import Commit

SLOW = {"regressed": True, "same": False, "improved": False}


class Gates(Protocol):
    """What measures pairs of commits: this machine, or a cluster. places: how many pairs at a time."""

    places: int

    def build(self, commit: str) -> None:
        """Build a commit. Raises HeadBroken where it does not build, and Failure."""

    def rows(self, pairs: Sequence[tuple[str, str]], suite: str, smallest: float | None) -> Sequence[Row | Failure]:
        """Gates of the cell between base and head of each pair; a pair that cannot be measured has its failure.

        suite: the commit whose suite measures. smallest: in place of the gate's smallest change. Raises Usage.
        """


def run(project: Project, cell: str, good: str | None, bad: str | None, wanted: Wanted, console: Console) -> Found:
    """Search for the commit, printing a line for each that is measured.

    Raises Usage for a wrong question, also where the cell is not slower, and Failure where both ends cannot be measured.
    """
    chain = ends.commits(project, cell, good, bad)
    try:
        with lock.lock(project.work, project.results), interrupts.termination():
            builds = Builds.of(project, wanted)
            builds.keep_only([commit.hash for commit in chain])
            return search(cell, chain, Here(builds, cell, console), builds.folder, console)
    except (KeyboardInterrupt, interrupts.Interrupted):
        raise Failure("interrupted: the same command resumes where it stopped") from None


def search(cell: str, chain: Sequence[Commit], gates: Gates, folder: Path, console: Console) -> Found:
    """Search in a chain of commits, the oldest first. folder: where verdicts are kept for the next call. Raises as `run`."""
    verdicts = Verdicts(folder / "verdicts.json", [cell, chain[0].hash, chain[-1].hash])
    found = _Search(cell, chain, gates, verdicts, console).run()
    verdicts.forget()
    return found


@dataclass
class Here:
    """Gates on this machine."""

    builds: Builds
    cell: str
    console: Console
    places: int = 1

    def build(self, commit: str) -> None:
        with progress.bar(self.console) as bar:
            bar.add_task(line(f"building {commit[:10]}"), total=None)
            self.builds.get(commit)

    def rows(self, pairs: Sequence[tuple[str, str]], suite: str, smallest: float | None) -> list[Row | Failure]:
        found: list[Row | Failure] = []
        for base, head in pairs:
            try:
                self.build(head)
                found.append(self._row(base, head, suite, smallest))
            except Failure as failure:
                found.append(failure)
        return found

    def _row(self, base: str, head: str, measures: str, smallest: float | None) -> Row:
        built = self.builds.pair(base, head, measures)
        work, project = self.builds.folder, self.builds.project
        suite = discover.with_caches(built, discover.discover(built, work, Selection((exactly(self.cell),)), project.conf))
        if not suite.cells:
            listed = (f"{name} {reason}: name another cell" for name, reason in suite.listed if self.cell.startswith(name))
            unknown = f"no cell is called {self.cell}: use a name from convbench gate's reports, with its parameters"
            raise Usage(next(listed, unknown))
        if smallest is not None:
            suite = dataclasses.replace(suite, smallest={self.cell: smallest})
        sampling = Sampling(built, suite, None)
        for _ in pipeline.rounds(sampling, work, self.console):
            pass
        (row,) = report.rows(list(sampling.states.values()), [])
        return row


@dataclass
class _Search:
    """A search in a chain of commits, the oldest first. reasons: by place, why a commit was skipped."""

    cell: str
    chain: Sequence[Commit]
    gates: Gates
    verdicts: Verdicts
    console: Console
    reasons: dict[int, str] = field(default_factory=dict)

    def run(self) -> Found:
        last = len(self.chain) - 1
        self._tell(f"GOOD {label(self.chain[0])}, BAD {label(self.chain[last])}, {numbers.many(last, 'commit')} after GOOD")
        slow_down = self._ends()
        halving = Halving(0, last)
        done = 0
        while (place := halving.next()) is not None:
            total = done + halving.left()
            # Half of the whole change, as a ratio, lies between the old level and the new one: what the judge asks is on
            # which side of it a commit is.
            said = self._candidate(place, halving.ahead(self.gates.places), math.sqrt(slow_down) - 1)
            slow = SLOW.get(said.verdict)
            if slow is None:
                self.reasons[place] = said.words if said.ratio is None else f"{said.words}, {said.verdict}"
            halving.tell(place, slow)
            done += 1
            verdict = "skipped" if slow is None else "bad" if slow else "good"
            self._tell(f"{done} of about {total}: {label(self.chain[place])}: {said.brief}, {verdict}")
        return self._found(halving)

    def _ends(self) -> float:
        """The ratio of both ends."""
        for name, commit in (("GOOD", self.chain[0]), ("BAD", self.chain[-1])):
            try:
                self.gates.build(commit.hash)
            except HeadBroken as broken:
                kind = HeadBroken if name == "BAD" else Failure
                raise kind(f"{name}, {commit.hash[:10]}, {broken.message}", broken.trace) from None
        said = self._measure(0, len(self.chain) - 1)
        self._tell(f"both ends: {said.words}, {said.verdict}")
        if said.ratio and said.verdict == "regressed":
            return said.ratio
        self.verdicts.forget()
        if SLOW.get(said.verdict) is False:
            raise Usage(f"{self.cell} is not slower at BAD than at GOOD: {said.words}; name another GOOD")
        kind = HeadBroken if said.verdict == "broken" else Failure
        raise kind(f"the gate of both ends gives no verdict, but {said.verdict}: {said.words}; name another GOOD")

    def _candidate(self, place: int, ahead: Sequence[int], smallest: float) -> Measured:
        """What is said of a commit against the good end; one that does not build or list its benchmarks is kept as such.

        ahead: this place and others that are measured at the same time, where there are machines for them.
        """
        pairs = {self._pair(0, other): (0, other) for other in ahead if len(ahead) > 1}
        lacking = {pair: places for pair, places in pairs.items() if pair not in self.verdicts.found}
        for pair, found in zip(lacking, self._rows(list(lacking.values()), smallest) if lacking else (), strict=True):
            if isinstance(found, Row):
                self.verdicts.add(pair, _measured(found))
        try:
            return self._measure(0, place, smallest)
        except (HeadBroken, NothingInstalled) as broken:
            said = Measured("skipped", reason=broken.message)
            self.verdicts.add(self._pair(0, place), said)
            return said

    def _measure(self, base: int, head: int, smallest: float | None = None) -> Measured:
        """A gate of the cell between two places, unless there was one. smallest: in place of the gate's smallest change."""
        pair = self._pair(base, head)
        if pair not in self.verdicts.found:
            (found,) = self._rows([(base, head)], smallest)
            if isinstance(found, Failure):
                raise found
            self.verdicts.add(pair, _measured(found))
        return self.verdicts.found[pair]

    def _rows(self, places: Sequence[tuple[int, int]], smallest: float | None) -> Sequence[Row | Failure]:
        pairs = [(self.chain[base].hash, self.chain[head].hash) for base, head in places]
        return self.gates.rows(pairs, self.chain[-1].hash, smallest)

    def _pair(self, base: int, head: int) -> str:
        return f"{self.chain[base].hash}..{self.chain[head].hash}"

    def _tell(self, said: str) -> None:
        self.console.print(one_line(said), highlight=False, soft_wrap=True)

    def _found(self, halving: Halving) -> Found:
        before, last = self.chain[halving.good], self.chain[halving.bad]
        said = self._measure(halving.good, halving.bad)
        pair = Report(before.hash, last.hash, machine.facts(), {})
        again = formats.again(pair, Row(self.cell, [], said.verdict))
        suspects = [self.chain[place] for place in halving.suspects]
        skipped = [(self.chain[place], reason) for place, reason in sorted(self.reasons.items())]
        return Found(self.cell, suspects, before, said, skipped, again)


def _measured(row: Row) -> Measured:
    low, high = row.interval or (None, None)
    return Measured(row.verdict, row.ratio, low, high, row.reason)
