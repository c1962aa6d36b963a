"""Asks the suite for its guided tour, and turns each step into text."""

from __future__ import annotations

import gzip
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from tabulate import tabulate

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.common import atomic_write
from convbench.suite import ask

WIDTH = 100  # characters of a line of prose
ROLE = 9  # of the column that says whether a line is a guess, a command or an answer
DIGITS = 6  # significant ones that are stored: more than a clock can repeat


def run(project: Project, question: dict[str, Any], console: Console) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("told", a step) and, if the question asks for it, ("page", {"page": HTML}); show progress.

    Raises ClickException if there is no answer.
    """
    for event in ask.ask(project, "tour", question, console, "tour: "):
        if "step" in event:
            where = "{story}, step {count} of {of}: {title}".format(**event["step"])
            if not console.is_terminal:
                console.print(where, highlight=False, markup=False)
        elif "told" in event:
            yield "told", event["told"]
        else:
            yield "page", event


def text(step: dict[str, Any]) -> str:
    """A step as text."""
    blocks = [
        tabulate(table["rows"], table["titles"], disable_numparse=True, colalign=_sides(table)) for table in step["tables"]
    ]
    blocks += [*step["texts"], *(_prose("", note) for note in step["notes"])]
    if step["missing"]:
        look = [f"Not measured here: {step['missing']}. It would have shown {step['would']}"]
    else:
        look = step["sentences"]
    parts = [
        step["title"],
        _prose("Guess", step["guess"]),
        _prose("Measure", step["command"]),
        *blocks,
        "\n".join(_prose("" if i else "Look", each) for i, each in enumerate(look)),
        _prose("Why", step["why"]),
        "\n".join(_prose("" if i else "Text", f"{there}: {here}") for i, (there, here) in enumerate(step["systems"])),
    ]
    return "\n\n".join(filter(None, parts))


def _sides(table: dict[str, Any]) -> tuple[str, ...]:
    return ("left", *["right"] * (len(table["titles"]) - 1))


def _prose(role: str, words: str) -> str:
    indent = " " * ROLE
    return textwrap.fill(words, WIDTH, initial_indent=role.ljust(ROLE), subsequent_indent=indent, break_on_hyphens=False)


def keep(project: Project, told: list[dict[str, Any]], fast: bool) -> Path:
    """Store the numbers of whole stories for this machine and commit, beside those of other stories; return the file.

    Raises ClickException for uncommitted changes, since results are kept by commit, and for what cannot be written.
    """
    require_committed(project)
    # Compressed, since asv takes every .json file below its results for one of its own.
    path = project.results / machine.name() / "tour" / f"{project.commit()[:8]}.json.gz"
    stories = json.loads(gzip.decompress(path.read_bytes())) if path.is_file() else {}
    for name in dict.fromkeys(step["story"] for step in told):
        steps = [step for step in told if step["story"] == name]
        stories[name] = {
            "date": steps[-1]["date"],
            "fast": fast,
            "steps": {step["name"]: {key: step[key] for key in ("command", "missing", "numbers")} for step in steps},
        }
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write.whole(path) as beside:
        beside.write_bytes(gzip.compress(json.dumps(_rounded(stories)).encode(), mtime=0))
    return path


def require_committed(project: Project) -> None:
    """Raise ClickException for uncommitted changes of what is measured or measures."""
    if changed := project.uncommitted():
        raise click.ClickException(f"uncommitted changes, and results are kept by commit: {changed}; commit them first")


def _rounded(value: Any) -> Any:
    """A value of JSON with its numbers rounded."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def echo() -> Any:
    """A function that prints to standard output while a bar is shown on standard error.

    The bar's library sends standard output to where the bar is, which is right only on a terminal.
    """
    out = None if sys.stdout.isatty() else sys.stdout
    return lambda words: click.echo(words, file=out)
