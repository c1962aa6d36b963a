"""Reads what asv and the suite wrote: one row a cell, in a data frame. Knows no layout and no command."""

from __future__ import annotations

import ast
import contextlib
import itertools
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

COLUMNS = [
    *("benchmark", "params", "implementation", "row", "status", "reason", "value", "q25", "q75", "samples", "unit"),
    *("threads", "label", "dtype", "flops", "bytes", "baseline", "device", "family", "relative_l2"),
]


@dataclass
class Run:
    """The results of one commit on one machine in one environment.

    lines: what its side file says of each cell. facts: of the machine, as asv keeps them.
    """

    machine: str
    commit: str
    environment: str
    date: int
    path: Path
    lines: dict[tuple[str, tuple[str, ...]], dict[str, Any]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    cells: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=COLUMNS))


class Unreadable(Exception):
    """A results file cannot be read; the text names it and says why."""


def benchmarks(folder: Path) -> dict[str, dict[str, Any]]:
    """What asv knows of each benchmark, by name: benchmarks.json of a results folder, {} where there is none yet."""
    path = folder / "benchmarks.json"
    if not path.is_file():
        return {}
    content = _json(path)
    if not isinstance(content, dict):
        raise Unreadable(f"{path.parent.name}/{path.name} is not asv's list of benchmarks")
    return {name: entry for name, entry in content.items() if isinstance(entry, dict)}


def machines(folder: Path) -> list[str]:
    """The machines that have results below a results folder; nothing is read."""
    files = (path for path in folder.glob("*/*.json") if path.name != "machine.json")
    return sorted({path.parent.name for path in files if not path.parent.name.startswith(".")})


def result_files(folder: Path) -> list[Path]:
    """Every results file below a results folder, the one measured last at the end."""
    found = [p for p in folder.glob("*/*.json") if p.name != "machine.json" and not p.parent.name.startswith(".")]
    return sorted(found, key=lambda path: (_measured(path), path.stat().st_mtime))


def _measured(path: Path) -> float:
    """When the newest of a file's benchmarks was started: a clone or a pull changes the times of files, not this."""
    try:
        content = _json(path)
        place = content["result_columns"].index("started_at")
        return max(row[place] for row in content["results"].values() if len(row) > place and row[place])
    except ValueError:  # nothing was started, or an older asv did not say when
        return 0.0
    except (Unreadable, KeyError, TypeError, AttributeError):
        return math.inf  # a broken file is met first by who looks for the newest, and named


def load(path: Path, known: dict[str, dict[str, Any]]) -> Run:
    """Read one results file and its side file. Raises Unreadable."""
    content = _json(path)
    lines = side_lines(side_file(path))
    rows = []
    try:
        run = Run(
            machine=content["params"]["machine"],
            commit=content["commit_hash"],
            environment=content["env_name"],
            date=content["date"],
            path=path,
            lines=lines,
            facts=content["params"],
        )
        for name, row in content["results"].items():
            entry = dict(zip(content["result_columns"], row, strict=False))
            benchmark = known.get(name)
            if benchmark and (entry.get("version") or benchmark.get("version")) == benchmark.get("version"):
                rows.extend(_rows(name, entry, benchmark, lines))  # another version is another measurement
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise Unreadable(f"{path.parent.name}/{path.name} is not a whole results file of asv: {error!r}") from error
    run.cells = pd.DataFrame(rows, columns=COLUMNS)
    return run


def side_file(path: Path) -> Path:
    """Where the reasons and facts of a results file lie."""
    return path.with_name(path.stem + ".cells.jsonl")


def unbuilt_file(folder: Path) -> Path:
    """Where the commits that do not build on a machine are listed, in the machine's folder of results."""
    return folder / "unbuilt.jsonl"


def unbuilt(folder: Path) -> dict[str, dict[str, Any]]:
    """The commits that do not build on a machine, by full hash: {"commit", "environments", "reason"}.

    A line that makes no sense is passed over, as in side files.
    """
    found: dict[str, dict[str, Any]] = {}
    for line in json_lines(unbuilt_file(folder)):
        if isinstance(line, dict) and all(isinstance(line.get(key), str) for key in ("commit", "reason")):
            found[line["commit"]] = line
    return found


def side_lines(path: Path) -> dict[tuple[str, tuple[str, ...]], dict[str, Any]]:
    """The line that counts for each cell, by benchmark and parameters; a line cut short by a crash is passed over.

    That is the last one, but a failure counts before whatever else the same run says of the cell: an answer that is wrong
    in one process of two is wrong.
    """
    lines: dict[tuple[str, tuple[str, ...]], dict[str, Any]] = {}
    for line in json_lines(path):
        try:
            cell = line["benchmark"], tuple(line["params"])
            before = lines.get(cell, {})
            same_run = "run" in line and line["run"] == before.get("run")
            if not (same_run and before["status"] == "failed"):
                lines[cell] = line
        except (KeyError, TypeError):
            continue
    return lines


def json_lines(path: Path) -> Iterator[Any]:
    """The content of each line of JSON in a file, which may be missing; lines that are not whole are passed over."""
    if path.is_file():
        for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                yield json.loads(text)


def _rows(name: str, entry: dict, benchmark: dict, lines: dict) -> list[dict[str, Any]]:
    """The cells of one benchmark in one results file."""
    names = benchmark.get("param_names", [])
    combinations = list(itertools.product(*(entry.get("params") or [])))
    values = entry.get("result") or [None] * len(combinations)
    problems = benchmark.get("problems", {})
    rows = []
    for i, params in enumerate(combinations):
        named = dict(zip(names, params, strict=False))
        line = lines.get((name, params), {})
        problem = problems.get(named.get(benchmark.get("axis", ""), ""), {})
        declared = benchmark.get("implementations", {}).get(plain(named.get("implementation", "")), {})
        status, reason = _status(values[i], line)
        quartiles = [(entry.get(f"stats_q_{q}") or [None] * len(combinations))[i] for q in (25, 75)]
        samples = (entry.get("samples") or [None] * len(combinations))[i]
        rows.append(
            {
                "benchmark": name,
                "params": params,
                "implementation": plain(named["implementation"]) if "implementation" in named else None,
                "row": tuple(plain(value) for key, value in named.items() if key != "implementation"),
                "status": status,
                "reason": reason,
                "value": values[i] if status == "ok" else math.nan,
                "q25": quartiles[0] if status == "ok" else None,
                "q75": quartiles[1] if status == "ok" else None,
                "samples": samples if status == "ok" else None,
                "unit": benchmark.get("unit", "unit"),
                "threads": _threads(named, line),
                "baseline": benchmark.get("baseline"),
                "device": declared.get("device"),
                "family": declared.get("family"),
                "relative_l2": line.get("relative_l2"),
                **{key: problem.get(key) for key in ("label", "dtype", "flops", "bytes")},
            }
        )
    return rows


def _status(value: Any, line: dict) -> tuple[str, str | None]:
    if line.get("status") == "failed":
        return "failed", line.get("reason")
    if isinstance(value, (int, float)) and math.isfinite(value):
        return "ok", line.get("reason")
    if value is None:
        return "failed", line.get("reason") or "ended without a report: killed, out of time or memory"
    if line.get("status") == "skipped":
        return "skipped", line.get("reason")
    return "not measured", None


def _threads(named: dict[str, str], line: dict) -> int | None:
    value = plain(named.get("threads", "1"))
    return int(value) if value.isdigit() else max(line.get("threads", {}).values(), default=None)


def plain(text: str) -> str:
    """A parameter as a person writes it: asv stores Python's repr."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        return str(text)
    return value if isinstance(value, str) else str(value)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path.parent.name}/{path.name} cannot be read: {error}") from error


def warn(error: Unreadable) -> None:
    """Tell about a file that is passed over."""
    print(f"passed over: {error}", file=sys.stderr)
