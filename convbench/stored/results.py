"""Reads the files of asv and of the suite into a data frame with one row per cell."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from convbench.asv import files
from convbench.common import untrusted
from convbench.common.cells import plain
from convbench.common.untrusted import Unreadable
from convbench.stored import side_lines

COLUMNS = [
    *("benchmark", "params", "implementation", "row", "status", "reason", "value", "q25", "q75", "samples", "unit"),
    *("threads", "label", "dtype", "flops", "bytes", "baseline", "device", "family", "relative_l2", "cold"),
]


@dataclass
class Run:
    """The results of one commit on one machine in one environment.

    lines: those of its side file, by cell. facts: of the machine, from asv.
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
    """The benchmarks by name, from asv's list: benchmarks.json of a results folder, {} if there is none yet."""
    path = folder / "benchmarks.json"
    if not path.exists() and not path.is_symlink():
        return {}
    with untrusted.understanding(path):
        return files.benchmarks(untrusted.read_json(path))


def machines(folder: Path) -> list[str]:
    """The machines that have results below a results folder; nothing is read."""
    found = (path for path in folder.glob("*/*.json") if path.name != "machine.json")
    return sorted({path.parent.name for path in found if not path.parent.name.startswith(".")})


def result_files(folder: Path) -> list[Path]:
    """All results files below a results folder, the last measured one last."""
    found = [p for p in folder.glob("*/*.json") if p.name != "machine.json" and not p.parent.name.startswith(".")]
    return sorted(found, key=lambda path: (_measured(path), _changed(path)))


def measured_commits(folder: Path) -> set[str]:
    """The commits with results on any machine; unreadable files are reported and skipped."""
    found = set()
    for path in result_files(folder):
        try:
            found.add(files.read(path).commit)
        except Unreadable as error:
            untrusted.warn(error)
    return found


def _changed(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:  # removed meanwhile
        return math.inf


def _measured(path: Path) -> float:
    """Start of the newest benchmark in a file; unlike the file's own time, a clone or a pull keeps it."""
    try:
        content = untrusted.read_json(path)
        place = content["result_columns"].index("started_at")
        return float(max(row[place] for row in content["results"].values() if len(row) > place and row[place]))
    except ValueError:  # nothing was started, or an older asv has not stored it
        return 0.0
    except (Unreadable, *untrusted.FAULTS):
        return math.inf  # a search for the newest file finds a broken one first and reports it


def load(path: Path, known: dict[str, dict[str, Any]]) -> Run:
    """Read one results file and its side file. Raises Unreadable."""
    stored, lines = files.read(path), side_lines.read(side_lines.path(path))
    rows = []
    with untrusted.understanding(path):
        for name, entry in stored.entries.items():
            if benchmark := same_version(entry, known.get(name)):
                rows.extend(_rows(name, entry, benchmark, lines))
        cells = pd.DataFrame(rows, columns=COLUMNS)
    return Run(stored.machine, stored.commit, stored.environment, int(stored.date), path, lines, stored.facts, cells)


def same_version(entry: dict[str, Any], benchmark: dict[str, Any] | None) -> dict[str, Any] | None:
    """The benchmark of an entry, None if it is unknown today: another version is another measurement."""
    if benchmark and (entry.get("version") or benchmark.get("version")) == benchmark.get("version"):
        return benchmark
    return None


def as_measured(path: Path, known: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The benchmarks of a results file with the version and the parameters that they have there, by name. Raises Unreadable.

    known: benchmarks.json, which has the newest ones; asv's own default tells the unit of what is no longer there.
    """
    found = {}
    for name, entry in files.read(path).entries.items():
        params = entry.get("params") or []
        today = known.get(name) or {"unit": _usual_unit(name)}
        names = today.get("param_names", [])
        if len(names) != len(params):
            names = [f"param{number}" for number in range(1, len(params) + 1)]
        version = entry.get("version") or today.get("version")
        found[name] = {**today, "params": params, "param_names": names, "version": version}
    return found


def _usual_unit(name: str) -> str:
    kind = name.rpartition(".")[2]
    if kind.startswith("time"):
        return "seconds"
    return "bytes" if kind.startswith(("mem", "peakmem")) else "unit"


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
                "cold": line.get("cold") if status == "ok" else None,
                **{key: problem.get(key) for key in ("label", "dtype", "flops", "bytes")},
            }
        )
    return rows


def _status(value: Any, line: dict) -> tuple[str, str | None]:
    if line.get("status") == "failed":
        return "failed", line.get("reason")
    if isinstance(value, (int, float)) and not files.no_number(value) and value == value:
        return "ok", line.get("reason")
    if value is None:
        return "failed", line.get("reason") or "no time (asv gives no reason)"
    if reason := files.no_number(value):
        return "failed", reason
    if line.get("status") == "skipped":
        return "skipped", line.get("reason")
    return "not measured", None


def _threads(named: dict[str, str], line: dict) -> int | None:
    value = plain(named.get("threads", "1")).strip("'")
    return int(value) if value.isdecimal() and len(value) < 10 else max((line.get("threads") or {}).values(), default=None)
