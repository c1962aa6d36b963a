"""Recovers the finished cells of an interrupted class: asv stores a class only when all of it is done."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from convbench.asv import writer
from convbench.run import classes
from convbench.run.built_commit import BuiltCommit
from convbench.run.plan import ClassPlan
from convbench.run.workspace import Workspace
from convbench.stored import side_lines


def finished(side_file: Path, rounds: int) -> writer.Lines:
    """The lines of each cell that has a time, or a reason for none, in every round; others are measured again."""
    found: writer.Lines = defaultdict(list)
    for line in side_lines.json_lines(side_file):
        found[line["benchmark"], tuple(line["params"])].append(line)
    return {
        cell: lines
        for cell, lines in found.items()
        if len(lines) == rounds and {line["status"] for line in lines} in ({"ok"}, {"skipped"})
    }


def keep_finished(workspace: Workspace, built: BuiltCommit, plan: ClassPlan) -> int:
    """Publish the cells that were finished when their class was cut short; how many.

    None if there are several environments: side files do not tell them apart.
    """
    cells = finished(workspace.side_file, plan.rounds)
    if not cells or len(built.environments) > 1:
        return 0
    classes.start_from_published(workspace, built)  # asv may have been stopped while it wrote there
    file = writer.write(cells, built.known, built.commit, built.environments[0], workspace.folder)
    lines = "".join(json.dumps(line) + "\n" for lines in cells.values() for line in lines)
    workspace.side_file.write_text(lines, encoding="utf-8")
    classes.publish(workspace, built, [file])
    return len(cells)
