"""What ends a gate before all verdicts are found: exceptions that carry the exit status, and the statuses themselves."""

from __future__ import annotations

import click

REGRESSED, USAGE, HEAD_BROKEN, NOT_MEASURED = 1, 2, 3, 4


class Failure(click.ClickException):
    """A gate that cannot pass, for a reason that is not a verdict."""

    exit_code = NOT_MEASURED


class HeadBroken(Failure):
    """A gate that fails because of the head, for a reason that is not a verdict."""

    exit_code = HEAD_BROKEN


class Usage(click.ClickException):
    """A question that cannot be answered as it was put; the gate writes no report."""

    exit_code = USAGE


def caused_by(cause: str, message: str) -> Failure:
    """The failure whose cause is "base", "head" or anything else."""
    return HeadBroken(message) if cause == "head" else Failure(message)
