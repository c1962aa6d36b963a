"""The stages in which a class of a built commit is measured, each a function over the files of a workspace."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from convbench.asv import build_log
from convbench.common import atomic_write
from convbench.common.cells import Cell
from convbench.run import asv_process
from convbench.run.built_commit import BuiltCommit
from convbench.run.plan import ClassPlan
from convbench.run.workspace import Workspace
from convbench.stored import results, side_lines


@dataclass(frozen=True)
class Progress:
    """How many rounds of cells are done in the class that is being measured, and the parameters of the last one."""

    done: int
    params: list[str]


@dataclass(frozen=True)
class ClassOutcome:
    """The numbers of a class's cells that were timed, skipped and failed."""

    timed: int
    skipped: int
    failed: int


def start_from_published(workspace: Workspace, built: BuiltCommit) -> None:
    """Copy only the commit's published results to the private folder, where asv adds to them."""
    for old in workspace.private.glob("*-*.json"):
        old.unlink()
    for published in filter(Path.is_file, built.results_files(workspace.published)):
        shutil.copy2(published, workspace.private)


def run_asv(workspace: Workspace, built: BuiltCommit, plan: ClassPlan, update: Callable[[Progress], None]) -> None:
    """Measure a class into the private folder; call `update` with the progress.

    Raises ClickException if asv ends before its time.
    """
    workspace.side_file.unlink(missing_ok=True)
    command = ["convbench.asv.isolated", str(workspace.folder), "run", f"{built.commit}^!", "--bench", plan.pattern()]
    command += ["--machine", workspace.machine, "--record-samples", "--config", str(workspace.project.file)]
    variables = {"CONVBENCH_CELLS": str(workspace.side_file), "CONVBENCH_DEVICES": ",".join(devices(built, plan))}
    with contextlib.closing(asv_process.run(workspace, command, workspace.log, variables)) as running:
        for _ in running:
            update(progress(workspace.side_file))
    update(Progress(plan.rounds * len(plan.cells), []))


def progress(side_file: Path) -> Progress:
    """The progress of a class, from its side file, where the last line may be incomplete."""
    try:
        lines = side_file.read_bytes().splitlines()
    except OSError:
        return Progress(0, [])
    try:
        params = json.loads(lines[-1]).get("params", [])
    except (ValueError, IndexError):
        params = []
    return Progress(len(lines), params)


def devices(built: BuiltCommit, plan: ClassPlan) -> list[str]:
    """Where a class's implementations compute, "cpu", "cuda" or both: what its processes import before they begin."""
    return sorted({built.device(cell) for cell in plan.cells})


def produced(workspace: Workspace, built: BuiltCommit, plan: ClassPlan, since: float) -> list[Path]:
    """The results files that asv wrote after a time in seconds since the epoch, one for each environment.

    Raises ClickException if there is none.
    """
    found = [file for file in built.results_files(workspace.private) if file.is_file() and file.stat().st_mtime >= since]
    if not found:
        raise click.ClickException(f"asv wrote no results for {plan.name}; its output: {build_log.tail(workspace.log)}")
    return found


def failed_cells(side_file: Path) -> list[Cell]:
    """The cells that failed in at least one of their processes."""
    return [cell for cell, line in side_lines.read(side_file).items() if line["status"] == "failed"]


def remove_times(file: Path, failed: Iterable[Cell]) -> None:
    """Take the times of failed cells out of asv's file: asv keeps those of the process that did not fail."""
    content = json.loads(file.read_text(encoding="utf-8"))
    columns = content["result_columns"]
    values = [i for i, name in enumerate(columns) if name in ("result", "samples") or name.startswith("stats_")]
    for name, params in failed:
        if row := content["results"].get(name):
            place = list(itertools.product(*row[columns.index("params")])).index(params)
            for i in values:
                if i < len(row) and row[i]:
                    row[i][place] = None
    file.write_text(json.dumps(content), encoding="utf-8")


def publish(workspace: Workspace, built: BuiltCommit, produced: Sequence[Path]) -> list[Path]:
    """Move results files and their side file to the project's results; their paths there.

    Raises ClickException if that cannot be written. The side file is first: a time without its line would count as sound.
    Of several environments it has the versions alone, since lines of cells do not tell them apart.
    """
    targets = [workspace.published / file.name for file in produced]
    versions = {
        path.name: one["versions"]
        for path, one in zip(built.results_files(workspace.published), built.environments, strict=True)
    }
    for target in targets:
        side_lines.keep_versions(versions[target.name], target)
    if workspace.side_file.is_file() and len(targets) == 1:
        side_lines.keep(workspace.side_file, targets[0])
    for file, target in zip(produced, targets, strict=True):
        atomic_write.publish(file, target)
    return targets


def outcome(published: Iterable[Path], built: BuiltCommit, plan: ClassPlan) -> ClassOutcome:
    """The outcome of a class, from the published results."""
    planned = set(plan.cells)
    cells = [cell for path in published for cell in results.load(path, built.known).cells.itertuples()]
    status = [cell.status for cell in cells if (cell.benchmark, cell.params) in planned]
    timed, failed = status.count("ok"), status.count("failed")
    return ClassOutcome(timed, len(status) - timed - failed, failed)
