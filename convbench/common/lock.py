"""One measurement at a time, on a machine and in a project's folder."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import filelock

from convbench.common.faults import MachineFault

# Of all users and clones of this machine, so not in TMPDIR, of which each job of a cluster may have its own.
MACHINE = Path("/tmp" if os.name == "posix" else tempfile.gettempdir(), "convbench.lock")
OWN, EVERY_USER = 0o644, 0o666
OVERRIDE = "CONVBENCH_LOCK"  # for tests, in which one machine stands for several


@contextlib.contextmanager
def lock(work: Path, results: Path, wait: float = 0.0) -> Iterator[None]:
    """Allow one measurement at a time on this machine: two would share cores. It writes to a project's folders.

    wait: seconds to wait for another measurement to end. Otherwise as `folder`.
    """
    with folder(work, results), _held(Path(os.environ.get(OVERRIDE) or MACHINE), "on this machine", wait, mode=EVERY_USER):
        yield


@contextlib.contextmanager
def folder(work: Path, results: Path) -> Iterator[None]:
    """Allow one command at a time to write results to a project's folders, whichever machine measures them.

    work: the folder that holds the lock. results: where its results go. Both are made if they are missing.
    Raises MachineFault if another command holds the lock, or a folder cannot be written to.
    """
    try:
        work.mkdir(parents=True, exist_ok=True)
        # A project's own .gitignore does not list the folder. An existing file or link is kept.
        with contextlib.suppress(FileExistsError), (work / ".gitignore").open("x", encoding="utf-8") as file:
            file.write("*\n")
        results.mkdir(parents=True, exist_ok=True)
        with _held(work / "lock", "here"):
            yield
    except OSError as error:
        raise MachineFault(f"cannot write to {error.filename or work}: {error.strerror}") from None


@contextlib.contextmanager
def _held(file: Path, where: str, wait: float = 0.0, mode: int = OWN) -> Iterator[None]:
    try:
        with filelock.FileLock(file, timeout=wait, mode=mode):
            yield
    except filelock.Timeout:
        raise MachineFault(
            f"another `convbench` command is measuring {where}; two at once would disturb each other"
        ) from None
