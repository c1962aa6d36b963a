"""The commits that do not build on a machine, in the file unbuilt.jsonl beside its results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from convbench.common import atomic_write, untrusted
from convbench.common.untrusted import Unreadable
from convbench.stored import side_lines


def path(folder: Path) -> Path:
    """The path of the list of commits that do not build on a machine."""
    return folder / "unbuilt.jsonl"


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """The commits that do not build on a machine, by full hash: {"commit", "environments", "reason"}.

    An invalid line is skipped, as in side files; a file that cannot be read at all is named.
    """
    found: dict[str, dict[str, Any]] = {}
    try:
        for line in side_lines.json_lines(path(folder)):
            if isinstance(line, dict) and all(isinstance(line.get(key), str) for key in ("commit", "reason")):
                found[line["commit"]] = line
    except Unreadable as error:
        untrusted.warn(error)
    return found


def keep(folder: Path, commit: str, line: dict | None, work: Path) -> None:
    """Store that a commit does not build on a machine; with None, that it does."""
    known = read(folder)
    if line is None and commit not in known:
        return
    known.pop(commit, None)
    if line is not None:
        known[commit] = {"commit": commit, **line}
    listed = work / "unbuilt.jsonl"
    listed.write_text("".join(json.dumps(line) + "\n" for line in known.values()), encoding="utf-8")
    atomic_write.publish(listed, path(folder))
