"""Ctrl-C and SIGTERM end a command in one sentence."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator

import click


class Interrupted(Exception):
    """The user pressed Ctrl-C, or the process received SIGTERM."""


@contextlib.contextmanager
def termination() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does."""

    def interrupt(*_):
        raise Interrupted

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextlib.contextmanager
def interruptible(say: Callable[[], str]) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the block with one sentence that says what is kept."""
    with termination():
        try:
            yield
        except (KeyboardInterrupt, Interrupted):
            raise click.ClickException(f"interrupted: {say()}") from None
