"""Builds a commit through asv, and lists its benchmarks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from convbench.asv import build_log, files
from convbench.common import redact
from convbench.common.cells import Cell, plain
from convbench.run import asv_process
from convbench.run.workspace import Workspace
from convbench.stored import results


class BuildFailed(Exception):
    """A commit does not build; the text is the end of the builder's output, without paths of this machine."""

    def __init__(self, reason: str, environments: list[str]) -> None:
        super().__init__(reason)
        self.environments = environments


@dataclass(frozen=True)
class BuiltCommit:
    """A commit that is ready to be measured, with asv's entries of its benchmarks and environments."""

    commit: str
    known: dict[str, dict[str, Any]]
    environments: list[dict[str, Any]]

    def results_files(self, folder: Path, commit: str | None = None) -> list[Path]:
        """The paths of its results, or another commit's, in a machine's folder: one for each environment."""
        return [folder / files.file_name(commit or self.commit, environment["env_name"]) for environment in self.environments]

    def device(self, cell: Cell) -> str:
        """Where a cell computes, "cpu" or "cuda": what its benchmark says, else its implementation's declaration."""
        name, params = cell
        benchmark = self.known[name]
        implementation = plain(dict(zip(benchmark.get("param_names", []), params, strict=False)).get("implementation", ""))
        declared = benchmark.get("implementations", {}).get(implementation, {})
        return benchmark.get("device") or declared.get("device", "cpu")


def build(workspace: Workspace, commit: str) -> BuiltCommit:
    """Build a commit and list its benchmarks.

    Raises BuildFailed if the commit does not build, ClickException where something else prevents it.
    """
    log, outcome = workspace.folder / "build.log", workspace.folder / "build.json"
    outcome.unlink(missing_ok=True)
    arguments = [str(workspace.project.file), str(workspace.folder), commit, workspace.machine]
    for _ in asv_process.run(workspace, ["convbench.asv.build_commit", *arguments], log):
        pass
    found = json.loads(outcome.read_text(encoding="utf-8"))
    if found["reason"]:
        reason = redact.redact(found["reason"])
        cause = build_log.cause(log)
        if cause and cause != build_log.CAUSES[build_log.PINNED]:  # the pinned requirements were installed before
            raise click.ClickException(f"{cause} {reason}")
        raise BuildFailed(reason, [environment["env_name"] for environment in found["environments"]])
    return BuiltCommit(commit, results.benchmarks(workspace.folder), found["environments"])
