"""Measures the problems of docs/speed.md on the working tree, and stores each as soon as it is finished."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import click
from rich.console import Console

from convbench.asv.project import Project
from convbench.common import interrupts, load, lock, numbers
from convbench.common.atomic_write import whole
from convbench.speed import goals, markdown, times_file
from convbench.speed.goals import Goals, Key, Row, Times
from convbench.speed.times_file import Lines, TimesFile
from convbench.suite import ask

Again = Literal["all", "disturbed"] | None  # which stored measurements are repeated
BEGIN, END = "<!-- convbench speed: begin -->", "<!-- convbench speed: end -->"


def run(project: Project, file: TimesFile, wanted: tuple[str, ...], again: Again, console: Console) -> int:
    """Measure missing times of the selected rows, and those to repeat; return the number of failures.

    Once all are measured, those that are close to a goal are measured in further processes. Raises ClickException
    in one sentence for everything that prevents it, and when it is interrupted.
    """
    known = _goals(project)
    keys = list(dict.fromkeys((label, n) for row in known.only(wanted) for label in row.problems for n in goals.THREADS))
    failed = measure_all(project, known, file, keys, again, console)
    for process in range(2, goals.MAX_PROCESSES + 1):
        times = Times(times_file.read(file.path))
        if close := [key for key in keys if known.processes(key, times) >= process]:
            what = f"{len(close)} of {len(keys)} measurements are close to a goal for each problem"
            console.print(f"{what}: they are made in {process} processes")
            failed += measure_all(project, known, file, close, again, console, process)
    return failed


def measure_all(
    project: Project, known: Goals, file: TimesFile, keys: list[Key], again: Again, console: Console, process: int = 1
) -> int:
    """Measure problems with their candidates, those that are not stored yet or are to be again; return how much failed.

    process: which of each problem's processes this is to be.
    """
    if file.committed:
        _require_committed(project, file.paths)
    failed, done, todo = 0, 0, keys

    def kept() -> str:
        return f"{done} of {len(todo)} measurements are made; the same command resumes there"

    with lock.lock(project.work, project.results), interrupts.interruptible(kept), contextlib.ExitStack() as stack:
        processes: dict[int, ask.ForkServer] = {}  # by threads
        there, cores = {} if again == "all" else times_file.read(file.path), load.cores()
        todo = [
            key
            for key in keys
            if key[1] <= cores and not _settled(there.get(key, [])[process - 1 :], known.candidates(key[0]), again)
        ]
        walls, typical = times_file.walls(project, file)

        def left(keys: list[Key]) -> str:
            return numbers.minutes(sum(walls.get(key, typical) for key in keys))

        estimate = f": about {left(todo)}" if todo else ""
        console.print(f"{len(todo)} of {len(keys)} measurements are to be made{estimate}")
        if cores < max(count for _, count in keys):
            console.print("only one core may be used here: rows with more threads are not measured", style="yellow")
        for done, key in enumerate(todo):
            title = f"[{done + 1}/{len(todo)}, {left(todo[done:])} left] {_title(key)}"
            if key[1] not in processes:
                processes[key[1]] = stack.enter_context(ask.ForkServer(project, "speed"))
            failed += _measure_and_store(project, known, file, key, process, processes[key[1]], console, title)
    return failed


def show(project: Project, file: TimesFile, wanted: tuple[str, ...] = ()) -> str:
    """The report of the wanted rows, or all, from what this file has. Raises ClickException if that is nothing."""
    known = _goals(project)
    return _text(known, known.only(wanted), file, times_file.read(file.path))


def show_all(project: Project, file: TimesFile, wanted: tuple[str, ...] = ()) -> str:
    """The report of the wanted rows, or all: those that this file has not whole, from where they were measured last.

    Rows with a common goal are shown from one machine that measured all of them, if there is one. Raises
    ClickException if nothing was measured.
    """
    known = _goals(project)
    lines = {file: times_file.read(file.path), **times_file.others(project, file)}
    labels = {each: {label for label, _ in found} for each, found in lines.items()}
    somewhere = [each for each, found in labels.items() if found] or [file]
    rows_of: dict[TimesFile, list[Row]] = {file: []}
    for row in known.only(wanted):
        own, company = set(row.problems), {label for each in known.company(row) for label in each.problems}
        together = [each for each, found in labels.items() if found >= company]
        whole = [each for each, found in labels.items() if found >= own]
        part = [each for each, found in labels.items() if found & own]
        rows_of.setdefault((together or whole or part or somewhere)[0], []).append(row)
    return "\n".join(_text(known, rows, each, lines[each]) for each, rows in rows_of.items() if rows)


def _goals(project: Project) -> Goals:
    return goals.load(project.benchmarks / "commands" / "speed.toml")


def _text(known: Goals, rows: Sequence[Row], file: TimesFile, lines: Lines) -> str:
    if not lines:
        raise click.ClickException(f"no times of {file.code} on {file.machine}; measure it with `{file.command}`")
    return markdown.text(known, rows, Times(lines), file.machine, f"{file.code}, by `{file.command}`")


def publish(project: Project, file: TimesFile) -> None:
    """Put the report of all rows into docs/speed.md, between its marks. Raises ClickException if these are not."""
    path = project.root / "docs" / "speed.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise click.ClickException(f"docs/speed.md has no place for the report: the lines {BEGIN} and {END}")
    with whole(path) as beside:
        beside.write_text(f"{before}{BEGIN}\n\n{show_all(project, file)}\n{END}{after}", encoding="utf-8")


def _measure_and_store(
    project: Project,
    known: Goals,
    file: TimesFile,
    key: Key,
    process: int,
    server: ask.ForkServer,
    console: Console,
    title: str,
) -> int:
    """Measure one problem and keep it; return how many of its candidates failed, 1 if the whole of it did."""
    try:
        line = {**_measure(server, known, key, console, f"{title}: "), "process": process}
    except click.ClickException as error:
        console.print(f"{title}: FAILED, {error.message}", highlight=False, markup=False)
        return 1
    if file.committed:  # the working tree may have changed meanwhile
        _require_committed(project, file.paths, file)
    times_file.append(file.path, line)
    console.print(f"{title}: {_summary(known, line)}, {line['wall']:.0f} s", highlight=False, markup=False)
    return sum(cell["status"] == "failed" for cell in line["cells"])


def _measure(process: ask.ForkServer, known: Goals, key: Key, console: Console, title: str) -> dict[str, Any]:
    """Ask the suite; return the line to file."""
    label, threads = key
    disturbed = load.busy(0.3)  # measured before the process starts: loading the libraries is not a disturbance
    start, stolen = time.monotonic(), load.stolen()
    rows = known.of(label)
    question = {"operation": rows[0].operation, "problem": label, "threads": threads, "names": known.candidates(label)}
    question["seconds"] = max(row.seconds for row in rows)  # the strictest of their requirements
    question |= {"comparisons": known.comparisons(label), **known.rivals(label)}
    cells, facts = [], {}
    for event in process.ask(question, console, title):
        facts.update(event.get("facts", {}))
        if cell := event.get("cell"):
            cells.append(cell)
    wall = time.monotonic() - start
    share = (load.stolen() - stolen) / wall
    if share > load.MAX_STOLEN_SHARE:
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


def _settled(lines: Sequence[dict[str, Any]], names: Sequence[str], again: Again) -> bool:
    """Whether the first line has a time or a reason for each candidate. Failed ones are measured again."""
    if not lines or (again and lines[0].get("disturbed")):
        return False
    status = {cell["name"]: cell["status"] for cell in lines[0]["cells"]}
    return all(status.get(name) in ("ok", "skipped") for name in names)


def _require_committed(project: Project, paths: Sequence[str], file: TimesFile | None = None) -> None:
    """Raise ClickException if code is not committed, or is no longer that of the file."""
    if changed := project.suite_git("status", "--porcelain", "--", *paths):
        raise click.ClickException(
            f"uncommitted changes, and times are kept by commit: {changed.split()[1]}; "
            "commit them, or use --dirty to measure them and keep the times in .convbench"
        )
    if file and times_file.find(project, False, paths, file.path.parent.name) != file:
        raise click.ClickException(
            "the code was changed by another commit during the run; the same command measures that one"
        )


def _summary(known: Goals, line: dict[str, Any]) -> str:
    """The result of ours in the rows that the problem belongs to; the fastest, where ours is the baseline, as in tuning."""
    key = label, threads = line["problem"], line["threads"]
    times = Times({key: [line]})
    named = [name for name in times.names(label, threads) if name not in goals.BOUNDS and not name.endswith(goals.PACKED)]
    medians = {name: times.result(label, threads, name).median for name in named}
    timed = {name: median for name, median in medians.items() if not math.isnan(median)}
    said = []
    for row in known.of(label):
        ours = row.ours if row.ours != row.baseline or row.ours not in timed else min(timed, key=timed.__getitem__)
        ratio = times.ratio(label, threads, row.baseline, ours)
        status = times.result(label, threads, ours).status
        said.append(f"{ours} {status if math.isnan(ratio) else goals.times_faster(ratio)}")
    return ", ".join(said)


def _title(key: Key) -> str:
    return f"{key[0]}, {numbers.many(key[1], 'thread')}"
