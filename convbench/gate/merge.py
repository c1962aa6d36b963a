"""Merges the reports of a gate's shards, and judges them as one gate."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from convbench.common import untrusted
from convbench.gate import accept, judge
from convbench.gate.accept import Acceptance
from convbench.gate.failures import HEAD_BROKEN, Failure, HeadBroken, Usage
from convbench.gate.report import SCHEMA, Kind, Report, Row, change, in_order

NEEDED = {"shard", "cells", "smallest", "error", "traceback", "exit_status", "partial", "not_timed", "identical", "ignored"}
NEEDED |= {"machine", "proposed", "proposal_error", "rounds", "seconds"}
SHARD = re.compile(r"([1-9]\d{0,3})/([1-9]\d{0,3})")
# What all shards have to have alike. Their machines may differ: both sides of a cell are always measured on one.
ALIKE = ("schema", "version", "base", "head", "compared", "environment", "other_environments", "differences", "settings")


def merge(files: Sequence[Path], acceptances: Sequence[Acceptance] = ()) -> Report:
    """The report of the gate that was measured in shards. Raises Usage if these are not all of its shards, once each.

    acceptances: of regressions that no shard alone has found.
    """
    contents = [_read(file) for file in files]
    for file, content in zip(files, contents, strict=True):
        for key in ALIKE:
            if content[key] != contents[0][key]:
                raise Usage(f"{file} is of another gate than {files[0]}: {key} is {content[key]!r} and {contents[0][key]!r}")
    _require_all(files, contents)
    machines = dict.fromkeys(content["machine"]["machine"] for content in contents)
    several = len(machines) > 1
    rows = [
        dataclasses.replace(_row(cell), measured_on=content["machine"]["machine"] if several else None)
        for content in contents
        for cell in content["cells"]
    ]
    if len({row.name for row in rows}) < len(rows):
        raise Usage("a cell is in several of these reports")
    first = contents[0]
    smallest = {name: share for content in contents for name, share in content["smallest"].items()}
    return Report(
        first["base"],
        first["head"],
        {"machine": ", ".join(machines)},
        first["settings"],
        in_order(_judged(rows, smallest, acceptances)),
        [(one["benchmark"], one["reason"]) for one in first["not_timed"]],
        [Acceptance(one["cell"], one["reason"], "the head") for one in first["proposed"]],
        first["proposal_error"],
        next((_failure(content) for content in contents if content["error"]), None),
        sum(content["rounds"] for content in contents),
        sum(content["seconds"] for content in contents),
        first["environment"],
        tuple(first["other_environments"]),
        Kind(first["compared"]),
        tuple(first["differences"]),
        all(content["partial"] for content in contents),
        identical=all(content["identical"] for content in contents),
        ignored=tuple(first["ignored"]),
    )


def _read(file: Path) -> dict[str, Any]:
    """The content of a report. Raises Usage if it is none of this version."""
    try:
        with untrusted.understanding(file):
            content = untrusted.read_json(file.resolve())
            if content["schema"] != SCHEMA:
                raise untrusted.Malformed(f"its schema is {content['schema']}, and this version reads {SCHEMA}")
            missing = {*ALIKE, *NEEDED} - content.keys()
            if missing:
                raise untrusted.Malformed(f"it has no {', '.join(sorted(missing))}")
            if content["shard"] is not None:
                shard = SHARD.fullmatch(content["shard"])
                if not shard or int(shard[1]) > int(shard[2]):
                    raise untrusted.Malformed(f"there is no shard {content['shard']!r}")
            in_order(_judged([_row(cell) for cell in content["cells"]], content["smallest"]))  # all it holds must allow that
    except untrusted.Unreadable as error:
        raise Usage(f"no report of a gate: {error}") from None
    return content


def _require_all(files: Sequence[Path], contents: Sequence[dict[str, Any]]) -> None:
    places: dict[int, Path] = {}
    counts = set()
    for file, content in zip(files, contents, strict=True):
        if not content["shard"]:
            raise Usage(f"{file} is not a shard: it was measured without --shard")
        place, count = map(int, content["shard"].split("/"))
        if place in places:
            raise Usage(f"{places[place]} and {file} are the same shard, {content['shard']}")
        places[place] = file
        counts.add(count)
    if len(counts) > 1:
        raise Usage(f"the shards are of {' and '.join(map(str, sorted(counts)))}: the gate was split differently")
    missing = [f"{place}/{count}" for count in counts for place in range(1, count + 1) if place not in places]
    if missing:
        raise Usage(f"shards are missing: {', '.join(missing)}")


def _row(cell: dict[str, Any]) -> Row:
    return Row(**{key: value for key, value in cell.items() if key != "again"})


def _judged(rows: Sequence[Row], smallest: dict[str, float], acceptances: Sequence[Acceptance] = ()) -> list[Row]:
    """The rows with the verdicts and intervals of all of them judged together."""
    judged = {row.name: row for row in rows if row.verdict in judge.VERDICTS}
    kinds = ("first", "confirming")
    rounds = [{name: (row.values or row.log_ratios)[kind] for name, row in judged.items()} for kind in kinds]
    findings = judge.decide(rounds[0], rounds[1], smallest)
    return [row if row.name not in findings else _again(row, findings[row.name], acceptances) for row in rows]


def _again(row: Row, finding: judge.Finding, acceptances: Sequence[Acceptance]) -> Row:
    ratio, interval = change(finding)
    acceptance = accept.find(row.name, acceptances)
    accepted = row.accepted or (str(acceptance) if acceptance else None)
    accepted = accepted if finding.verdict == "regressed" else None
    return dataclasses.replace(row, verdict=finding.verdict, ratio=ratio, interval=interval, accepted=accepted)


def _failure(content: dict[str, Any]) -> Failure:
    kind = HeadBroken if content["exit_status"] == HEAD_BROKEN else Failure
    return kind(f"shard {content['shard']}: {content['error']}", content["traceback"])
