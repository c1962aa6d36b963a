"""Progress bars, which go when the work is done and are not shown where the output is no terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def bar(console: Console) -> Progress:
    """A bar of work that has a description and a share that is done."""
    return _bar(console)


def counting_bar(console: Console) -> Progress:
    """A bar that also counts, tells the time taken and left, and shows the text in the field `now`."""
    return _bar(
        console,
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}", markup=False),
    )


def _bar(console: Console, *columns: ProgressColumn) -> Progress:
    description = TextColumn("{task.description}", markup=False)
    return Progress(description, BarColumn(), *columns, console=console, transient=True, disable=not console.is_terminal)
