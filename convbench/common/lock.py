"""One measurement at a time, on a machine and in a project's folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import filelock

from convbench.common.load import MachineFault

OVERRIDE = "CONVBENCH_LOCK"  # for tests, in which one machine stands for several: another name of the machine's lock
POLL_SECONDS = 0.1


_kept: list[socket.socket] = []  # the lock of this machine, if it is held until this process ends


@contextlib.contextmanager
def lock(work: Path, results: Path) -> Iterator[None]:
    """Allow one measurement at a time on this machine: two would share cores. It writes to a project's folders.

    Otherwise as `folder`.
    """
    with folder(work, results), _machine():
        yield


def keep(wait: float) -> None:
    """Hold the lock of this machine until this process ends; `lock` then asks for it no more.

    wait: seconds to wait for another measurement to end, after which it raises MachineFault.
    """
    if sys.platform == "linux":
        _kept.append(_bound(time.monotonic() + wait))


@contextlib.contextmanager
def _machine() -> Iterator[None]:
    """Hold the lock of this machine. Elsewhere than on Linux nothing is measured in turn."""
    if sys.platform != "linux" or _kept:
        yield
        return
    with _bound(time.monotonic()):
        yield


def _bound(until: float) -> socket.socket:
    """The lock of this machine, whichever user and clone asks: a name of Linux's for sockets, which needs no folder that all
    may write to, and goes with its process (unix(7), abstract addresses). Raises MachineFault after a moment.
    """
    name = hashlib.sha256(os.environ.get(OVERRIDE, "").encode()).hexdigest()
    held = socket.socket(socket.AF_UNIX)
    while True:
        try:
            held.bind(f"\0convbench-{name}")
            return held
        except OSError:
            if time.monotonic() > until:
                held.close()
                raise _taken("on this machine") from None
        time.sleep(POLL_SECONDS)


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
        with filelock.FileLock(work / "lock", timeout=0):
            yield
    except filelock.Timeout:
        raise _taken("here") from None
    except OSError as error:
        raise MachineFault(f"cannot write to {error.filename or work}: {error.strerror}") from None


def _taken(where: str) -> MachineFault:
    return MachineFault(f"another `convbench` command is measuring {where}; two at once would disturb each other")
