"""Writes cells into asv's file of a commit through asv's own classes, so that asv reads it as one of its own."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

from asv.results import Results
from asv.runner import BenchmarkResult

from convbench.asv import files, machine
from convbench.common.cells import Cell

Lines = dict[Cell, list[dict[str, Any]]]


def write(cells: Lines, known: dict[str, dict[str, Any]], commit: str, environment: dict[str, Any], folder: Path) -> Path:
    """Put cells into asv's file of a commit, which is made if there is none; return its path.

    known: the benchmarks. environment: what convbench.asv.build_commit says of it. folder: has a folder for each machine.
    """
    facts = machine.facts()
    about = {key: environment[key] for key in ("requirements", "python", "env_name", "env_vars")}
    params = {**facts, "python": about["python"], **about["requirements"]}
    made = Results(params=params, commit_hash=commit, date=environment["date"], **about)
    made.load_data(str(folder))
    for name in sorted({name for name, _ in cells}):
        places = list(itertools.product(*known[name]["params"]))
        here = {places.index(params): lines for (other, params), lines in cells.items() if other == name}
        values, samples, numbers = zip(*(_measured(here.get(i, [{}])) for i in range(len(places))), strict=True)
        result = BenchmarkResult(list(values), list(samples), list(numbers), errcode=0, stderr="", profile=None)
        made.add_result(known[name], result, record_samples=True, selected_idx=set(here))
    made.save(str(folder))
    return folder / facts["machine"] / files.file_name(commit, about["env_name"])


def _measured(lines: list[dict[str, Any]]) -> tuple[float, list[float] | None, int | None]:
    """A cell's value, samples and calls per sample in asv's form; calls are None without a value."""
    if lines[0].get("status") != "ok":
        return math.nan, None, None
    if "samples" not in lines[0]:
        return lines[-1]["value"], None, None
    samples = [sample for line in lines for sample in line["samples"]]
    return samples[0], samples, lines[-1]["number"]  # asv makes the value of the samples
