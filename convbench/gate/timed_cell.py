"""A cell of a gate: what both sides are timed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from convbench.common.cells import spelling


@dataclass(frozen=True)
class TimedCell:
    """One combination of a benchmark's parameters, and how it is run.

    places: by side, the number of the combination among that side's own, by which asv_runner addresses it. Parameters may
    come from the code that is measured: what one side alone has, has a place there alone. timeout: seconds for any answer.
    cores: how many it runs on. home: the name of a folder on each side, of which it runs in a copy: that of its setup_cache,
    if it has one.
    """

    benchmark: str
    params: tuple[str, ...]
    places: Mapping[str, int]
    timeout: float
    sample_time: float
    cores: int
    home: Path

    @property
    def name(self) -> str:
        """As `--bench` has it: name(parameters)."""
        return spelling((self.benchmark, self.params))

    def id(self, side: str) -> str:
        """As asv_runner has it on a side."""
        return f"{self.benchmark}-{self.places[side]}" if self.params else self.benchmark

    def folder(self, side: str) -> Path:
        """Where it runs on a side."""
        return self.home.parent / side / self.home.name
