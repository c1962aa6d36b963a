"""Ctrl-C and SIGTERM end a command in one sentence."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator

import click


class Interrupted(Exception):
    """The user pressed Ctrl-C, or the run was asked to end."""


@contextlib.contextmanager
def termination() -> Iterator[None]:
    """SIGTERM ends what is done here as Ctrl-C does."""

    def interrupt(*_):
        raise Interrupted

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextlib.contextmanager
def interruptible(say: Callable[[], str]) -> Iterator[None]:
    """Ctrl-C and SIGTERM end what is done here in one sentence, which says what is kept."""
    with termination():
        try:
            yield
        except (KeyboardInterrupt, Interrupted):
            raise click.ClickException(f"interrupted: {say()}") from None
