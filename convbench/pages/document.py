"""The content of the comparison page as one object for JSON: results in, no HTML and no asv.

Figures are written here, once, as people read them (convbench/common/numbers.py); the page's script only picks and
places them.
"""

from __future__ import annotations

import base64
import io
import itertools
import math
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from convbench.common import numbers, untrusted
from convbench.common.cells import plain
from convbench.common.untrusted import Unreadable
from convbench.stored import crossovers, results, roofline, table

# Of a picture of the gallery; a pixel is three bytes while it is read.
MAX_PICTURE_BYTES = 64 << 20
MAX_PIXELS = 40_000_000
MAX_SHORT = 3  # problems of a benchmark in the summary
MAX_RUNS = 3  # commits of each machine and environment that the page has: those measured last
# The columns of cells that the page gets unchanged, beside their texts.
NUMBERS = ("value", "q25", "q75", "threads", "effective_gflops", "percent_of_limit", "relative_l2")


def document(project: str, folder: Path, changes: dict[str, Any], gallery: Path) -> dict[str, Any]:
    """The page's content from a results folder.

    changes: of convbench.pages.changes. gallery: a picture, which may be missing. What cannot be read is named in
    "passed_over".
    """
    passed_over: list[str] = []
    try:
        known = results.benchmarks(folder)
    except Unreadable as error:
        known = {}
        passed_over.append(str(error))
    compared = {name: entry for name, entry in known.items() if "implementation" in entry.get("param_names", [])}
    compared = {name: entry for name, entry in compared.items() if len(entry.get("params", [])) == len(entry["param_names"])}
    declared: dict[str, dict] = {}
    for entry in compared.values():
        known_here = entry.get("implementations", {})
        declared |= {name: known_here.get(name) or declared.get(name) or {} for name in map(plain, _raw(entry))}
    benchmarks = [_benchmark(name, entry, list(declared)) for name, entry in compared.items()]
    runs = []
    for path in _newest(folder):
        try:
            run = _run(results.load(path, known), known, benchmarks, list(declared))
        except Unreadable as error:
            passed_over.append(str(error))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # JSON, but of another shape
            passed_over.append(f"{path.parent.name}/{path.name} is not valid: {error!r}")
        else:
            if run["cells"]["benchmark"]:
                runs.append(run)
    for run, number in zip(runs, itertools.count(1), strict=False):
        run["id"] = f"{run['machine']}@{run['commit'][:8]}"
        if any(other.get("id") == run["id"] for other in runs if other is not run):
            run["id"] += f"+{number}"  # the same commit in another environment
    return {
        "project": project,
        "made": _day(time.time()),
        "benchmarks": benchmarks,
        "implementations": [
            {"name": name, **{key: facts.get(key) or "" for key in ("device", "family", "summary")}}
            for name, facts in declared.items()
        ],
        "runs": runs,
        "changes": changes,
        "gallery": _picture(gallery),
        "passed_over": passed_over,
    }


def _newest(folder: Path) -> list[Path]:
    """The results files measured last of each machine and environment, the newest of all first."""
    series: dict[tuple[str, str], int] = defaultdict(int)
    kept = []
    for path in reversed(results.result_files(folder)):
        key = path.parent.name, path.name.partition("-")[2]
        if series[key] < MAX_RUNS:
            series[key] += 1
            kept.append(path)
    return kept


def _raw(entry: dict[str, Any]) -> list[str]:
    """The implementations of a benchmark as asv stores them, as Python literals."""
    return list(map(str, entry["params"][entry["param_names"].index("implementation")]))


def _benchmark(name: str, entry: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """A benchmark with its rows: the combinations of all parameters except the implementation.

    short: the rows of the suite's short selection. numbers: for each of these parameters what its values stand for on an
    axis, null if they are not numbers. raw: how asv writes an implementation, by its index in names.
    """
    place = entry["param_names"].index("implementation")
    values = [list(map(str, listed)) for listed in entry["params"]]
    others = [i for i in range(len(values)) if i != place]
    axis, problems = entry.get("axis"), entry.get("problems", {})
    rows: list[dict[str, Any]] = []
    in_short: list[bool] = []
    for raw in itertools.product(*(values[i] for i in others)):
        named = dict(zip((entry["param_names"][i] for i in others), raw, strict=True))
        problem = problems.get(named.get(axis, ""), {})
        facts = {key: problem.get(key) for key in ("label", "dtype")}
        facts |= {key: _number(problem.get(key)) for key in ("flops", "bytes")}
        rows.append({"values": list(map(plain, raw)), "raw": list(raw), **facts})
        in_short.append("quick" not in entry or named.get(axis) in entry["quick"])
    return {
        "name": name,
        "unit": entry.get("unit", "unit"),
        "baseline": entry.get("baseline"),
        "params": [entry["param_names"][i] for i in others],
        "numbers": [crossovers.quantities(map(plain, values[i])) for i in others],
        "rows": rows,
        "short": [row for row, kept in enumerate(in_short) if kept][:MAX_SHORT],
        "raw": {names.index(plain(raw)): raw for raw in _raw(entry)},
        "place": place,
    }


def _run(run: results.Run, known: dict, benchmarks: list[dict], names: list[str]) -> dict[str, Any]:
    """A run's facts, its roofline and its cells, as columns."""
    roof = roofline.from_cells(run.cells, known)
    places = {benchmark["name"]: i for i, benchmark in enumerate(benchmarks)}
    indices = [{tuple(row["raw"]): i for i, row in enumerate(benchmark["rows"])} for benchmark in benchmarks]
    cells = run.cells[run.cells.benchmark.isin(places)]
    absent = cells[cells.status == "not measured"].benchmark.value_counts()
    cells = cells[cells.status != "not measured"]
    rows = [_index(cell, benchmarks[places[cell.benchmark]], indices[places[cell.benchmark]]) for cell in cells.itertuples()]
    # An older run may have rows and implementations that the suite has no more; asv leaves them out as well.
    here = [row is not None for row in rows]
    cells = roofline.held_by(roofline.derive(cells[np.array(here, dtype=bool)], roof))
    implementations = {name: i for i, name in enumerate(names)}
    reasons: dict[str, int] = {}
    columns: dict[str, list] = {
        "benchmark": [places[name] for name in cells.benchmark],
        "implementation": [implementations[name] for name in cells.implementation],
        "row": [row for row, kept in zip(rows, here, strict=True) if kept],
        "status": list(cells.status),
        "reason": [reasons.setdefault(str(text), len(reasons)) if pd.notna(text) else None for text in cells.reason],
        "held_by": [held if pd.notna(held) else None for held in cells.held_by],
        "text": [_text(cell) for cell in cells.itertuples()],
        "speedup": [table.speedup_words(cell) for cell in cells.itertuples()],
        "rate": [f"{numbers.significant(rate, 3)} GFLOP/s" if pd.notna(rate) else "" for rate in cells.effective_gflops],
        "limit": [numbers.percent(percent / 100) if pd.notna(percent) else "" for percent in cells.percent_of_limit],
        "details": [_details(cell) for cell in cells.itertuples()],
    }
    columns |= {name: [_number(value) for value in cells[name]] for name in NUMBERS}
    return {
        "machine": run.machine,
        "commit": run.commit,
        "environment": run.environment,
        **_provenance(run),
        "roof": {
            "compute": [[threads, dtype, rate / 1e9] for (threads, dtype), rate in roof.compute.items()],
            "copies": [
                [threads, moved, rate / 1e9] for threads in roof.copies for moved, rate in roof.copies[threads].items()
            ],
        },
        "crossovers": crossovers.sentences(cells),
        "reasons": list(reasons),
        "absent": [int(absent.get(benchmark["name"], 0)) for benchmark in benchmarks],
        "cells": columns,
    }


def _index(cell: Any, benchmark: dict[str, Any], rows: dict[tuple[str, ...], int]) -> int | None:
    """The row of a cell, None if the benchmark has it no more."""
    place = benchmark["place"]
    if cell.params[place] not in benchmark["raw"].values():
        return None
    return rows.get((*cell.params[:place], *cell.params[place + 1 :]))


def _provenance(run: results.Run) -> dict[str, Any]:
    """The date, machine, versions and thread pools of a run."""
    lines = run.lines.values()
    ended = [line["ended"] for line in lines if isinstance(line.get("ended"), (int, float))]
    versions: dict[str, str] = {}
    pools: dict[str, set[int]] = defaultdict(set)
    for line in lines:
        versions |= line.get("versions") or {}
        for pool, threads in (line.get("threads") or {}).items():
            pools[pool].add(threads)
    machine = {key: str(run.facts[key]) for key in ("cpu", "num_cpu", "ram", "os", "arch") if run.facts.get(key)}
    return {
        "measured": _day(max(ended)) if ended else f"{_day(run.date / 1000)}, the date of the commit",
        "facts": machine,
        "versions": {name: str(version) for name, version in sorted(versions.items())},
        "pools": {pool: ", ".join(map(str, sorted(threads))) for pool, threads in sorted(pools.items())},
    }


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def _text(cell: Any) -> str:
    """The median with its spread, or the status."""
    if cell.status != "ok":
        return cell.status
    return numbers.with_spread(cell.value, cell.unit, cell.spread if pd.notna(cell.spread) else None)


def _details(cell: Any) -> str:
    """Further details of a time."""
    if cell.status != "ok":
        return ""
    found = []
    if pd.notna(cell.q25) and pd.notna(cell.q75):
        quartiles = [numbers.quantity(value, cell.unit, 1e-3) for value in (cell.q25, cell.q75)]
        found.append(f"quartiles {quartiles[0]} and {quartiles[1]}")
    if isinstance(cell.samples, list):
        found.append(f"{len(cell.samples)} samples")
    if pd.notna(cell.effective_gflops):
        found.append(f"{numbers.significant(cell.effective_gflops, 3)} effective GFLOP/s")
    if pd.notna(cell.percent_of_limit):
        found.append(f"{numbers.percent(cell.percent_of_limit / 100)} of the limit, which is {cell.bound}'s")
    if cell.held_by == "overhead":
        found.append("limited by overhead: hardly slower than on the smallest problem")
    if pd.notna(cell.speedup):
        found.append(f"{numbers.ratio(cell.speedup, cell.speedup_spread)} the speed of {cell.baseline}")
    if pd.notna(cell.relative_l2):
        found.append(f"relative L2 error {cell.relative_l2:.1e}")
    if pd.notna(cell.threads):
        found.append(numbers.many(int(cell.threads), "thread"))
    return "; ".join(found)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _picture(path: Path) -> str | None:
    """A picture as a data address, None if there is none that can be read. Smaller than it was: a page is sent around.

    It is opened as PNG alone: for some of the other formats Pillow starts programs.
    """
    from PIL import Image

    written = io.BytesIO()
    try:
        with Image.open(io.BytesIO(untrusted.read_bytes(path, MAX_PICTURE_BYTES)), formats=["PNG"]) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                return None
            picture.convert("RGB").save(written, "WEBP", quality=75)
    except (untrusted.Unreadable, OSError, SyntaxError, Image.DecompressionBombError, *untrusted.FAULTS):
        return None
    return f"data:image/webp;base64,{base64.b64encode(written.getvalue()).decode()}"
