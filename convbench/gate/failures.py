"""Exit statuses of a gate, and exceptions that end it before all verdicts are found."""

from __future__ import annotations

from dataclasses import dataclass

import click

MAX_TRACE = 4000  # characters of a traceback, from its end
SAID_LINES = 3  # lines of an exception, from its informative end
MAX_SAID = 500  # characters of them

REGRESSED, USAGE, HEAD_BROKEN, NOT_MEASURED = 1, 2, 3, 4


class Failure(click.ClickException):
    """A gate that cannot pass, for a reason that is not a verdict.

    trace: the traceback of an exception that was not foreseen.
    """

    exit_code = NOT_MEASURED

    def __init__(self, message: str, trace: str | None = None) -> None:
        super().__init__(message)
        self.trace = trace and trace[-MAX_TRACE:]


class HeadBroken(Failure):
    """A gate that fails because of the head, for a reason that is not a verdict."""

    exit_code = HEAD_BROKEN


class NothingInstalled(Failure):
    """A side whose build contains no file of a package."""


class Usage(click.ClickException):
    """Wrong use; the gate writes no report."""

    exit_code = USAGE


class EmptyShard(Usage):
    """There are fewer cells than shards."""


@dataclass(frozen=True)
class Reason:
    """Why a cell failed, in words, and the traceback where an exception was the cause."""

    words: str
    trace: str | None = None

    @classmethod
    def printed(cls, text: str, otherwise: str) -> Reason:
        """An exception's own last lines, of all that a process printed. otherwise: the words where it printed nothing."""
        lines = [line.rstrip() for line in text.splitlines() if line.strip()]
        said = len(lines)
        while said and not lines[said - 1].startswith((" ", "Traceback ")):
            said -= 1
        words = " / ".join(lines[said:][-SAID_LINES:])[-MAX_SAID:]
        trace = "Traceback (most recent call last)" in text
        return cls(words or otherwise, text[-MAX_TRACE:] if trace else None)


def caused_by(cause: str, message: str, trace: str | None = None) -> Failure:
    """The failure whose cause is "base", "head" or anything else."""
    return HeadBroken(message, trace) if cause == "head" else Failure(message, trace)
