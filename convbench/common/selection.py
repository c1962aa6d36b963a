"""The user's selection of cells: by name, by implementation, or a short selection."""

from __future__ import annotations

import difflib
import fnmatch
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import click

from convbench.common.cells import Cell, plain, spelling


@dataclass(frozen=True)
class Selection:
    """The user's selection: regular expressions on "name(parameters)", patterns of implementations, a short run or all."""

    patterns: tuple[str, ...] = ()
    implementations: tuple[str, ...] = ()
    quick: bool = False

    def names(self, implementation: str) -> bool:
        """Whether an implementation is selected."""
        return not self.implementations or any(fnmatch.fnmatchcase(implementation, one) for one in self.implementations)

    def finds(self, cell: Cell) -> bool:
        """Whether a cell is selected, whatever its implementation."""
        return not self.patterns or any(re.search(pattern, spelling(cell)) for pattern in self.patterns)


def exactly(cell: str) -> str:
    """The pattern that one cell alone matches, by its name(parameters)."""
    return f"^{re.escape(cell)}$"


def select(benchmarks: dict[str, dict[str, Any]], selection: Selection) -> list[Cell]:
    """The selected cells, in the order of benchmarks.json; limits of the machine first, since figures need them."""
    cells = []
    for name, benchmark in sorted(benchmarks.items(), key=lambda item: "ceilings" not in item[1]):
        for params in itertools.product(*benchmark.get("params", [])):
            if _selected(name, params, benchmark, selection):
                cells.append((name, params))
    return cells


def _selected(name: str, params: tuple[str, ...], benchmark: dict[str, Any], selection: Selection) -> bool:
    named = dict(zip(benchmark.get("param_names", []), params, strict=False))
    if "ceilings" in benchmark:
        # Limits are measured unless cells are named, since figures need them; a short run needs those of one thread.
        if selection.quick and named.get("threads", "1") != "1":
            return False
        if not selection.patterns:
            return True
    elif selection.quick and not _in_short_selection(named, benchmark):
        return False
    if "implementation" in named:
        own = plain(named["implementation"])
        if not selection.names(own):
            return False
        asked = selection.implementations or any(own in pattern for pattern in selection.patterns)
        declared = benchmark.get("implementations", {}).get(own, {})
        if not asked and (declared.get("on_request") or (selection.quick and declared.get("full_only"))):
            return False
    return selection.finds((name, params))


def _in_short_selection(named: dict[str, str], benchmark: dict[str, Any]) -> bool:
    """Whether a cell is on its axis's short list, with the first value of every parameter after that."""
    axis, first = benchmark.get("axis", ""), {}
    for name, values in zip(benchmark.get("param_names", []), benchmark.get("params", []), strict=False):
        if name not in ("implementation", axis):
            first[name] = values[0]
    return named.get(axis) in benchmark.get("quick", []) and all(named[name] == value for name, value in first.items())


def check_names(benchmarks: dict[str, dict[str, Any]], patterns: Iterable[str]) -> None:
    """Raise ClickException, with near matches, for a pattern that fits no implementation of the suite."""
    known = sorted(
        {
            plain(value)
            for benchmark in benchmarks.values()
            for name, values in zip(benchmark.get("param_names", []), benchmark.get("params", []), strict=False)
            if name == "implementation"
            for value in values
        }
    )
    for pattern in patterns if known else ():
        if not fnmatch.filter(known, pattern):
            near = difflib.get_close_matches(pattern, known, cutoff=0.5) or known
            raise click.ClickException(f"no implementation is called {pattern!r}; available: {', '.join(near)}")
