"""Progress bars, shown only on terminals and removed when the work is done."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def bar(console: Console) -> Progress:
    """A bar with a description and the share of the work that is done."""
    return _bar(console)


def counting_bar(console: Console) -> Progress:
    """A bar with a count, the elapsed and the remaining time, and the text of the field `now`."""
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
