"""The private results folder of a run, from which finished files are published."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from convbench.asv import machine
from convbench.asv.project import Project


@dataclass(frozen=True)
class Workspace:
    """A project, the name of the machine it is measured on, and the private folder that asv takes for its results."""

    project: Project
    machine: str
    folder: Path

    @property
    def published(self) -> Path:
        """The machine's results in the project."""
        return self.project.results / self.machine

    @property
    def private(self) -> Path:
        """The machine's results while asv writes them."""
        return self.folder / self.machine

    @property
    def side_file(self) -> Path:
        """The suite's side file of the class that is being measured, a line for each cell and round."""
        return self.folder / "cells.jsonl"

    @property
    def log(self) -> Path:
        """asv's log of the class that is being measured."""
        return self.folder / "asv.log"

    def clear(self) -> None:
        """Remove what an earlier run left, and register this machine with the asv that works here."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.private.mkdir(parents=True)
        machine.register(self.folder)
