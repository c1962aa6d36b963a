"""Measures what docs/speed.md judges, problem by problem on the working tree, and keeps each as soon as it is finished."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import click
from rich.console import Console

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.common import interrupts, load, lock, numbers, untrusted
from convbench.common.atomic_write import whole
from convbench.speed import goals, markdown
from convbench.speed.goals import Goals, Key, Row, Times
from convbench.stored import results, side_lines
from convbench.suite import ask

# What decides a time: the code that is measured and the code that measures. Goals are held against times when these are read.
CODE = ("impls", "benchmarks", "meson.build", ":!benchmarks/commands/speed.toml")
Again = Literal["all", "disturbed"] | None  # what is measured again though it is stored
TYPICAL = 15.0  # seconds a problem takes, where no file here knows it
COMMAND = "convbench speed"
# torch asks for huge pages, as NumPy always does, where this variable is 1: its times are then others, and are kept apart.
HUGE = "THP_MEM_ALLOC_ENABLE"
BEGIN, END = "<!-- convbench speed: begin -->", "<!-- convbench speed: end -->"


@dataclass(frozen=True)
class Store:
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
        """Are these results, or drafts?"""
        return "--dirty" not in self.command


def find_store(project: Project, dirty: bool, paths: Sequence[str] = CODE, folder: str = "speed") -> Store:
    """The place for the last commit that changed the code or, with `dirty`, for what is not committed.

    A commit of results or documents alone leaves the times valid. paths: what the code is, for git.
    """
    commit = (project.git("rev-list", "-1", "HEAD", "--", *paths) or project.commit())[:8]
    name, huge = machine.facts()["machine"], os.environ.get(HUGE) == "1"
    kind, command = ("-huge-pages", f"{HUGE}=1 {COMMAND}") if huge else ("", COMMAND)
    if not (dirty and (changed := _changes(project, paths))):
        path = project.results / name / folder / f"{commit}{kind}.jsonl"
        return Store(path, name, f"commit {commit}", command, tuple(paths))
    state = hashlib.sha256(changed.encode()).hexdigest()[:8]
    path = project.work / folder / name / f"{commit}-{state}{kind}.jsonl"
    return Store(path, name, f"commit {commit} with uncommitted changes ({state})", f"{command} --dirty", tuple(paths))


def read(path: Path) -> dict[Key, list[dict[str, Any]]]:
    """The lines of each problem and number of threads, one for each process; a line cut short by a crash is passed over.

    A line takes the place of what was there of the same process, and of those that came after it.
    """
    lines: dict[Key, list[dict[str, Any]]] = {}
    for line in _json_lines(path):
        try:
            if line.keys() >= {"cells", "date", "versions", "wall"} and all(map(_is_sound, line["cells"])):
                key, process = (line["problem"], line["threads"]), line.get("process", 1)
                lines[key] = [*lines.get(key, [])[: process - 1], line]
        except untrusted.FAULTS:
            continue
    return lines


def _json_lines(path: Path) -> list[Any]:
    try:
        return list(side_lines.json_lines(path))
    except results.Unreadable as error:
        untrusted.warn(error)
        return []


def _is_sound(cell: dict[str, Any]) -> bool:
    """Whether a contender's entry has a name and a status, and numbers for samples."""
    samples = cell.get("samples", [])
    return all(isinstance(cell[key], str) for key in ("name", "status")) and all(
        isinstance(each, (int, float)) for each in samples
    )


def run(project: Project, store: Store, wanted: tuple[str, ...], again: Again, console: Console) -> int:
    """Measure what is not there yet of the wanted rows, and what is to be measured again; return how much failed.

    Once all are measured, those that are close to what a goal wants are measured in further processes. Raises ClickException
    in one sentence for everything that prevents it, and when it is interrupted.
    """
    known = goals.load(project.benchmarks / "commands" / "speed.toml")
    keys = list(dict.fromkeys((label, n) for row in known.only(wanted) for label in row.problems for n in goals.THREADS))
    failed = measure_all(project, known, store, keys, again, console)
    for process in range(2, goals.MOST + 1):
        times = Times(read(store.path))
        if close := [key for key in keys if known.processes(key, times) >= process]:
            what = f"{len(close)} of {len(keys)} measurements are close to what a goal wants of each problem"
            console.print(f"{what}: they are made in {process} processes")
            failed += measure_all(project, known, store, close, again, console, process)
    return failed


def measure_all(
    project: Project, known: Goals, store: Store, keys: list[Key], again: Again, console: Console, process: int = 1
) -> int:
    """Measure problems with their contenders, those that are not stored yet or are to be again; return how much failed.

    process: which of each problem's processes this is to be.
    """
    if store.committed:
        _require_committed(project, store.paths)
    failed, done, todo = 0, 0, keys

    def kept() -> str:
        return f"{done} of {len(todo)} measurements are made; the same command goes on from there"

    with lock.lock(project.work, project.results), interrupts.interruptible(kept), contextlib.ExitStack() as stack:
        processes: dict[int, ask.Kept] = {}  # by threads
        there, cores = {} if again == "all" else read(store.path), load.cores()
        todo = [
            key
            for key in keys
            if key[1] <= cores and not _settled(there.get(key, [])[process - 1 :], known.contenders(key[0]), again)
        ]
        walls, typical = _walls(project, store)

        def left(keys: list[Key]) -> str:
            return numbers.minutes(sum(walls.get(key, typical) for key in keys))

        estimate = f": about {left(todo)}" if todo else ""
        console.print(f"{len(todo)} of {len(keys)} measurements are to be made{estimate}")
        if cores < max(count for _, count in keys):
            console.print("only one core may be used here: what needs more is not measured", style="yellow")
        for done, key in enumerate(todo):
            title = f"[{done + 1}/{len(todo)}, {left(todo[done:])} left] {_title(key)}"
            if key[1] not in processes:
                processes[key[1]] = stack.enter_context(ask.Kept(project, "speed"))
            failed += _step(project, known, store, key, process, processes[key[1]], console, title)
    return failed


def show(project: Project, store: Store, wanted: tuple[str, ...] = ()) -> str:
    """The report of the wanted rows, or all, from what this store has. Raises ClickException where that is nothing."""
    known = goals.load(project.benchmarks / "commands" / "speed.toml")
    rows = known.only(wanted)
    if not (lines := read(store.path)):
        raise click.ClickException(f"no times of {store.code} on {store.machine}; measure it with `{store.command}`")
    return markdown.text(known, rows, Times(lines), store.machine, f"{store.code}, by `{store.command}`")


def show_all(project: Project, store: Store, wanted: tuple[str, ...] = ()) -> str:
    """The report of the wanted rows, or all: those that this store has not whole, from where they were measured last.

    Rows that promise something together are shown from where all of them were measured, if they were anywhere. Raises
    ClickException where nothing was.
    """
    known = goals.load(project.benchmarks / "commands" / "speed.toml")
    stores = {each: {label for label, _ in read(each.path)} for each in (store, *_others(project, store))}
    somewhere = [each for each, labels in stores.items() if labels] or [store]
    rows_of: dict[Store, list[Row]] = {store: []}
    for row in known.only(wanted):
        own, company = set(row.problems), {label for each in known.company(row) for label in each.problems}
        together = [each for each, labels in stores.items() if labels >= company]
        whole = [each for each, labels in stores.items() if labels >= own]
        part = [each for each, labels in stores.items() if labels & own]
        rows_of.setdefault((together or whole or part or somewhere)[0], []).append(row)
    return "\n".join(show(project, source, tuple(row.name for row in rows)) for source, rows in rows_of.items() if rows)


def _others(project: Project, store: Store) -> list[Store]:
    """The other committed stores, of all machines, the newest first."""
    found = []
    for path in project.results.glob("*/speed/*.jsonl"):
        if path != store.path and not path.stem.endswith("-huge-pages") and (lines := read(path)):
            there = Store(path, path.parent.parent.name, f"commit {path.stem}", COMMAND)
            found.append((max(line["date"] for several in lines.values() for line in several), there))
    return [there for _, there in sorted(found, key=itemgetter(0), reverse=True)]


def publish(project: Project, store: Store) -> None:
    """Put the report of all rows into docs/speed.md, between its marks. Raises ClickException where these are not."""
    path = project.root / "docs" / "speed.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise click.ClickException(f"docs/speed.md has no place for the report: the lines {BEGIN} and {END}")
    with whole(path) as beside:
        beside.write_text(f"{before}{BEGIN}\n\n{show_all(project, store)}\n{END}{after}", encoding="utf-8")


def _step(
    project: Project, known: Goals, store: Store, key: Key, process: int, kept: ask.Kept, console: Console, title: str
) -> int:
    """Measure one problem and keep it; return how many of its contenders failed, 1 where the whole of it did."""
    try:
        line = {**_measure(kept, known, key, console, f"{title}: "), "process": process}
    except click.ClickException as error:
        console.print(f"{title}: FAILED, {error.message}", highlight=False, markup=False)
        return 1
    if store.committed:  # somebody may have gone on working meanwhile
        _require_committed(project, store.paths, store)
    _append(store.path, line)
    console.print(f"{title}: {_summary(known, line)}, {line['wall']:.0f} s", highlight=False, markup=False)
    return sum(cell["status"] == "failed" for cell in line["cells"])


def _measure(process: ask.Kept, known: Goals, key: Key, console: Console, title: str) -> dict[str, Any]:
    """Ask the suite; return the line to store."""
    label, threads = key
    disturbed = load.busy(0.3)  # before the process begins: loading the libraries is no disturbance
    start, stolen = time.monotonic(), load.stolen()
    rows = known.of(label)
    question = {"operation": rows[0].operation, "problem": label, "threads": threads, "names": known.contenders(label)}
    question["seconds"] = max(row.seconds for row in rows)  # what the most careful of them asks
    question |= {"comparisons": known.comparisons(label), **known.rivals(label)}
    cells, facts = [], {}
    for event in process.ask(question, console, title):
        facts.update(event.get("facts", {}))
        if cell := event.get("cell"):
            if "samples" in cell:
                cell["samples"] = [float(f"{sample:.5g}") for sample in cell["samples"]]  # what a clock can repeat, and more
            cells.append(cell)
    wall = time.monotonic() - start
    share = (load.stolen() - stolen) / wall
    if share > load.STOLEN:
        disturbed = f"the host took {share:.0%} of the time"
    return {
        "problem": label,
        "threads": threads,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "wall": round(wall, 2),
        "disturbed": disturbed,
        "load": round(os.getloadavg()[0], 2),
        **facts,
        "cells": cells,
    }


def _append(path: Path, line: dict[str, Any]) -> None:
    """Add a line in one step, on a line of its own even where a crash has left half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = not path.is_file() or path.read_bytes()[-1:] in (b"", b"\n")
    with open(path, "a", encoding="utf-8", opener=_through_no_link) as file:
        file.write("\n" * (not whole) + json.dumps(line) + "\n")


def _through_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _settled(lines: Sequence[dict[str, Any]], names: Sequence[str], again: Again) -> bool:
    """Does the first of these say of everybody how fast it is or why it takes no part? Who failed is measured again."""
    if not lines or (again and lines[0].get("disturbed")):
        return False
    status = {cell["name"]: cell["status"] for cell in lines[0]["cells"]}
    return all(status.get(name) in ("ok", "skipped") for name in names)


def _require_committed(project: Project, paths: Sequence[str], store: Store | None = None) -> None:
    """Raise ClickException where code is not committed, or is no longer that of the store."""
    if changed := project.git("status", "--porcelain", "--", *paths):
        raise click.ClickException(
            f"uncommitted changes, and times are kept by commit: {changed.split()[1]}; "
            "commit them, or say --dirty to measure them and keep the times in .convbench"
        )
    if store and find_store(project, False, paths, store.path.parent.name) != store:
        raise click.ClickException("another commit has changed the code meanwhile; the same command measures that one")


def _changes(project: Project, paths: Sequence[str]) -> str:
    """All that is not committed of the code, "" where everything is."""
    others = project.git("ls-files", "-z", "--others", "--exclude-standard", "--", *paths).strip("\0").split("\0")
    texts = [f"{name}\n{(project.root / name).read_text(errors='replace')}" for name in filter(None, others)]
    return "".join([project.git("diff", "--binary", "HEAD", "--", *paths), *texts])


def _walls(project: Project, store: Store) -> tuple[dict[Key, float], float]:
    """The seconds that each problem last took: for the like, with as many contenders, and here, rather than elsewhere.

    And what one takes that is not among them: the mean of those that are most like it.
    """
    files = [path for kind in ("speed", "tune") for path in project.results.glob(f"*/{kind}/*.jsonl")]
    files += [path for kind in ("speed", "tune") for path in (project.work / kind).glob("*/*.jsonl")]
    kind = next(part for part in store.path.parts[-3:-1] if part != store.machine)
    found = []
    for path in files:
        alike = [part in path.parts[-3:-1] for part in (kind, store.machine)]
        found += [(alike, lines[-1]["date"], key, float(lines[-1]["wall"])) for key, lines in read(path).items()]
    best = max((alike for alike, *_ in found), default=None)
    typical = [wall for alike, *_, wall in found if alike == best] or [TYPICAL]
    return {key: wall for *_, key, wall in sorted(found)}, statistics.fmean(typical)


def _summary(known: Goals, line: dict[str, Any]) -> str:
    """How ours did, in the rows that the problem belongs to; the fastest, where ours is the baseline, as in tuning."""
    key = label, threads = line["problem"], line["threads"]
    times = Times({key: [line]})
    named = [name for name in times.names(label, threads) if name not in goals.BOUNDS and not name.endswith(goals.PACKED)]
    medians = {name: times.cell(label, threads, name).median for name in named}
    timed = {name: median for name, median in medians.items() if not math.isnan(median)}
    said = []
    for row in known.of(label):
        ours = row.ours if row.ours != row.baseline or row.ours not in timed else min(timed, key=timed.__getitem__)
        ratio = times.ratio(label, threads, row.baseline, ours)
        status = times.cell(label, threads, ours).status
        said.append(f"{ours} {status if math.isnan(ratio) else goals.times_faster(ratio)}")
    return ", ".join(said)


def _title(key: Key) -> str:
    return f"{key[0]}, {numbers.many(key[1], 'thread')}"
