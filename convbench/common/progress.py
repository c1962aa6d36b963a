"""Progress bars, removed when the work is done; lines or nothing if the output is not a terminal."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

SILENT_SECONDS = 9.0  # seconds until a line shows the progress, if the output is not a terminal


@contextlib.contextmanager
def told(console: Console, description: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """A bar, or a line now and then if the output is not a terminal. Yields a function that updates it."""
    start, ended = time.monotonic(), threading.Event()
    with _bar(console, TimeElapsedColumn()) as shown:
        task = shown.add_task(description, total=total)

        def tell() -> None:
            while not ended.wait(SILENT_SECONDS):
                said = f"{shown.tasks[task].description}, {time.monotonic() - start:.0f} s"
                console.print(said, highlight=False, markup=False)

        if not console.is_terminal:
            threading.Thread(target=tell, daemon=True).start()
        try:
            yield functools.partial(shown.update, task)
        finally:
            ended.set()


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
