"""Reads untrusted files: regular files of limited size, with one sentence for each fault."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from convbench.common import terminal

LARGEST = 64 << 20  # bytes: ten times the largest results file of the suites we know
LONGEST = 200  # characters of a reason
# Exceptions that unexpected content can cause.
FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


# Without waiting, since a pipe may have no writer. Windows knows the last of these alone; there a link is looked for before.
FLAGS = 0
for flag in ("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    FLAGS |= getattr(os, flag, 0)


class Unreadable(Exception):
    """A file cannot be read; the message is one line with its name and the reason."""

    def __init__(self, text: str) -> None:
        super().__init__(terminal.line(text))


class Malformed(ValueError):
    """The content of a file is invalid; the message says what is wrong, without the file's name."""


def name(path: Path) -> str:
    """A file's name in messages: its folder and its name."""
    return f"{path.parent.name}/{path.name}"


def read_bytes(path: Path, limit: int = LARGEST) -> bytes:
    """The content of a regular file. Raises Unreadable, also for a link, a pipe, a device and a file beyond the limit."""
    try:
        if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        with open(os.open(path, FLAGS), "rb") as file:  # noqa: PTH123
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise Unreadable(f"{name(path)} is unreadable: it is not a regular file")
            content = file.read(limit + 1)
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise Unreadable(f"{name(path)} is unreadable: {why}") from error
    if len(content) > limit:
        raise Unreadable(f"{name(path)} is unreadable: it has more than {limit >> 10} KiB")
    return content


def read_json(path: Path) -> Any:
    """The content of a JSON file. Raises Unreadable."""
    with understanding(path):
        return json.loads(read_bytes(path).decode())


@contextlib.contextmanager
def understanding(path: Path) -> Iterator[None]:
    """Raise Unreadable if the content of a file makes the code inside fail: a list in place of a number, for example."""
    try:
        yield
    except FAULTS as error:
        kind = "" if isinstance(error, Malformed) else f"{type(error).__name__}: "
        raise Unreadable(f"{name(path)} is unreadable: {kind}{' '.join(str(error).split())[:LONGEST]}") from error


def warn(error: Unreadable) -> None:
    """Warn about a skipped file."""
    print(f"skipped: {error}", file=sys.stderr)
