"""Prints results on a terminal, as JSON or CSV, or writes them to a file."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from convbench.common import atomic_write
from convbench.common.terminal import SafeConsole

if TYPE_CHECKING:
    from convbench.stored.table import Notes

# The width of tables in a pipe or a log, in characters: enough for nine implementations.
WIDE = 160
SCREEN = 100  # width of the summary in a pipe


def console(width: int = WIDE) -> SafeConsole:
    """Standard output, as wide as the terminal; in a pipe `width` characters.

    Commands with one line per cell use table.ENDLESS, since a broken name could not be searched for.
    """
    return SafeConsole() if sys.stdout.isatty() else SafeConsole(width=width)


def write_json(file: Path, document: dict) -> None:
    """Write a document whole or not at all. Raises ClickException if the file cannot be written."""
    write_text(file, json.dumps(atomic_write.finite(document), indent=1, allow_nan=False) + "\n")


def write_text(file: Path, text: str) -> None:
    """Write a text whole or not at all. Raises ClickException if the file cannot be written."""
    try:
        with atomic_write.whole(file) as new:
            new.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write to {file}: {error.strerror}") from None


def print_cells(cells, notes: Notes, as_json: bool, as_csv: bool, why: bool = False) -> None:
    """Print a data frame of cells as a table, as JSON or as CSV."""
    from convbench.stored import table

    if as_json:
        click.echo(json.dumps(table.as_dicts(cells), indent=1))
    elif as_csv:
        writer = csv.DictWriter(sys.stdout, table.FIELDS)
        writer.writeheader()
        writer.writerows({key: table.for_spreadsheet(value) for key, value in row.items()} for row in table.as_dicts(cells))
    else:
        table.show(cells, notes, console(), why)
