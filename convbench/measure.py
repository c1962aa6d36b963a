"""Measures a commit through asv so that nothing finished is ever lost."""

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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import filelock
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from convbench import machine, plan, results
from convbench.project import Project

GRACE = 10  # seconds asv gets to end by itself when interrupted, before its whole process group is killed

# Words in a build's log, and what they mean for the person who reads them.
CAUSES = {
    "Unknown compiler(s)": "no C compiler was found, and the Cython kernels need one: install gcc or clang",
    "No space left on device": "the disk is full",
    "Could not find a version that satisfies": "asv.conf.json pins a library that this Python cannot have",
    "Temporary failure in name resolution": "the package index cannot be reached, and asv's environment is installed from it",
}


class Interrupted(Exception):
    """The user pressed Ctrl-C, or the run was asked to end."""


@dataclass
class Outcome:
    """What a run came to."""

    file: Path | None = None
    failed: int = 0


def measure(project: Project, selection: plan.Selection, again: bool, busy: bool, console: Console) -> Outcome:
    """Measure the selected cells of HEAD that are not there yet; `again` measures them all anew.

    Raises ClickException in one sentence for everything that prevents it.
    """
    commit = project.commit()
    if changed := project.git("status", "--porcelain", "--", str(project.benchmarks), "asv.conf.json"):
        # What is measured is the commit; what measures is the checkout, and results must say which.
        raise click.ClickException(f"the suite has uncommitted changes, and results are kept by commit: {changed.split()[1]}")
    if project.git("status", "--porcelain", "--", ".", ":!results"):
        console.print("uncommitted changes are not measured: commit them, or use `convbench try`", style="yellow")
    with lock(project), termination_as_interrupt():
        name = machine.register()
        work = project.work / "run"
        shutil.rmtree(work, ignore_errors=True)
        (work / name).mkdir(parents=True)
        if not busy:
            machine.wait_until_quiet()
        console.print(f"building commit {commit[:8]} (its first environment takes a few minutes)")
        _asv(work, project, [f"{commit}^!", "--bench", "just-discover", "--machine", name], work / "build.log")
        known = results.benchmarks(work)
        plan.check_names(known, selection.implementations)
        cells = plan.select(known, selection)
        if not cells:
            if selection.quick and not any(benchmark.get("quick") for benchmark in known.values()):
                raise click.ClickException("this suite declares no short selection; leave out --quick")
            raise click.ClickException(
                "no cell is called that; names look like conv2d.ImageSize.time_conv2d('cpu.torch', '256x256')"
            )
        _publish(work / "benchmarks.json", project.results / "benchmarks.json")
        _publish(work / name / "machine.json", project.results / name / "machine.json")
        return _steps(project, work, name, commit, known, cells, again, busy, console)


def _steps(project, work, name, commit, known, cells, again, busy, console) -> Outcome:
    folder = project.results / name
    outcome = Outcome(file=_file(folder, commit))
    try:
        todo = cells if again else plan.missing(cells, known, outcome.file)
    except results.Unreadable as error:
        raise click.ClickException(f"{error}; move it away and the commit is measured anew") from None
    earlier = plan.durations(sorted(folder.glob("*.cells.jsonl"), key=lambda path: path.stat().st_mtime))
    steps = plan.steps(todo, known, earlier)
    if not steps:
        console.print(f"all {len(cells)} cells of {commit[:8]} are there already; --again measures them anew")
        return outcome
    estimate = plan.minutes(sum(step.seconds for step in steps))
    there = f", {len(cells) - len(todo)} are there already" if len(todo) < len(cells) else ""
    console.print(f"{len(todo)} cells in {len(steps)} classes{there}: about {estimate}")
    for i, step in enumerate(steps):
        try:
            if not busy:
                machine.wait_until_quiet()
            _step(project, work, name, commit, known, step, f"[{i + 1}/{len(steps)}] {step.name}", outcome, console)
        except (KeyboardInterrupt, Interrupted):
            raise click.ClickException(
                f"interrupted: {i} of {len(steps)} classes are kept, {step.name} is not; the same command goes on from there"
            ) from None
    time.sleep(1)  # asv's own processes are ending
    if reason := machine.busy():
        console.print(f"at the end of the run the machine was busy: {reason}", style="yellow")
    return outcome


def _step(project, work, name, commit, known, step, title, outcome, console) -> None:
    """Measure one class into the private folder, then move its files to where everybody reads."""
    for old in (work / name).glob("*-*.json"):
        old.unlink()
    if outcome.file:
        shutil.copy2(outcome.file, work / name)
    side = work / "cells.jsonl"
    side.unlink(missing_ok=True)
    before = time.time()
    total = len(step.cells) * step.rounds
    with _progress(console) as progress:
        task = progress.add_task(title, total=total, now="")
        arguments = [f"{commit}^!", "--bench", step.pattern(), "--machine", name, "--record-samples"]
        for _ in _asv_running(work, project, arguments, work / "asv.log", side):
            line = plan.last_line(side)
            now = ", ".join(results.plain(value) for value in line.get("params", []))
            progress.update(task, completed=min(plan.count_lines(side), total), now=now)
        progress.update(task, completed=total, now="")
    produced = _file(work / name, commit)
    if produced is None or produced.stat().st_mtime < before:
        raise click.ClickException(f"asv wrote no results for {step.name}; its output: {tail(work / 'asv.log')}")
    target = project.results / name / produced.name
    lines = results.side_lines(side)
    _strike(produced, [cell for cell, line in lines.items() if line["status"] == "failed"])
    if side.is_file():
        _append(side, results.side_file(target))
    _publish(produced, target)
    outcome.file = target
    cells, asked = results.load(target, known).cells, set(step.cells)
    status = [cell.status for cell in cells.itertuples() if (cell.benchmark, cell.params) in asked]
    failed, times = status.count("failed"), status.count("ok")
    outcome.failed += failed
    done = f"{times} times, {len(status) - times - failed} left out, {failed} FAILED"
    console.print(f"{title}: {done}, {plan.minutes(time.time() - before)}", highlight=False, markup=False)


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


def _asv(work: Path, project: Project, arguments: list[str], log: Path) -> None:
    for _ in _asv_running(work, project, arguments, log, None):
        pass


def _asv_running(work: Path, project: Project, arguments: list[str], log: Path, side: Path | None) -> Iterator[None]:
    """Run `asv run` with private results; yields while it runs and leaves no process behind, however it ends.

    asv's own exit status 2 means that a benchmark failed, which the side file tells better.
    """
    command = [sys.executable, "-m", "convbench.private_asv", str(work), "run", *arguments]
    environment = dict(os.environ)
    if side:
        environment |= {"CONVBENCH_CELLS": str(side), "CONVBENCH_RUN": f"{time.time():.0f}"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=project.root, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            while process.poll() is None:
                yield
                time.sleep(0.2)
        finally:
            end(process)
    if process.returncode not in (0, 2):
        raise click.ClickException(f"{cause(log)} asv ended with status {process.returncode}: {tail(log)}".strip())


def end(process: subprocess.Popen) -> None:
    """End a process and every process it started: all of them are in a group of their own."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


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
def termination_as_interrupt() -> Iterator[None]:
    """The same for a run: cleaned up, finished classes kept, one sentence."""
    with termination():
        try:
            yield
        except (KeyboardInterrupt, Interrupted):
            raise click.ClickException("interrupted before the first class; nothing was measured") from None


def _file(folder: Path, commit: str) -> Path | None:
    """The commit's results file in a machine's folder: the newest, should there be several environments."""
    found = sorted(folder.glob(f"{commit[:8]}-*.json"), key=lambda path: path.stat().st_mtime)
    return found[-1] if found else None


def _publish(finished: Path, target: Path) -> None:
    """Put a finished file where everybody reads, in one step, so that nobody ever sees half of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.new")
    shutil.copyfile(finished, beside)
    beside.replace(target)


def _append(lines: Path, target: Path) -> None:
    """Add lines to a side file; the file as a whole is replaced, so that a crash leaves the old one."""
    old = target.read_bytes() if target.is_file() else b""
    joined = lines.with_name("joined.jsonl")
    joined.write_bytes(old + lines.read_bytes())
    _publish(joined, target)


def cause(log: Path) -> str:
    """What to do about a build that failed, where its log is clear about it."""
    text = log.read_text(errors="replace")
    return next((f"{sentence};" for words, sentence in CAUSES.items() if words in text), "")


def tail(log: Path) -> str:
    """The last words of a log that say something."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return " / ".join(lines[-6:])[-800:] or "it printed nothing"


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
