"""The answer of a bisection, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from convbench.bisect.kept import Measured
from convbench.common.terminal import one_line
from convbench.gate.failures import NOT_MEASURED
from convbench.stored.history import Commit


@dataclass(frozen=True)
class Found:
    """What a bisection found.

    suspects: the commit, or several of which all but the last were skipped. before: the last fast commit, which `measured`
    compares the last suspect with. skipped: commits that could not be measured, and why. again: the command that repeats it.
    """

    cell: str
    suspects: Sequence[Commit]
    before: Commit
    measured: Measured
    skipped: Sequence[tuple[Commit, str]]
    again: str

    @property
    def exit_status(self) -> int:
        """0 for one commit that is slower than the one before; 4 where there is none, or one of several."""
        return 0 if self._slower and len(self.suspects) == 1 else NOT_MEASURED

    @property
    def _slower(self) -> bool:
        return self.measured.verdict == "regressed"


def show(found: Found, console: Console) -> None:
    """Print what was skipped, the commit or the suspects with their ratio, and the command that repeats it."""
    for line in _lines(found):
        console.print(one_line(line), highlight=False, soft_wrap=True)


def _lines(found: Found) -> list[str]:
    last = found.suspects[-1]
    lines = [f"skipped: {label(commit)}: {reason}" for commit, reason in found.skipped]
    if not found._slower:
        since = f"{last.hash[:10]} is not slower than {found.before.hash[:10]}, the last fast one"
        lines.append(f"no commit alone made {found.cell} slower: {since}: {found.measured.words}, {found.measured.verdict}")
    elif len(found.suspects) > 1:
        lines.append(f"one of these made {found.cell} slower, {found.measured.words}; those before the last were skipped:")
        lines += [f"    {label(commit)}" for commit in found.suspects]
    else:
        lines.append(f"{label(last)} made {found.cell} slower: {found.measured.words}")
    return [*lines, f"again: {found.again}"]


def label(commit: Commit) -> str:
    """A commit as a line names it."""
    return f"{commit.hash[:10]} {commit.subject}"
