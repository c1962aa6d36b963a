"""Asks the suite on the working tree about one shape, and turns its answers into cells."""

from __future__ import annotations

import math
import re
from typing import Any

import click
import numpy as np
import pandas as pd
from rich.console import Console

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.common import load, numbers
from convbench.stored import results, roofline, table
from convbench.suite import ask

BASELINE = "cpu.torch"


def request(input: str, weight: str, names: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    """The question in the form the suite takes. Raises click.BadParameter for what is no shape."""
    padding = options["padding"]
    if padding != "same":
        count = 2 if "x" in padding else 1
        padding = _sizes("--padding", padding, count, "1, 1x2 or same") * (3 - count)
    return {
        **options,
        "input": _sizes("INPUT", input, 4, "1x64x56x56"),
        "weight": _sizes("WEIGHT", weight, 4, "128x64x3x3"),
        "names": list(names),
        "padding": padding,
    }


def run(project: Project, question: dict[str, Any], progress: Console) -> tuple[pd.DataFrame, table.Notes]:
    """Ask, show progress, and return the answers as cells. Raises ClickException where there is no answer."""
    disturbance = load.busy(0.3)
    roof = roofline.Roofline()
    rows = []
    for event in ask.ask(project, "try", question, progress):
        if "ceiling" in event:
            roof.add(event["ceiling"], question["threads"], event["seconds"])
        elif "cell" in event:
            rows.append(_row(event["cell"], event["problem"], question["threads"]))
    cells = roofline.derive(pd.DataFrame(rows, columns=results.COLUMNS), roof)
    cells = cells.assign(machine=machine.name(), commit=None, environment="working tree")
    there = set(cells.implementation[cells.status == "ok"])
    heading = f"working tree, {numbers.many(question['threads'], 'thread')}, nothing stored"
    if disturbance:
        heading += f"; times are too long, for this machine is busy: {disturbance}"
    return cells, table.Notes(heading, BASELINE if BASELINE in there else None)


def _row(cell: dict[str, Any], problem: dict[str, Any], threads: int) -> dict[str, Any]:
    samples = cell.get("samples")
    middle = np.percentile(samples, [25, 50, 75]) if samples else [math.nan] * 3
    return {
        "benchmark": "try",
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
        "threads": threads,
        "baseline": BASELINE,
        "device": cell.get("device"),
        "family": cell.get("family"),
        "relative_l2": cell.get("relative_l2"),
        **{key: problem[key] for key in ("label", "dtype", "flops", "bytes")},
    }


def _sizes(name: str, text: str, count: int, example: str) -> list[int]:
    if not re.fullmatch(r"\d+(x\d+)*", text) or text.count("x") != count - 1:
        what = "a number" if count == 1 else f"{count} numbers joined by x"
        raise click.BadParameter(f"{text!r} is not {what}, as in {example}", param_hint=name)
    return [int(size) for size in text.split("x")]
