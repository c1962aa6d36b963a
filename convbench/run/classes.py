"""Measures one commit through asv: its build, then class by class in a private folder; and what runs that do so share."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from convbench.asv import build_log, files, git, writer
from convbench.asv.project import Project
from convbench.common import atomic_write, interrupts, numbers, redact, session_guard, terminal
from convbench.common.cells import Cell, plain
from convbench.run import plan, recover
from convbench.stored import results, side_lines

LITTLE = 1 << 20  # bytes that are left on a disk which counts as full


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
        names = [files.file_name(commit or self.commit, environment["env_name"]) for environment in self.environments]
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
        reason = redact.redact(found["reason"])
        fault = build_log.cause(log)
        if fault and fault != build_log.CAUSES[build_log.PINNED]:  # what asv.conf.json pins was installed before
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
                now = terminal.line(", ".join(plain(value) for value in line.get("params", [])))
                progress.update(task, completed=min(plan.count_lines(side), total), now=now)
            progress.update(task, completed=total, now="")
    except (KeyboardInterrupt, interrupts.Interrupted, click.ClickException):
        try:
            kept = f"{_keep_finished(place, built, step, side)} of its cells are kept"
        except Exception as error:  # why the class was cut short says more
            kept = f"none of its cells could be kept: {error}"
        place.console.print(f"{title}: cut short, {kept}", highlight=False, markup=False)
        raise
    produced = built.file(place.private)
    if produced is None or produced.stat().st_mtime < before:
        raise click.ClickException(f"asv wrote no results for {step.name}; its output: {build_log.tail(log)}")
    target = place.stored / produced.name
    lines = side_lines.read(side)
    _strike(produced, [cell for cell, line in lines.items() if line["status"] == "failed"])
    if side.is_file():
        atomic_write.append(side, side_lines.path(target))
    atomic_write.publish(produced, target)
    cells, asked = results.load(target, built.known).cells, set(step.cells)
    status = [cell.status for cell in cells.itertuples() if (cell.benchmark, cell.params) in asked]
    failed, times = status.count("failed"), status.count("ok")
    done = f"{times} times, {len(status) - times - failed} left out, {failed} FAILED"
    place.console.print(f"{title}: {done}, {numbers.minutes(time.time() - before)}", highlight=False, markup=False)
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
    produced = writer.write(cells, built.known, built.commit, built.environments[0], place.work)
    side.write_text("".join(json.dumps(line) + "\n" for lines in cells.values() for line in lines), encoding="utf-8")
    target = place.stored / produced.name
    atomic_write.append(side, side_lines.path(target))
    atomic_write.publish(produced, target)
    return len(cells)


def _devices(built: Built, step: plan.Step) -> list[str]:
    """Where a step's implementations compute, "cpu", "cuda" or both: what its processes import before they begin."""
    found = set()
    for name, params in step.cells:
        benchmark = built.known[name]
        own = plain(dict(zip(benchmark.get("param_names", []), params, strict=False)).get("implementation", ""))
        found.add(benchmark.get("implementations", {}).get(own, benchmark).get("device", "cpu"))
    return sorted(found)


def _strike(produced: Path, failed: list[Cell]) -> None:
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
            session_guard.end(process)
    if process.returncode not in (0, 2):
        # A log on a full disk has no room for the reason.
        reason = "the disk is full" if shutil.disk_usage(place.work).free < LITTLE else build_log.cause(log)
        ended = f"asv ended with status {process.returncode}"
        raise click.ClickException(
            f"{reason}; {ended}, and its output is in {log}" if reason else f"{ended}: {build_log.tail(log)}"
        )


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
