"""Removes control characters from output: an untrusted name or reason must not
move the cursor, set the title, or look like another line.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

# C0 without the tab and the end of a line, C1, and what has no width or makes text run the other way.
CONTROL = [*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x061C, *range(0x200B, 0x2010), *range(0x202A, 0x202F)]
CONTROL += [*range(0x2060, 0x2070), 0xFEFF, *range(0xE0000, 0xE0080)]
REPLACED = dict.fromkeys(CONTROL, "\N{REPLACEMENT CHARACTER}")
ENDS = dict.fromkeys(map(ord, "\t\n\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}"), "\N{REPLACEMENT CHARACTER}")


def printable(text: str) -> str:
    """A text of any number of lines without control characters.

    >>> printable("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return text.translate(REPLACED)


def line(text: str) -> str:
    """A text for one line: its ends of lines are replaced, too."""
    return text.translate(REPLACED | ENDS)


def one_line(text: str, style: str = "") -> Text:
    """A text for one line of a table or a console."""
    return Text(line(text), style=style)


class Stream(io.TextIOWrapper):
    """Standard output or error, whose text is made printable. guarded: the stream itself, for our own styles and bars."""

    def __init__(self, guarded: io.TextIOWrapper) -> None:
        super().__init__(guarded.buffer, guarded.encoding, errors="replace", write_through=True)
        self.guarded = guarded

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Not ASCII: click would write past a stream of ASCII, into its buffer."""
        return "utf-8"

    def write(self, text: str) -> int:
        """Write a text without control characters; returns how many characters it has."""
        return super().write(printable(text))


class SafeConsole(Console):
    """A console without markup that prints no control characters except its own."""

    def __init__(self, **settings: Any) -> None:
        stream = sys.stderr if settings.get("stderr") else sys.stdout
        file = getattr(stream, "guarded", stream)
        super().__init__(**{"file": file, "markup": False, "emoji": False, "highlight": False, **settings})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Rich's own pieces, made printable."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(printable(piece.text), piece.style)


def guard() -> None:
    """Make all output of this process printable, including tracebacks and warnings."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, Stream):
            stream.flush()
            stream.reconfigure(errors="replace")  # replace signs that the terminal's encoding lacks
            setattr(sys, name, Stream(stream))
