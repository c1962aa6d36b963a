"""Builds both commits once by the project's own commands, each into a folder of its own over one environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convbench.asv import build_log, git
from convbench.asv.project import Project
from convbench.changed import builds
from convbench.common import session_guard
from convbench.gate.failures import NothingInstalled, Usage, caused_by

BUILT_AT = "946684800"  # the year 2000, in seconds: wheels cannot be from before 1980
SIDES = builds.SIDES


@dataclass(frozen=True)
class Built:
    """A side ready to run: the environment's interpreter and variables, the commit's code, the suite that measures it.

    own_suite: the commit's own, of which only the names are read. spawns: whether each cell loads the suite. others: the
    names of environments in which nothing is built. differences: of what is installed on both sides, beside the code.
    """

    folder: Path
    python: str
    variables: dict[str, str]
    suite: Path
    own_suite: Path
    environment: str
    spawns: bool
    others: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()

    @property
    def code(self) -> Path:
        """Where the commit's own build lies; it is imported before all that the environment holds."""
        return self.folder / "code"

    @property
    def numba_cache(self) -> Path:
        """The folder of Numba's cache; each side compiles its own."""
        return self.folder / "numba"


@dataclass(frozen=True)
class Wanted:
    """Settings in place of the configured ones, as in asv. environments: KIND, KIND:PYTHON or :PYTHON."""

    environments: tuple[str, ...] = ()
    launch_method: str | None = None

    @classmethod
    def chosen(cls, environments: tuple[str, ...], python: str | None, launch_method: str | None) -> Wanted:
        """The settings of the options of these names."""
        return cls((*environments, *([f":{python}"] if python else [])), launch_method)


def build(project: Project, commits: dict[str, str], work: Path, wanted: Wanted = Wanted()) -> dict[str, Built]:
    """Build a commit for each side, or for the head alone; the suite of the head measures both.

    Raises Failure, and Usage without an environment.
    """
    for side in commits:
        shutil.rmtree(work / side, ignore_errors=True)
        (work / side / "code").mkdir(parents=True)
        (work / side / "numba").mkdir(mode=0o700)
    outcome, log = work / "built.json", work / "build.log"
    outcome.unlink(missing_ok=True)
    question: dict[str, Any] = {"configuration": str(project.file), "work": str(work), "commits": commits}
    question |= {"outcome": str(outcome), "shallow": project.is_shallow, "environments": list(wanted.environments)}
    question |= {"environments_dir": str(work / "environments")}
    # Without it, files that contain the time of the build would differ.
    variables = {"SOURCE_DATE_EPOCH": BUILT_AT, **git.environment(os.environ)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "convbench.asv.install_commits", json.dumps(question)],
            cwd=project.root,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=variables,
            start_new_session=True,
        )
        try:
            process.wait()
        finally:
            session_guard.end(process)
    answer = json.loads(outcome.read_text(encoding="utf-8")) if outcome.is_file() else {}
    if "refused" in answer:
        raise Usage(answer["refused"])
    if process.returncode or "python" not in answer:
        reason = "; ".join(filter(None, (build_log.cause(log), answer.get("reason") or build_log.tail(log))))
        side = answer.get("building", "environment")  # the environment is made before either side is built
        raise caused_by(side, f"the {side} does not build: {reason} (full log: {os.path.relpath(log)})")
    for side in answer["empty"]:
        raise NothingInstalled(f"the {side} installs nothing: its installation contains no file of a package")
    suites = find_suites(project, work, commits)
    return {
        side: Built(
            *(work / side, answer["python"][side], answer["variables"][side], suites["head"], suites[side]),
            answer["environment"],
            spawns=(wanted.launch_method or project.conf.launch_method) == "spawn",
            others=tuple(answer["others"]),
        )
        for side in commits
    }


def find_suites(project: Project, work: Path, sides: Iterable[str]) -> dict[str, Path]:
    """By side, the suite in its checkout; where the head has none, for all sides the one beside the configuration."""
    found = {side: project.in_checkout(project.benchmarks, work / side / "checkout") for side in sides}
    beside = project.benchmarks
    return dict.fromkeys(found, beside) if beside.is_dir() and not found["head"].is_dir() else found
