"""The cells of a class that were finished when its run was cut short: asv stores a class when all of it is done."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from convbench.asv.writer import Lines
from convbench.stored import side_lines


def finished(side: Path, rounds: int) -> Lines:
    """The lines of each cell that has a time, or a reason for none, in every round; others are measured again."""
    found: Lines = defaultdict(list)
    for line in side_lines.json_lines(side):
        found[line["benchmark"], tuple(line["params"])].append(line)
    return {
        cell: lines
        for cell, lines in found.items()
        if len(lines) == rounds and {line["status"] for line in lines} in ({"ok"}, {"skipped"})
    }
