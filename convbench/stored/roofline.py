"""The roofline of this machine: the minimum time of a problem, from ceilings measured in the same run.

Williams, Waterman, Patterson: Roofline, an insightful visual performance model, CACM 2009.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

PRECISIONS = ("tf32", "fp16", "bf16")  # families that are named for theirs


@dataclass
class Roofline:
    """Rates by number of threads, or "cuda" for the device: FLOP/s by dtype, and bytes/s by the bytes a copy moved."""

    compute: dict[tuple[int | str, str], float] = field(default_factory=dict)
    copies: dict[int | str, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, what: dict[str, Any], threads: int, seconds: float) -> None:
        """Add a measured ceiling: the work of each thread, {"flops": ..., "dtype": ...} or {"bytes": ...}, and the
        seconds of a call; with a "device", the work of that.
        """
        where, times = (what["device"], 1) if "device" in what else (threads, threads)
        if "flops" in what:
            self.compute[where, what["dtype"]] = times * what["flops"] / seconds
        elif not what.get("fresh"):  # page faults are the allocator's cost, not a limit of the hardware
            moved = times * what["bytes"]
            self.copies[where][moved] = moved / seconds

    def floor(self, flops: float, moved: float, dtype: str, threads: int | str) -> tuple[float, str] | None:
        """The minimum seconds of a problem and its bound, "compute" or "memory"; None without ceilings.

        Bytes go at the rate of the measured copies that moved about as many, interpolated: a small problem stays in a
        cache and has the cache's limit.
        """
        rate, sizes = self.compute.get((threads, dtype)), self.copies.get(threads)
        if not rate or not sizes:
            return None
        known = sorted(sizes)
        bandwidth = np.interp(np.log(moved), np.log(known), [sizes[size] for size in known])
        by_compute, by_memory = flops / rate, float(moved / bandwidth)
        return (by_compute, "compute") if by_compute >= by_memory else (by_memory, "memory")


def from_cells(cells: pd.DataFrame, benchmarks: dict[str, dict[str, Any]]) -> Roofline:
    """Collect the ceilings among measured cells: those of benchmarks that carry an attribute `ceilings`."""
    roof = Roofline()
    for cell in cells[(cells.status == "ok") & (cells.value > 0)].itertuples():
        ceilings = benchmarks.get(cell.benchmark, {}).get("ceilings", {})
        if cell.params and cell.params[0] in ceilings and pd.notna(cell.threads):
            roof.add(ceilings[cell.params[0]], int(cell.threads), cell.value)
    return roof


def derive(cells: pd.DataFrame, roof: Roofline, baseline: str | None = None) -> pd.DataFrame:
    """Add derived figures: spread, effective GFLOP/s, speed-up, percent of the limit.

    Spread: half the interquartile range over the median. Speed-up: over the baseline, with the spread
    of both, and from its quartiles to the other's.
    Effective: nominal FLOPs over time, which for Winograd and FFT may pass the ceiling.
    """
    cells = cells.copy()
    value = cells.value.astype(float)
    quartiles = cells[["q25", "q75"]].astype(float)
    timed = (cells.status == "ok") & (cells.unit == "seconds") & (value > 0)
    cells["spread"] = ((quartiles.q75 - quartiles.q25) / 2 / value.abs()).where(value != 0)
    bases = {
        (cell.benchmark, cell.row): cell
        for cell, ok in zip(cells.itertuples(), timed, strict=True)
        if ok and pd.notna(cell.implementation) and cell.implementation == (baseline or cell.baseline)
    }
    columns = zip(cells.itertuples(), timed, strict=True)
    derived = [_derive(cell, bases.get((cell.benchmark, cell.row)), roof) if ok else {} for cell, ok in columns]
    names = (
        "speedup",
        "speedup_spread",
        "speedup_low",
        "speedup_high",
        "effective_gflops",
        "limit_seconds",
        "bound",
        "percent_of_limit",
    )
    return cells.assign(**{name: [found.get(name) for found in derived] for name in names})


def held_by(cells: pd.DataFrame) -> pd.DataFrame:
    """Add the bound of each derived cell: "compute", "memory" or "overhead"; None without a limit.

    Overhead: under half of its limit, and at least half of its time is what the same implementation needs for anything.
    """
    overheads = {
        key: _overhead(group)
        for key, group in cells[cells.percent_of_limit.notna()].groupby(["implementation", "threads", "dtype"])
    }

    def held(cell: Any) -> str | None:
        if pd.isna(cell.percent_of_limit):
            return None
        overhead = overheads[cell.implementation, cell.threads, cell.dtype]
        return "overhead" if cell.percent_of_limit < 50 and cell.value < 2 * overhead else cell.bound

    return cells.assign(held_by=[held(cell) for cell in cells.itertuples()])


def _overhead(cells: pd.DataFrame) -> float:
    """The constant overhead of an implementation in seconds: its shortest time, if four times the FLOPs take less than twice
    as long, so that the arithmetic cannot be most of it; else 0.
    """
    shortest = cells.loc[cells.value.astype(float).idxmin()]
    larger = cells[cells.flops >= 4 * shortest.flops]
    return shortest.value if (larger.value < 2 * shortest.value).any() else 0.0


def _derive(cell: Any, base: Any, roof: Roofline) -> dict[str, Any]:
    """The figures derived from a timed cell, its baseline (None without one) and the roofline."""
    found: dict[str, Any] = {}
    if base is not None:
        found["speedup"] = base.value / cell.value
        found["speedup_spread"] = float(np.hypot(base.spread, cell.spread))
        # The baseline over itself is 1, however far its samples are apart.
        if cell.implementation != base.implementation and all(map(pd.notna, (base.q25, base.q75, cell.q25, cell.q75))):
            found["speedup_low"], found["speedup_high"] = base.q25 / cell.q75, base.q75 / cell.q25
    if pd.notna(cell.flops):
        found["effective_gflops"] = cell.flops / cell.value / 1e9
    if all(map(pd.notna, (cell.flops, cell.bytes, cell.dtype, cell.threads, cell.device))):
        # Multiplication in lower precision than the arrays' is compared with the rate of that precision.
        precision = cell.family if cell.family in PRECISIONS else cell.dtype
        where = int(cell.threads) if cell.device == "cpu" else cell.device
        floor = roof.floor(cell.flops, cell.bytes, precision, where)
        if floor:
            found["limit_seconds"], found["bound"] = floor
            found["percent_of_limit"] = 100 * floor[0] / cell.value
    return found
