"""The side file: facts that asv's own file cannot hold, one JSON line per cell and process.

asv keeps neither reasons nor messages nor the state of the machine. `convbench run` names the file in CONVBENCH_CELLS;
without it nothing is written and the suite works all the same.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

LIBRARIES = (
    *("Cython", "asv_runner", "convbench", "numba", "numpy", "opencv-python-headless", "rasterio", "scikit-image"),
    *("scipy", "tifffile", "torch"),
    # CuPy's packages are named for the CUDA that they are built for.
    *("cupy", "cupy-cuda12x", "cupy-cuda13x", "numba-cuda", "nvidia-cublas", "nvidia-cuda-runtime", "nvidia-cudnn-cu13"),
    *("nvidia-cudnn-cu12", "triton"),
)
STOLEN = 0.1  # share of a cell's time that the host may take before the figure is marked
MAX_REASON_CHARACTERS = 500  # a traceback belongs in asv's own output


class SideFileLine:
    """One cell in one process, from its preparation to its verdict; written by close()."""

    def __init__(self, benchmark: str, params: list[str]) -> None:
        self.facts: dict[str, Any] = {"benchmark": benchmark, "params": params}
        self._start = time.perf_counter()
        self._steal = _steal()

    def close(self, status: str, reason: str | None = None, **facts: Any) -> None:
        """Append the line. status: ok, skipped or failed; reason in words if it is not ok, or ok with a reservation."""
        path = os.environ.get("CONVBENCH_CELLS")
        if not path:
            return
        stolen, wall = _steal() - self._steal, time.perf_counter() - self._start
        if status == "ok" and stolen > STOLEN * wall:
            taken = f"the host took {stolen / wall:.0%} of the time while this was measured"
            reason = f"{reason}; {taken}" if reason else taken
        facts = {
            **self.facts,
            "run": os.environ.get("CONVBENCH_RUN"),
            "status": status,
            "reason": reason and " ".join(reason.split())[:MAX_REASON_CHARACTERS],
            **facts,
            "load": round(os.getloadavg()[0], 2),
            "steal": round(stolen, 2),
            "mhz": _mhz(),
            "versions": versions(),
            "ended": round(time.time(), 3),
            "wall": round(wall, 6),
        }
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(facts) + "\n")


@functools.cache
def versions() -> dict[str, str]:
    """The versions of Python and of the libraries that are installed."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _steal() -> float:
    """Seconds the host has taken from this machine's cores since it started; 0 if it does not say."""
    try:
        with Path("/proc/stat").open() as file:
            return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


def _mhz() -> int | None:
    """The present frequency of a core this process may run on, where the system says."""
    try:
        core = max(os.sched_getaffinity(0))
        return int(Path(f"/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq").read_text()) // 1000
    except (OSError, ValueError, AttributeError):
        return None
