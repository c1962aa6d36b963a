"""Asks the suite on the working tree about one problem, and turns its answers into cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.common import load, numbers
from convbench.stored import results, roofline, table
from convbench.suite import ask


def run(project: Project, question: dict[str, Any], progress: Console) -> tuple[pd.DataFrame, table.Notes]:
    """Ask, show progress, and return the answers as cells. Raises ClickException if there is no answer."""
    disturbance = load.busy(0.3)
    roof = roofline.Roofline()
    rows, baseline = [], None
    for event in ask.ask(project, "try", question, progress):
        if "ceiling" in event:
            roof.add(event["ceiling"], question["threads"], event["seconds"])
        elif "cell" in event:
            baseline = event["baseline"]
            rows.append(_row(event["cell"], event["problem"], question, baseline))
    cells = roofline.derive(pd.DataFrame(rows, columns=results.COLUMNS), roof)
    cells = cells.assign(machine=machine.name(), commit=None, environment="working tree")
    there = set(cells.implementation[cells.status == "ok"])
    heading = f"working tree, {numbers.many(question['threads'], 'thread')}, nothing stored"
    if disturbance:
        heading += f"; times are too long because this machine is busy: {disturbance}"
    return cells, table.Notes(heading, baseline if baseline in there else None)


def _row(cell: dict[str, Any], problem: dict[str, Any], question: dict[str, Any], baseline: str) -> dict[str, Any]:
    samples = cell.get("samples")
    middle = np.percentile(samples, [25, 50, 75]) if samples else [math.nan] * 3
    return {
        "benchmark": question["operation"],
        "params": (repr(cell["name"]), repr(problem["label"])),
        "implementation": cell["name"],
        "row": (problem["label"],),
        "status": cell["status"],
        "reason": cell.get("reason"),
        "value": float(middle[1]),
        "q25": float(middle[0]),
        "q75": float(middle[2]),
        "samples": samples,
        "unit": "seconds",
        "threads": question["threads"],
        "baseline": baseline,
        "device": cell.get("device"),
        "family": cell.get("family"),
        "relative_l2": cell.get("relative_l2"),
        "cold": cell.get("cold"),
        **{key: problem[key] for key in ("label", "dtype", "flops", "bytes")},
    }
