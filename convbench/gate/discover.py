"""What a gate is to measure: the cells of both suites, and which of them have a time at all."""

from __future__ import annotations

import dataclasses
import itertools
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convbench.common import load
from convbench.common.cells import plain, spelling
from convbench.common.selection import Selection, check_names, select
from convbench.gate.build import SIDES, Built
from convbench.gate.workers import SIDE, START, environment

TIMEOUT = 60.0  # seconds for a call of a benchmark that does not say, as in asv
CACHE = 600.0  # seconds for a setup_cache whose suite does not say; asv's own default is a minute for everything


@dataclass(frozen=True)
class Cell:
    """One combination of a benchmark's parameters.

    id: as asv_runner addresses it. timeout: seconds for any answer. cores: how many it runs on. home: the name of the
    folder, one on each side, in which it runs: that of its setup_cache, if it has one.
    """

    benchmark: str
    params: tuple[str, ...]
    id: str
    timeout: float
    sample_time: float
    cores: int
    home: Path

    @property
    def name(self) -> str:
        """As `--bench` has it: name(parameters)."""
        return spelling((self.benchmark, self.params))

    def folder(self, side: str) -> Path:
        """Where it runs on a side."""
        return self.home.parent / side / self.home.name


@dataclass
class Suite:
    """The cells to measure, and what is not.

    listed: (name, reason) of what is not missing. By side and name, why something failed: broken has cells, unread modules.
    """

    cells: list[Cell] = field(default_factory=list)
    listed: list[tuple[str, str]] = field(default_factory=list)
    broken: dict[str, dict[str, str]] = field(default_factory=lambda: {side: {} for side in SIDES})
    unread: dict[str, dict[str, str]] = field(default_factory=lambda: {side: {} for side in SIDES})


class NoSuite(Exception):
    """A side on which the suite cannot even be listed."""

    def __init__(self, side: str, reason: str) -> None:
        super().__init__(reason)
        self.side, self.reason = side, reason


def discover(built: dict[str, Built], work: Path, selection: Selection) -> Suite:
    """Ask the head's suite, once with each side's code; run setup_cache on both.

    Raises NoSuite, and ClickException for an implementation that it lacks.
    """
    suite, known = Suite(), {}
    with ThreadPoolExecutor() as pool:  # each waits for a process of its own
        listed = {side: pool.submit(_list, built[side], side) for side in SIDES}
        before = pool.submit(_own, built["base"])
    for side in SIDES:
        known[side], suite.unread[side] = listed[side].result()
    homes: dict[str, str] = {}
    gone = before.result() - known["base"].keys() - known["head"].keys()
    suite.listed += [(name, "is gone: the suite of the base has it") for name in sorted(gone)]
    both = {**known["base"], **known["head"]}
    check_names(both, selection.implementations)
    wanted = set(select(both, selection))
    for name, benchmark in both.items():
        here = [cell for cell in _cells(benchmark, work, homes) if (cell.benchmark, cell.params) in wanted]
        if not here:
            continue
        if "ceilings" in benchmark:
            suite.listed.append((name, "measures the machine, not the code"))
        elif not benchmark["timed"]:
            suite.listed.append((name, f"has no time: its kind is {benchmark['type']}"))
        elif name not in known["base"]:
            suite.listed.append((name, "is new: it cannot be imported with the code of the base"))
        elif name not in known["head"]:
            suite.cells += here
            suite.broken["head"] |= {cell.name: "it cannot be imported any more" for cell in here}
        else:
            suite.cells += here
    for side in SIDES:
        (work / side / "run").mkdir(exist_ok=True)
        _prepare_caches(built[side], side, suite, both)
    return suite


def _own(base: Built) -> set[str]:
    """The benchmarks of the base's own suite: what the head's has no more, nobody should lose without seeing it."""
    try:
        own, _ = _list(dataclasses.replace(base, suite=base.own_suite), "own")
    except NoSuite:  # it is the head's suite that counts
        return set()
    return set(own)


def _cells(benchmark: dict[str, Any], work: Path, homes: dict[str, str]) -> list[Cell]:
    home = "run"
    if key := benchmark.get("setup_cache_key"):
        home = homes.setdefault(key, f"cache{len(homes)}")
    found = []
    for index, params in enumerate(itertools.product(*benchmark["params"])):
        named = dict(zip(benchmark["param_names"], params, strict=False))
        found.append(
            Cell(
                benchmark["name"],
                params,
                f"{benchmark['name']}-{index}" if benchmark["params"] else benchmark["name"],
                float(benchmark.get("timeout") or TIMEOUT),
                float(benchmark.get("sample_time", 0.01)),
                _cores(plain(named.get("threads", "1"))),
                work / home,
            )
        )
    return found


def _cores(threads: str) -> int:
    """Cores for a value of the parameter `threads`: as many, all that are there where it is no number."""
    have = load.cores()
    return min(int(threads), have) if threads.isdigit() and int(threads) else have


def _list(built: Built, side: str) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The suite's benchmarks by name, and its modules that cannot be imported, with the reason."""
    file = built.folder / f"benchmarks-{side}.json"
    if reason := _ask(built, ["list", str(built.suite), str(file)], built.folder, START):
        raise NoSuite(side, reason)
    content = json.loads(file.read_text(encoding="utf-8"))
    return {benchmark["name"]: benchmark for benchmark in content["benchmarks"]}, content["failed"]


def _prepare_caches(built: Built, side: str, suite: Suite, known: dict[str, dict[str, Any]]) -> None:
    sound = [cell for cell in suite.cells if not any(cell.name in lost for lost in suite.broken.values())]
    wanted = {cell.home.name: known[cell.benchmark] for cell in sound if cell.home.name != "run"}
    for home, benchmark in wanted.items():
        folder = built.folder / home
        folder.mkdir(exist_ok=True)
        verb = ["cache", str(built.suite), benchmark["name"]]
        if reason := _ask(built, verb, folder, benchmark.get("setup_cache_timeout") or CACHE):
            lost = {cell.name: f"setup_cache: {reason}" for cell in suite.cells if cell.home.name == home}
            suite.broken[side] |= lost


def _ask(built: Built, verb: list[str], folder: Path, timeout: float) -> str | None:
    """Run worker.py in a folder; None, or why it failed."""
    command = [built.python, str(SIDE), *verb]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(built, 1, 0),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"it took more than {timeout:.0f} seconds"
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return lines[-1][:300] if lines else f"it ended with status {done.returncode}"
    return None
