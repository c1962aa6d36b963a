"""Stored results of all machines and commits as one tidy data frame, one row per cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pandas as pd

from convbench.common import atomic_write, extras, untrusted
from convbench.common.cells import plain
from convbench.common.untrusted import Unreadable
from convbench.stored import results, roofline, table

# Every column that is always there. A benchmark's own parameters follow, each in a column param_NAME.
COLUMNS = {
    "machine": "the machine's name in the results",
    "cpu": "its processor, as it names itself",
    "commit": "full hash of the measured commit",
    "commit_date": "date of that commit, UTC",
    "environment": "asv's name of the environment",
    "benchmark": "name of the benchmark, as asv has it",
    "implementation": "value of the parameter of that name; empty where a benchmark has none",
    "status": "ok, skipped, failed or not measured",
    "reason": "why there is no value, or a reservation about it",
    "value": "median of the samples, in `unit`",
    "unit": "seconds, bytes, or what the benchmark says",
    "q25": "first quartile of the samples",
    "q75": "third quartile of the samples",
    "repeats": "number of samples, where they were recorded",
    "threads": "threads that the cell ran on",
    "device": "cpu or cuda",
    "family": "kind of algorithm: direct, im2col, winograd, fft, library, cudnn, ...",
    "label": "the problem's shape",
    "dtype": "float32 or float64",
    "flops": "nominal floating-point operations of a call",
    "bytes": "minimum number of bytes that a call moves",
    "speedup": "over the benchmark's baseline, in the same run",
    "effective_gflops": "nominal FLOPs over time, in 1e9/s",
    "percent_of_limit": "share of the limit that the roofline measured in the same run sets, in percent",
    "bound": "which limit that is: compute or memory",
    "relative_l2": "relative L2 error against the double-precision reference",
    "cold": "on a device, median seconds of a call with cold caches",
}
WRITERS = {".csv": "to_csv", ".parquet": "to_parquet"}


def frame(folder: Path) -> pd.DataFrame:
    """Everything in a results folder; unreadable files are reported on standard error and skipped."""
    known = results.benchmarks(folder)
    frames = []
    for path in results.result_files(folder):
        try:
            with untrusted.understanding(path):
                frames.append(_cells(results.load(path, known), known))
        except Unreadable as error:
            untrusted.warn(error)
    found = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    parameters = sorted(name for name in found if name.startswith("param_"))
    return found.reindex(columns=[*COLUMNS, *parameters]).convert_dtypes()


def _cells(run: results.Run, known: dict[str, dict[str, Any]]) -> pd.DataFrame:
    cells = roofline.derive(run.cells, roofline.from_cells(run.cells, known))
    named = [
        {
            f"param_{name}": plain(value)
            for name, value in zip(known[cell.benchmark]["param_names"], cell.params, strict=False)
            if name != "implementation"
        }
        for cell in cells.itertuples()
    ]
    return pd.concat([cells.drop(columns=["params", "row"]), pd.DataFrame(named, index=cells.index)], axis=1).assign(
        machine=run.machine,
        cpu=str(run.facts.get("cpu") or ""),
        commit=run.commit,
        commit_date=pd.to_datetime(run.date, unit="ms", utc=True),
        environment=run.environment,
        repeats=[len(samples) if isinstance(samples, list) else None for samples in cells.samples],
    )


def check(path: Path) -> None:
    """Raises ClickException if the path has another ending, or a library is missing."""
    if path.suffix not in WRITERS:
        raise click.ClickException(f"{path.name} must end in {' or '.join(WRITERS)}")
    if path.suffix == ".parquet":
        extras.require("Parquet", "export", "pyarrow")


def write(cells: pd.DataFrame, path: Path) -> None:
    """Write a frame in the format of the path's ending. Raises ClickException if that fails."""
    try:
        with atomic_write.whole(path) as beside:
            if path.suffix == ".csv":
                cells = cells.apply(lambda column: column.map(table.for_spreadsheet))
            getattr(cells, WRITERS[path.suffix])(beside, index=False)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror or error}") from None
    except untrusted.FAULTS as error:  # a value that this kind of file cannot hold
        raise click.ClickException(f"{path} cannot be written: {' '.join(str(error).split())}") from None
