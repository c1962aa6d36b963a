"""Reads side files: a line of JSON for each cell and round, beside each of asv's results files."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from convbench.asv import files
from convbench.common import untrusted


def path(results: Path) -> Path:
    """Where the reasons and facts of a results file lie."""
    return results.with_name(results.stem + ".cells.jsonl")


def read(path: Path) -> dict[tuple[str, tuple[str, ...]], dict[str, Any]]:
    """The line that counts for each cell, by benchmark and parameters; a line cut short by a crash is passed over.

    That is the last one, but a failure counts before whatever else the same run says of the cell: an answer that is wrong
    in one process of two is wrong. Raises Unreadable where a file is there and cannot be read at all.
    """
    lines: dict[tuple[str, tuple[str, ...]], dict[str, Any]] = {}
    for line in json_lines(path):
        if not _is_sound(line):
            continue
        cell = line["benchmark"], tuple(line["params"])
        before = lines.get(cell, {})
        same_run = "run" in line and line["run"] == before.get("run")
        if not (same_run and before.get("status") == "failed"):
            lines[cell] = line
    return lines


def _is_sound(line: Any) -> bool:
    """Whether a line of a side file has the shape of those that the suite writes."""
    try:
        texts = [line["benchmark"], line["status"], *line["params"], *(line.get("versions") or {}).values()]
        texts += [line[key] for key in ("reason",) if line.get(key) is not None]
        numbers = [line[key] for key in ("relative_l2", "wall", "ended", "value") if line.get(key) is not None]
        pools = line.get("threads") or {}
        numbers += pools.values()
        samples = line.get("samples") or []
        numbers += samples
        return (
            isinstance(line["params"], list)
            and isinstance(samples, list)
            and all(isinstance(text, str) for text in texts)
            and all(map(_is_number, numbers))
            and all(isinstance(count, int) for count in pools.values())
        )
    except untrusted.FAULTS:
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < files.MAX_INTEGER)


def json_lines(path: Path) -> Iterator[Any]:
    """The content of each line of JSON in a file, which may be missing; lines that are not whole are passed over.

    Raises Unreadable for what is there and is no regular file of limited size.
    """
    if path.exists() or path.is_symlink():
        for text in untrusted.read_bytes(path).decode(errors="replace").split("\n"):
            with contextlib.suppress(*untrusted.FAULTS):
                yield json.loads(text)
