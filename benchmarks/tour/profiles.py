"""Profiles of one implementation by `convbench profile`, in a process of its own: what it prints, and its files."""

from __future__ import annotations

import pstats
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.commands import fork_server
from benchmarks.harness import cell
from benchmarks.tour.steps import Lacking

MAX_LINES = 24  # of a table that is shown


class Profile(NamedTuple):
    """What was printed, the first line of it, and the contents of the files by the options that name them."""

    text: str
    files: dict[str, bytes]


def profile(words: Sequence[str], files: Sequence[str] = ()) -> Profile:
    """Run `convbench profile` with these words. files: options that name a file, as in "--native", which is then read.

    Raises Lacking in the command's own words where it cannot be run or fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = {option: Path(folder, f"file{option}") for option in files}
        named = [word for option, path in paths.items() for word in (option, str(path))]
        command = [sys.executable, "-m", "convbench", "profile", *words, *named]
        done = subprocess.run(
            command, cwd=cell.CHECKOUT, capture_output=True, text=True, check=False, preexec_fn=fork_server.end_with_parent
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["it printed nothing"]
            raise Lacking(lines[-1].removeprefix("Error: "))
        found = {option: path.read_bytes() for option, path in paths.items()}
    kept = [line for line in done.stdout.splitlines() if folder not in line]
    return Profile("\n".join(_shortened(kept)), found)


def functions(content: bytes) -> dict[str, tuple[int, float, float]]:
    """Calls, own and cumulative seconds by the name of a function, of a profile in pstats's format.

    Functions of one name are added up.
    """
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        stats: dict[Any, Any] = pstats.Stats(file.name).stats  # type: ignore[attr-defined]
    found: dict[str, tuple[int, float, float]] = {}
    for (_, _, name), (_, calls, own, cumulative, _) in stats.items():
        before = found.get(name, (0, 0.0, 0.0))
        found[name] = before[0] + calls, before[1] + own, before[2] + cumulative
    return found


def stacks(flame_graph: str, function: str) -> tuple[int, int]:
    """How many stacks py-spy took, and in how many of them a function stands."""
    whole = re.search(r'total_samples="(\d+)"', flame_graph)
    there = re.findall(rf"<title>{re.escape(function)} \([^<]*\(([\d,]+) samples", flame_graph)
    return int(whole[1]) if whole else 0, sum(int(each.replace(",", "")) for each in there)


def _shortened(lines: list[str]) -> list[str]:
    return lines if len(lines) <= MAX_LINES else [*lines[:MAX_LINES], f"... {len(lines) - MAX_LINES} more lines"]
