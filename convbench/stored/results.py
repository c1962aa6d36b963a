"""Reads what asv and the suite wrote: one row a cell, in a data frame. Knows no layout and no command."""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from convbench.asv import files
from convbench.common import untrusted
from convbench.common.untrusted import Unreadable

COLUMNS = [
    *("benchmark", "params", "implementation", "row", "status", "reason", "value", "q25", "q75", "samples", "unit"),
    *("threads", "label", "dtype", "flops", "bytes", "baseline", "device", "family", "relative_l2"),
]

LONGEST = 1000  # characters of a parameter that are taken for Python, whose parser is not made for a stranger's text


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


def benchmarks(folder: Path) -> dict[str, dict[str, Any]]:
    """What asv knows of each benchmark, by name: benchmarks.json of a results folder, {} where there is none yet."""
    path = folder / "benchmarks.json"
    if not path.exists() and not path.is_symlink():
        return {}
    with untrusted.understanding(path):
        return files.benchmarks(untrusted.read_json(path))


def machines(folder: Path) -> list[str]:
    """The machines that have results below a results folder; nothing is read."""
    files = (path for path in folder.glob("*/*.json") if path.name != "machine.json")
    return sorted({path.parent.name for path in files if not path.parent.name.startswith(".")})


def result_files(folder: Path) -> list[Path]:
    """Every results file below a results folder, the one measured last at the end."""
    found = [p for p in folder.glob("*/*.json") if p.name != "machine.json" and not p.parent.name.startswith(".")]
    return sorted(found, key=lambda path: (_measured(path), _changed(path)))


def _changed(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:  # removed meanwhile
        return math.inf


def _measured(path: Path) -> float:
    """When the newest of a file's benchmarks was started: a clone or a pull changes the times of files, not this."""
    try:
        content = untrusted.read_json(path)
        place = content["result_columns"].index("started_at")
        return float(max(row[place] for row in content["results"].values() if len(row) > place and row[place]))
    except ValueError:  # nothing was started, or an older asv did not say when
        return 0.0
    except (Unreadable, *untrusted.FAULTS):
        return math.inf  # a broken file is met first by who looks for the newest, and named


def read(path: Path) -> files.Stored:
    """The content of one results file. Raises Unreadable."""
    with untrusted.understanding(path):
        return files.stored(untrusted.read_json(path), path.lstat().st_size)


def load(path: Path, known: dict[str, dict[str, Any]]) -> Run:
    """Read one results file and its side file. Raises Unreadable."""
    stored, lines = read(path), side_lines(side_file(path))
    rows = []
    with untrusted.understanding(path):
        for name, entry in stored.entries.items():
            if benchmark := same_version(entry, known.get(name)):
                rows.extend(_rows(name, entry, benchmark, lines))
        cells = pd.DataFrame(rows, columns=COLUMNS)
    return Run(stored.machine, stored.commit, stored.environment, int(stored.date), path, lines, stored.facts, cells)


def same_version(entry: dict[str, Any], benchmark: dict[str, Any] | None) -> dict[str, Any] | None:
    """The benchmark whose cells an entry holds, None where it is known no more: another version is another measurement."""
    if benchmark and (entry.get("version") or benchmark.get("version")) == benchmark.get("version"):
        return benchmark
    return None


def side_file(path: Path) -> Path:
    """Where the reasons and facts of a results file lie."""
    return path.with_name(path.stem + ".cells.jsonl")


def unbuilt_file(folder: Path) -> Path:
    """Where the commits that do not build on a machine are listed, in the machine's folder of results."""
    return folder / "unbuilt.jsonl"


def unbuilt(folder: Path) -> dict[str, dict[str, Any]]:
    """The commits that do not build on a machine, by full hash: {"commit", "environments", "reason"}.

    A line that makes no sense is passed over, as in side files; a file that cannot be read at all is named.
    """
    found: dict[str, dict[str, Any]] = {}
    try:
        for line in json_lines(unbuilt_file(folder)):
            if isinstance(line, dict) and all(isinstance(line.get(key), str) for key in ("commit", "reason")):
                found[line["commit"]] = line
    except Unreadable as error:
        warn(error)
    return found


def side_lines(path: Path) -> dict[tuple[str, tuple[str, ...]], dict[str, Any]]:
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
    return int(value) if value.isdecimal() and len(value) < 10 else max((line.get("threads") or {}).values(), default=None)


@functools.lru_cache(maxsize=4096)  # the same few stand in every cell
def plain(text: str) -> str:
    """A parameter as a person writes it: asv stores Python's repr."""
    if len(text) > LONGEST:
        return text
    try:
        value = ast.literal_eval(text)
        return value if isinstance(value, str) else str(value)
    except (SyntaxError, *untrusted.FAULTS):
        return text


def warn(error: Unreadable) -> None:
    """Tell about a file that is passed over."""
    print(f"passed over: {error}", file=sys.stderr)
