"""Prints cells by torch.utils.benchmark.Compare: one row per size, one column per implementation, one block per thread
count.

https://docs.pytorch.org/docs/stable/benchmark_utils.html
"""

from __future__ import annotations

from typing import Any

import click
import pandas as pd

from convbench.common.cells import plain
from convbench.stored import table


def compare(cells: pd.DataFrame, benchmarks: dict[str, dict[str, Any]]) -> str:
    """A table for each benchmark that has times, in one unit each and with the digits that the spread supports; below them
    the reasons of cells that have none.

    Raises ClickException if torch is missing or nothing has a time.
    """
    try:
        from torch.utils.benchmark import Compare, Measurement, TaskSpec
    except ImportError as error:
        raise click.ClickException(
            f"this layout is torch's, and it cannot be imported: {error}; pip install torch==2.13.0"
        ) from None
    measured = []
    for cell in cells[(cells.status == "ok") & (cells.unit == "seconds")].itertuples():
        names = benchmarks[cell.benchmark].get("param_names", [])
        named = {name: plain(value) for name, value in zip(names, cell.params, strict=False)}
        others = [value for name, value in named.items() if name not in ("implementation", "threads", "workers")]
        workers = named.get("workers", "").strip("'")  # a reader's own workers, in place of the pool's threads
        count = int(workers) if workers.isdecimal() else cell.threads
        task = TaskSpec(
            stmt=cell.benchmark,
            setup="",
            label=cell.benchmark,
            sub_label=", ".join(others) or "time",
            description=cell.implementation if isinstance(cell.implementation, str) else "time",
            num_threads=int(count) if pd.notna(count) else 1,
        )
        samples = cell.samples if isinstance(cell.samples, list) else [cell.value]
        measured.append(Measurement(number_per_run=1, raw_times=samples, task_spec=task))
    if not measured:
        raise click.ClickException("none of these cells has a time")
    shown = Compare(measured)
    shown.trim_significant_figures()
    shown.highlight_warnings()
    return "\n".join([str(shown), *table.reasons(cells)])
