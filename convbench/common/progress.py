"""The bar of work that has a description and a share that is done."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn


def bar(console: Console) -> Progress:
    """A bar that goes when the work is done, and is not there at all where nobody sees it move."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
