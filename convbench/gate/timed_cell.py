"""A cell of a gate: what both sides are timed on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from convbench.common.cells import spelling


@dataclass(frozen=True)
class TimedCell:
    """One combination of a benchmark's parameters, and how it is run.

    id: as asv_runner addresses it. timeout: seconds for any answer. cores: how many it runs on. home: the name of the
    folder, one on each side, in which it runs: that of its setup_cache, if it has one.
    """

    benchmark: str
    params: tuple[str, ...]
    id: str
    timeout: float
    sample_time: float
    cores: int
    home: Path

    @property
    def name(self) -> str:
        """As `--bench` has it: name(parameters)."""
        return spelling((self.benchmark, self.params))

    def folder(self, side: str) -> Path:
        """Where it runs on a side."""
        return self.home.parent / side / self.home.name
