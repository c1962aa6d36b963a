"""The file of times of one state of the code on one machine: a compressed line of JSON for each problem and process."""

from __future__ import annotations

import hashlib
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.common import untrusted
from convbench.common.untrusted import Unreadable
from convbench.speed.goals import Key
from convbench.stored import side_lines

# What decides a time: the code that is measured and the code that measures. Goals are held against times when these are read.
CODE = ("impls", "benchmarks", "meson.build", ":!benchmarks/commands/speed.toml")
TYPICAL = 15.0  # seconds a problem takes, where no file here knows it
COMMAND = "convbench speed"
# torch asks for huge pages, as NumPy always does, where this variable is 1: its times are then others, and are kept apart.
HUGE, HUGE_SUFFIX = "THP_MEM_ALLOC_ENABLE", "-huge-pages"
ENDING = f".jsonl{side_lines.COMPRESSED}"
DIGITS = 6  # significant ones that are stored: more than a clock can repeat

Lines = dict[Key, list[dict[str, Any]]]  # a line for each process that measured a problem, in their order


@dataclass(frozen=True)
class TimesFile:
    """Where the times of one state of the code on one machine lie; that state, and how it is measured, in words.

    paths: what that code is, for git.
    """

    path: Path
    machine: str
    code: str
    command: str
    paths: tuple[str, ...] = CODE

    @property
    def committed(self) -> bool:
        """Whether these are results of committed code."""
        return "--dirty" not in self.command


def find(project: Project, dirty: bool, paths: Sequence[str] = CODE, folder: str = "speed") -> TimesFile:
    """The place for the last commit that changed the code or, with `dirty`, for what is not committed.

    A commit of results or documents alone leaves the times valid. paths: what the code is, for git.
    """
    commit = (project.suite_git("rev-list", "-1", "HEAD", "--", *paths) or project.commit())[:8]
    name, huge = machine.name(), os.environ.get(HUGE) == "1"
    kind, command = (HUGE_SUFFIX, f"{HUGE}=1 {COMMAND}") if huge else ("", COMMAND)
    if not (dirty and (changed := _changes(project, paths))):
        path = project.results / name / folder / f"{commit}{kind}{ENDING}"
        return TimesFile(path, name, f"commit {commit}", command, tuple(paths))
    state = hashlib.sha256(changed.encode()).hexdigest()[:8]
    path = project.work / folder / name / f"{commit}-{state}{kind}{ENDING}"
    return TimesFile(path, name, f"commit {commit} with uncommitted changes ({state})", f"{command} --dirty", tuple(paths))


def read(path: Path) -> Lines:
    """The lines of each problem and number of threads, one for each process; a line cut short by a crash is skipped.

    A line replaces the earlier ones of the same process and of later processes.
    """
    lines: Lines = {}
    for line in _json_lines(path):
        try:
            if line.keys() >= {"cells", "date", "versions", "wall"} and all(map(_is_sound, line["cells"])):
                key, process = (line["problem"], line["threads"]), line.get("process", 1)
                lines[key] = [*lines.get(key, [])[: process - 1], line]
        except untrusted.FAULTS:
            continue
    return lines


def append(path: Path, line: dict[str, Any]) -> None:
    """Add what one process found of a problem, with no more digits than it can repeat. Raises ClickException."""
    side_lines.append([_rounded(line)], path)


def others(project: Project, file: TimesFile) -> dict[TimesFile, Lines]:
    """The other committed files of all machines that have lines, and these; the newest first."""
    found = []
    for path in project.results.glob(f"*/speed/*{ENDING}"):
        name = path.name.removesuffix(ENDING)
        if path != file.path and not name.endswith(HUGE_SUFFIX) and (lines := read(path)):
            there = TimesFile(path, path.parent.parent.name, f"commit {name}", COMMAND)
            found.append((max(line["date"] for several in lines.values() for line in several), there, lines))
    return {there: lines for _, there, lines in sorted(found, key=itemgetter(0), reverse=True)}


def walls(project: Project, file: TimesFile) -> tuple[dict[Key, float], float]:
    """The seconds that each problem took last: preferably with the same candidates and on this machine.

    A problem that was never measured counts as the mean of those most like it.
    """
    files = [path for kind in ("speed", "tune") for path in project.results.glob(f"*/{kind}/*{ENDING}")]
    files += [path for kind in ("speed", "tune") for path in (project.work / kind).glob(f"*/*{ENDING}")]
    kind = next(part for part in file.path.parts[-3:-1] if part != file.machine)
    found = []
    for path in files:
        alike = [part in path.parts[-3:-1] for part in (kind, file.machine)]
        found += [(alike, lines[-1]["date"], key, float(lines[-1]["wall"])) for key, lines in read(path).items()]
    best = max((alike for alike, *_ in found), default=None)
    typical = [wall for alike, *_, wall in found if alike == best] or [TYPICAL]
    return {key: wall for *_, key, wall in sorted(found)}, statistics.fmean(typical)


def _changes(project: Project, paths: Sequence[str]) -> str:
    """The uncommitted changes of the code, "" if there are none."""
    untracked = project.suite_git("ls-files", "-z", "--others", "--exclude-standard", "--", *paths).strip("\0").split("\0")
    texts = [f"{name}\n{(project.root / name).read_text(errors='replace')}" for name in filter(None, untracked)]
    return "".join([project.suite_git("diff", "--binary", "HEAD", "--", *paths), *texts])


def _rounded(value: Any) -> Any:
    """A value of JSON with its numbers rounded."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _json_lines(path: Path) -> list[Any]:
    try:
        return list(side_lines.json_lines(path))
    except Unreadable as error:
        untrusted.warn(error)
        return []


def _is_sound(cell: dict[str, Any]) -> bool:
    """Whether a candidate's entry has a name and a status, and numbers for samples."""
    samples = cell.get("samples", [])
    return all(isinstance(cell[key], str) for key in ("name", "status")) and all(
        isinstance(each, (int, float)) for each in samples
    )
