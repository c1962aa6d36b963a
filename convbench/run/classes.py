"""Measures one commit through asv: its build, then class by class in a private folder; and what runs that do so share."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import filelock
from asv.results import get_filename
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from convbench.asv import git
from convbench.asv.project import Project
from convbench.common import atomic_write, session_guard, terminal
from convbench.run import plan, recover
from convbench.stored import results

GRACE = 10  # seconds asv gets to end by itself when interrupted, before all its processes are killed
LITTLE = 1 << 20  # bytes that are left on a disk which counts as full

KILLED = "the process that starts the cells was killed, for want of memory most likely"
PINNED = "Could not find a version that satisfies"
# Words in a build's log, and what they mean for the person who reads them.
CAUSES = {
    "Unknown compiler(s)": "no C compiler was found, and the Cython kernels need one: install gcc or clang",
    "No space left on device": "the disk is full",
    "File too large": "no file may grow as large here as one of asv's has to",
    "Killed signal terminated program": "the compiler was killed, for want of memory most likely",
    PINNED: "asv.conf.json pins a library that this Python cannot have",
    "Temporary failure in name resolution": "the package index cannot be reached, and asv's environment is installed from it",
    # asv says the one or the other, by which of them it notices first.
    "did not receive data from socket": KILLED,
    "Process exited with code -9": KILLED,
}


class Interrupted(Exception):
    """The user pressed Ctrl-C, or the run was asked to end."""


class Unbuilt(Exception):
    """A commit does not build; its text is the builder's last words, without the places of this machine."""

    def __init__(self, reason: str, environments: list[str]) -> None:
        super().__init__(reason)
        self.environments = environments


@dataclass(frozen=True)
class Place:
    """Where a run works: for which project, on which machine, in which private folder; and whom it tells."""

    project: Project
    machine: str
    work: Path
    console: Console

    @property
    def stored(self) -> Path:
        """The machine's results, where everybody reads."""
        return self.project.results / self.machine

    @property
    def private(self) -> Path:
        """The machine's results while asv writes them."""
        return self.work / self.machine


@dataclass(frozen=True)
class Built:
    """A commit that is ready to be measured: what asv knows of its benchmarks, and what its files say of its environments."""

    commit: str
    known: dict[str, dict[str, Any]]
    environments: list[dict[str, Any]]

    def file(self, folder: Path, commit: str | None = None) -> Path | None:
        """Its results in a machine's folder, or another commit's: the newest, should there be several environments."""
        names = [get_filename("", commit or self.commit, environment["env_name"]) for environment in self.environments]
        found = [folder / name for name in names if (folder / name).is_file()]
        return max(found, key=lambda path: path.stat().st_mtime, default=None)


def build(place: Place, commit: str) -> Built:
    """Build a commit and list its benchmarks. Raises Unbuilt, or ClickException where it is no fault of the commit's."""
    log, outcome = place.work / "build.log", place.work / "build.json"
    outcome.unlink(missing_ok=True)
    arguments = [str(place.project.file), str(place.work), commit, place.machine]
    for _ in _running(place, ["convbench.asv.build_commit", *arguments], log):
        pass
    found = json.loads(outcome.read_text(encoding="utf-8"))
    if found["reason"]:
        reason = atomic_write.without_places(found["reason"])
        if (fault := cause(log)) and fault != CAUSES[PINNED]:  # what asv.conf.json pins was installed before
            raise click.ClickException(f"{fault} {reason}")
        raise Unbuilt(reason, [environment["env_name"] for environment in found["environments"]])
    return Built(commit, results.benchmarks(place.work), found["environments"])


def step(place: Place, built: Built, step: plan.Step, title: str) -> int:
    """Measure one class into the private folder, then move its files to where everybody reads. How many cells failed.

    Cut short, it keeps the cells that were finished. Raises ClickException where asv ends before its time, or what it
    measured cannot be stored.
    """
    _begin_with_what_is_stored(place, built)
    side, log = place.work / "cells.jsonl", place.work / "asv.log"
    side.unlink(missing_ok=True)
    before = time.time()
    total = len(step.cells) * step.rounds
    asv = ["convbench.asv.isolated", str(place.work), "run", f"{built.commit}^!", "--bench", step.pattern()]
    asv += ["--machine", place.machine, "--record-samples", "--config", str(place.project.file)]
    variables = {"CONVBENCH_CELLS": str(side), "CONVBENCH_DEVICES": ",".join(_devices(built, step))}
    try:
        with _progress(place.console) as progress, contextlib.closing(_running(place, asv, log, variables)) as running:
            task = progress.add_task(title, total=total, now="")
            for _ in running:
                line = plan.last_line(side)
                now = terminal.line(", ".join(results.plain(value) for value in line.get("params", [])))
                progress.update(task, completed=min(plan.count_lines(side), total), now=now)
            progress.update(task, completed=total, now="")
    except (KeyboardInterrupt, Interrupted, click.ClickException):
        try:
            kept = f"{_keep_finished(place, built, step, side)} of its cells are kept"
        except Exception as error:  # why the class was cut short says more
            kept = f"none of its cells could be kept: {error}"
        place.console.print(f"{title}: cut short, {kept}", highlight=False, markup=False)
        raise
    produced = built.file(place.private)
    if produced is None or produced.stat().st_mtime < before:
        raise click.ClickException(f"asv wrote no results for {step.name}; its output: {tail(log)}")
    target = place.stored / produced.name
    lines = results.side_lines(side)
    _strike(produced, [cell for cell, line in lines.items() if line["status"] == "failed"])
    if side.is_file():
        atomic_write.append(side, results.side_file(target))
    atomic_write.publish(produced, target)
    cells, asked = results.load(target, built.known).cells, set(step.cells)
    status = [cell.status for cell in cells.itertuples() if (cell.benchmark, cell.params) in asked]
    failed, times = status.count("failed"), status.count("ok")
    done = f"{times} times, {len(status) - times - failed} left out, {failed} FAILED"
    place.console.print(f"{title}: {done}, {plan.minutes(time.time() - before)}", highlight=False, markup=False)
    return failed


def _begin_with_what_is_stored(place: Place, built: Built) -> None:
    """Have the commit's stored results in the private folder and no others."""
    for old in place.private.glob("*-*.json"):
        old.unlink()
    if there := built.file(place.stored):
        shutil.copy2(there, place.private)


def _keep_finished(place: Place, built: Built, step: plan.Step, side: Path) -> int:
    """Keep the cells that were finished when their class was cut short; how many. None of several environments': side files
    do not tell them apart.
    """
    cells = recover.finished(side, step.rounds)
    if not cells or len(built.environments) > 1:
        return 0
    _begin_with_what_is_stored(place, built)  # asv may have written there, and been stopped while it did
    produced = recover.store(cells, built.known, built.commit, built.environments[0], place.work)
    side.write_text("".join(json.dumps(line) + "\n" for lines in cells.values() for line in lines), encoding="utf-8")
    target = place.stored / produced.name
    atomic_write.append(side, results.side_file(target))
    atomic_write.publish(produced, target)
    return len(cells)


def _devices(built: Built, step: plan.Step) -> list[str]:
    """Where a step's implementations compute, "cpu", "cuda" or both: what its processes import before they begin."""
    found = set()
    for name, params in step.cells:
        benchmark = built.known[name]
        own = results.plain(dict(zip(benchmark.get("param_names", []), params, strict=False)).get("implementation", ""))
        found.add(benchmark.get("implementations", {}).get(own, benchmark).get("device", "cpu"))
    return sorted(found)


def _strike(produced: Path, failed: list[plan.Cell]) -> None:
    """Take the times of failed cells out of asv's file: asv keeps those of the process that did not fail."""
    content = json.loads(produced.read_text(encoding="utf-8"))
    columns = content["result_columns"]
    for name, params in failed:
        row = content["results"].get(name)
        if not row:
            continue
        place = list(itertools.product(*row[columns.index("params")])).index(params)
        for column in [c for c in columns if c in ("result", "samples") or c.startswith("stats_")]:
            values = row[columns.index(column)] if columns.index(column) < len(row) else None
            if values:
                values[place] = None
    produced.write_text(json.dumps(content), encoding="utf-8")


def _running(place: Place, command: list[str], log: Path, variables: dict[str, str] | None = None) -> Generator[None]:
    """Run asv, by a module of ours; yields while it runs and leaves no process behind, however it ends, or we do.

    asv's own exit status 2 means that a benchmark failed, which the side file tells better.
    """
    environment = git.environment({**os.environ, "CONVBENCH_RUN": f"{time.time():.0f}", **(variables or {})})
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "convbench.common.session_guard", *command],
            cwd=place.project.root,
            env=environment,
            stdin=subprocess.PIPE,  # closed when we are gone, by which the other side knows
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                yield
                time.sleep(0.2)
        finally:
            end(process)
    if process.returncode not in (0, 2):
        # A log on a full disk has no room for the reason.
        reason = "the disk is full" if shutil.disk_usage(place.work).free < LITTLE else cause(log)
        ended = f"asv ended with status {process.returncode}"
        raise click.ClickException(f"{reason}; {ended}, and its output is in {log}" if reason else f"{ended}: {tail(log)}")


def end(process: subprocess.Popen) -> None:
    """End a process and every process it started: all of them are in a session of their own."""
    try:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
    finally:  # also where the user cannot wait for that
        session_guard.end_session(process.pid)
        process.wait()
        if process.stdin:
            process.stdin.close()


@contextlib.contextmanager
def lock(project: Project) -> Iterator[None]:
    """One run at a time: two would share the cores they measure."""
    try:
        project.work.mkdir(parents=True, exist_ok=True)
        project.results.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(project.work / "lock", timeout=0):
            yield
    except filelock.Timeout:
        raise click.ClickException(
            "another `convbench run`, `gate` or `speed` is measuring here; two at once would disturb each other"
        ) from None
    except OSError as error:
        raise click.ClickException(f"cannot write to {error.filename or project.work}: {error.strerror}") from None


@contextlib.contextmanager
def termination() -> Iterator[None]:
    """A polite kill ends what is done here as Ctrl-C does."""

    def interrupt(*_):
        raise Interrupted

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextlib.contextmanager
def interruptible(say: Callable[[], str]) -> Iterator[None]:
    """Ctrl-C and a polite kill end what is done here in one sentence, which says what is kept."""
    with termination():
        try:
            yield
        except (KeyboardInterrupt, Interrupted):
            raise click.ClickException(f"interrupted: {say()}") from None


def cause(log: Path) -> str:
    """What to do about a build that failed, where its log is clear about it."""
    text = log.read_text(errors="replace")
    return next((sentence for words, sentence in CAUSES.items() if words in text), "")


def tail(log: Path) -> str:
    """The last words of a log that say something."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return " / ".join(lines[-6:])[-800:] or "it printed nothing"


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
