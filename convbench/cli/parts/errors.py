"""Prints errors as one sentence and sets the exit status."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TypeVar

import click

from convbench.common import faults
from convbench.common.untrusted import Unreadable

Result = TypeVar("Result")


def readable(read: Callable[..., Result], *arguments) -> Result:
    """Return the result of `read`. Raises ClickException if a results file is unreadable."""
    try:
        return read(*arguments)
    except Unreadable as error:
        raise click.ClickException(str(error)) from None


def require_linux(command: str) -> None:
    """Raise ClickException with exit status 2 on other systems."""
    if sys.platform != "linux":
        error = click.ClickException(
            f"Linux only: `convbench {command}` pins processes to cores and ends them as sessions; "
            "table, compare, history, export and dashboard work on this system"
        )
        error.exit_code = 2
        raise error


@contextlib.contextmanager
def mistakes_end_with_2() -> Iterator[None]:
    """Turn exit status 1 into 2, in commands that use 1 to report slower cells."""
    from convbench.stored import compare

    try:
        yield
    except click.ClickException as error:
        if error.exit_code == 1:
            raise compare.Impossible(error.message) from None
        raise
    except KeyboardInterrupt:
        sys.exit(130)  # as shells have it
    except Exception as error:
        raise compare.Impossible(faults.sentence(error)) from None
