"""One measurement at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click
import filelock


@contextlib.contextmanager
def lock(work: Path, results: Path) -> Iterator[None]:
    """Allow one run at a time: two would share cores.

    work: the folder that holds the lock. results: where its results go. Both are made if they are missing.
    Raises ClickException if another run holds the lock, or a folder cannot be written to.
    """
    try:
        work.mkdir(parents=True, exist_ok=True)
        # A project's own .gitignore does not list the folder. An existing file or link is kept.
        with contextlib.suppress(FileExistsError), (work / ".gitignore").open("x", encoding="utf-8") as file:
            file.write("*\n")
        results.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(work / "lock", timeout=0):
            yield
    except filelock.Timeout:
        raise click.ClickException(
            "another `convbench` command is measuring here; two at once would disturb each other"
        ) from None
    except OSError as error:
        raise click.ClickException(f"cannot write to {error.filename or work}: {error.strerror}") from None
