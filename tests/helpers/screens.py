"""A command's output on terminals of three widths and in a pipe, for golden texts."""

import contextlib
import difflib
import io
import os
from pathlib import Path

import pytest

from convbench.cli.main import main

GOLDEN = Path(__file__).parents[1] / "golden"
WIDTHS = (80, 100, 160)
PIPE = {"COLUMNS": None, "LINES": None, "TERM": None, "NO_COLOR": None}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def at_width(monkeypatch, width, *arguments):
    """The lines that a command prints on a terminal of this many characters, or into a pipe where `width` is None."""
    screen = io.StringIO() if width is None else Terminal()
    settings = PIPE if width is None else {"COLUMNS": str(width), "LINES": "40", "TERM": "dumb"}
    with monkeypatch.context() as patch, contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        for name, value in settings.items():
            patch.delenv(name, raising=False) if value is None else patch.setenv(name, value)
        with contextlib.suppress(SystemExit):
            main(arguments, prog_name="convbench")
    return "".join(f"{line.rstrip()}\n" for line in screen.getvalue().splitlines())


def at_every_width(monkeypatch, *arguments):
    """A command's output at each width and in a pipe, one below the other; equal ones once."""
    found = {}
    for width in (*WIDTHS, None):
        title = "a pipe" if width is None else f"{width} characters"
        found.setdefault(at_width(monkeypatch, width, *arguments), []).append(title)
    return "".join(f"=== {', '.join(titles)}\n{text}" for text, titles in found.items())


def require_same(name, text):
    """Compare a text with tests/golden; UPDATE_GOLDEN=1 writes it there instead."""
    if os.environ.get("UPDATE_GOLDEN"):
        (GOLDEN / name).write_text(text, encoding="utf-8")
    known = (GOLDEN / name).read_text(encoding="utf-8")
    if text != known:
        pytest.fail("\n".join(difflib.unified_diff(known.splitlines(), text.splitlines(), name, "now", lineterm="")))
