"""What `convbench run` does with one commit on one machine, as functions of jobs: a build, and the measurement of a class."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from convbench.asv import machine
from convbench.asv.build_commit import OUTCOME, WHEELS
from convbench.asv.project import Project
from convbench.common import load, lock
from convbench.common.cells import Cell
from convbench.run import built_commit, classes, plan
from convbench.run.built_commit import BuildFailed, BuiltCommit
from convbench.run.workspace import Workspace
from convbench.speed import times_file, tuning
from convbench.speed.measure import Again

REMEMBERED = "built.pickle"

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Build:
    """A commit as a machine built it. reason: why it does not build; unbuilt: the names of the environments then.

    listing: asv's list of its benchmarks, as a file. wheels: by their paths, for machines of the same kind.
    """

    commit: str
    environments: list[dict[str, Any]]
    reason: str | None = None
    unbuilt: Sequence[str] = ()
    known: Mapping[str, dict[str, Any]] | None = None
    listing: bytes = b""
    wheels: Files | None = None

    @property
    def built(self) -> BuiltCommit:
        return BuiltCommit(self.commit, dict(self.known or {}), self.environments)


@dataclass(frozen=True)
class Measured:
    """A class as it was measured: asv's files, the side file, asv's description of the machine, the environments there."""

    files: Files
    side: bytes
    machine: bytes
    environments: list[dict[str, Any]]
    seconds: float


@dataclass(frozen=True)
class Tuned:
    """A machine that was tuned: the lines of its report, its file of times, and the path of that in the machine's results."""

    said: list[str]
    file: Path
    times: bytes


def build(project: Project, commit: str, patience: float | None) -> Build:
    """Build a commit. Raises ClickException where something else than the commit prevents it."""
    with _ready(project, patience) as workspace:
        try:
            built = _build(workspace, commit, {})
        except BuildFailed as failed:
            return Build(commit, [], str(failed), failed.environments)
        listing = (workspace.folder / "benchmarks.json").read_bytes()
        wheels = _read(workspace.folder / WHEELS)
        return Build(commit, built.environments, known=built.known, listing=listing, wheels=wheels)


def measure(
    project: Project, commit: str, cells: Sequence[Cell], published: Files, patience: float | None, build: Build
) -> Measured:
    """Measure cells of a class. published: the commit's results, to which asv adds these. Raises ClickException."""
    start = time.time()
    with _ready(project, patience) as workspace:
        built = _remembered(workspace, commit) or _build(workspace, commit, build.wheels or {})
        for old in workspace.private.glob("*-*.json"):
            old.unlink()
        _write(workspace.private, published)
        side = b""
        here = [cell for cell in cells if cell[0] in built.known]
        for each in plan.classes(here, built.known, {}):
            begun = time.time()
            classes.run_asv(workspace, built, each, lambda progress: None)
            for file in classes.produced(workspace, built, each, begun):
                classes.remove_times(file, classes.failed_cells(workspace.side_file))
            side += workspace.side_file.read_bytes() if workspace.side_file.is_file() else b""
        files = {path.name: path.read_bytes() for path in built.results_files(workspace.private) if path.is_file()}
        facts = (workspace.private / "machine.json").read_bytes()
        return Measured(files, side, facts, built.environments, time.time() - start)


def tune(project: Project, commit: str, again: Again) -> Tuned:
    """Build a commit, measure what is fastest with it, and have this machine remember that. Raises ClickException."""
    with _ready(project, None) as workspace:
        try:
            built = _build(workspace, commit, {})
        except BuildFailed as failed:
            raise click.ClickException(f"{commit[:8]} does not build: {failed}") from None
    python = json.loads((workspace.folder / OUTCOME).read_text(encoding="utf-8"))["pythons"][0]
    os.environ |= built.environments[0]["env_vars"] or {}  # this process is of this job alone
    start = workspace.folder / "suite"  # beside the sources of what is measured, Python would import those
    start.mkdir()
    (start / project.benchmarks.name).symlink_to(project.benchmarks)
    here = dataclasses.replace(project, python=python, start=start)
    said = tuning.run(here, again, False, Console(file=io.StringIO()))
    file = times_file.find(here, False, folder=tuning.FOLDER).path
    return Tuned(said, file.relative_to(project.results / machine.name()), file.read_bytes())


@contextlib.contextmanager
def _ready(project: Project, patience: float | None) -> Iterator[Workspace]:
    """The workspace of this machine, on which nothing else measures meanwhile. Raises MachineFault.

    patience: seconds to wait until the machine is idle, None not to look.
    """
    with lock.lock(project.work, project.results):
        if patience is not None:
            load.wait_until_quiet(patience)
        yield Workspace(project, machine.name(), project.work / "cluster")


def _build(workspace: Workspace, commit: str, wheels: Files) -> BuiltCommit:
    workspace.clear()
    (workspace.folder / WHEELS).mkdir()
    _write(workspace.folder / WHEELS, wheels)
    built = built_commit.build(workspace, commit)
    suite = workspace.project.suite_git("rev-parse", "HEAD")
    (workspace.folder / REMEMBERED).write_bytes(pickle.dumps((suite, built)))
    return built


def _remembered(workspace: Workspace, commit: str) -> BuiltCommit | None:
    """The commit if it was the last to be built here: asv lists the benchmarks anew otherwise, which takes seconds."""
    with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
        suite, built = pickle.loads((workspace.folder / REMEMBERED).read_bytes())
        if built.commit == commit and suite == workspace.project.suite_git("rev-parse", "HEAD"):
            return built
    return None


def _read(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _write(folder: Path, files: Files) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
