"""Stores in the side file of a run why a cell failed, which asv only prints."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
from pathlib import Path
from typing import Any

from asv import runner, util

from convbench.common import redact


def keep(file: Path) -> None:
    """Have asv in this process add a line to a file for each cell that failed and of which the suite said nothing itself."""
    run_one, fail_all = runner._run_benchmark_single_param, runner.fail_benchmark

    def one(benchmark: dict[str, Any], spawner: Any, place: int | None, *rest: Any, **more: Any) -> Any:
        found = run_one(benchmark, spawner, place, *rest, **more)
        if found.result == [None]:
            params = list(itertools.product(*benchmark["params"]))[place or 0]
            _add(file, benchmark["name"], params, reason(benchmark, found.errcode, found.stderr or ""))
        return found

    def all_of(benchmark: dict[str, Any], stderr: str = "", errcode: int = 1) -> Any:
        for params in itertools.product(*benchmark["params"]):
            _add(file, benchmark["name"], params, reason(benchmark, errcode, stderr))
        return fail_all(benchmark, stderr, errcode)

    runner._run_benchmark_single_param, runner.fail_benchmark = one, all_of


def reason(benchmark: dict[str, Any], status: int, printed: str) -> str:
    """Why a benchmark has no value, by the exit status of its process and what that printed."""
    if status == util.TIMEOUT_RETCODE:
        return f"timed out after {benchmark['timeout']:g} s"
    if status == 0:
        return "no value"
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    words = [line for line in lines if not line.startswith(("asv: ", "For parameters: "))]
    if status < 0 or not words:
        cause = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"its process {cause}"
    return redact.redact(words[-1])


def _add(file: Path, name: str, params: tuple[str, ...], why: str) -> None:
    """Add a line, unless the last one is of this cell. That may be half written, where its process was killed."""
    before = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    last: Any = None
    with contextlib.suppress(ValueError, IndexError):
        last = json.loads(before.splitlines()[-1])
    if not (isinstance(last, dict) and (last.get("benchmark"), last.get("params")) == (name, list(params))):
        line = json.dumps({"benchmark": name, "params": params, "status": "failed", "reason": why})
        with file.open("a", encoding="utf-8") as lines:
            print(f"\n{line}" if before and not before.endswith("\n") else line, file=lines)
