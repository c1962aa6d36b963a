"""Which cells of a built commit are measured: those that are selected, without those that have results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from convbench.common.cells import Cell
from convbench.common.selection import Selection, check_names, select
from convbench.common.untrusted import Unreadable
from convbench.run import plan
from convbench.run.built_commit import BuiltCommit


def selected(built: BuiltCommit, selection: Selection, is_first: bool) -> list[Cell]:
    """The selected cells. Raises ClickException if the first commit that builds has none."""
    if is_first:
        check_names(built.known, selection.implementations)
    cells = select(built.known, selection)
    if is_first and not cells:
        if selection.quick and not any(benchmark.get("quick") for benchmark in built.known.values()):
            raise click.ClickException("this suite declares no short selection; leave out --quick")
        raise click.ClickException(
            "no cell is called that; names look like conv2d.ImageSize.time_conv2d('cpu.torch', '256x256')"
        )
    return cells


def possible(cells: list[Cell], built: BuiltCommit, selection: Selection, has_device: bool) -> list[Cell]:
    """Without a device, the cells that need none, unless cells were named."""
    if selection.patterns or selection.implementations or has_device:
        return cells
    return [cell for cell in cells if built.device(cell) != "cuda"]


def missing(cells: list[Cell], built: BuiltCommit, files: Iterable[Path], selection: Selection) -> list[Cell]:
    """The cells that a commit lacks in its results files, by the benchmarks of one that is built. Raises ClickException."""
    named = bool(selection.implementations)
    try:
        lacking = {cell for file in files for cell in plan.missing(cells, built.known, file, named=named)}
        return [cell for cell in cells if cell in lacking]
    except Unreadable as error:
        raise click.ClickException(f"{error}; move it away to measure the commit again") from None
