"""Accepted regressions: by option, in a file of the head, or in a file that is named in its place."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from convbench.common import untrusted

FILE = "convbench-accept.toml"
MAX_BYTES = 256 << 10  # of the file


class Malformed(ValueError):
    """A file of accepted regressions that cannot be read as one; says which and why."""


@dataclass(frozen=True)
class Acceptance:
    """cell: a glob on name(parameters). reason: why it may be slower. by: the source of the acceptance."""

    cell: str
    reason: str
    by: str

    def __str__(self) -> str:
        return f"accepted by {self.by}: {self.reason}"


def read(file: Path) -> list[Acceptance]:
    """The acceptances in a file; [] if there is none. Raises Malformed.

    The file holds any number of [[accept]] tables, each with a `cell` and a `reason`.
    """
    name = file.name
    if not file.exists():
        return []
    try:
        content = tomllib.loads(untrusted.read_bytes(file.resolve(), MAX_BYTES).decode())
    except untrusted.Unreadable as error:
        raise Malformed(f"{name} cannot be read: {str(error).partition(': ')[2]}") from None
    except (ValueError, RecursionError) as error:  # text, numbers and nesting that TOML or Python does not take
        raise Malformed(f"{name} is not valid TOML: {error}") from None
    entries = content.pop("accept", [])
    if content or not isinstance(entries, list):
        raise Malformed(f"{name} may hold only [[accept]] tables")
    found = []
    for number, entry in enumerate(entries, 1):
        if not (isinstance(entry, dict) and entry.keys() == {"cell", "reason"}):
            raise Malformed(f"{name}: entry {number} needs a cell and a reason, and nothing else")
        if not all(isinstance(value, str) and value.strip() for value in entry.values()):
            raise Malformed(f"{name}: cell and reason of entry {number} have to be text")
        found.append(Acceptance(entry["cell"], entry["reason"], name))
    return found


def find(name: str, acceptances: Iterable[Acceptance]) -> Acceptance | None:
    """The first acceptance that matches a cell."""
    # Names are full of brackets, which in a glob are sets of characters.
    return next((a for a in acceptances if a.cell == name or fnmatch.fnmatchcase(name, a.cell)), None)
