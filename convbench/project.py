"""The asv project in the current folder: its configuration, its repository, its results."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import click
from asv.config import Config
from asv.util import UserError


@dataclass(frozen=True)
class Project:
    """An asv configuration, as file and as read, and the folder it lies in; every path absolute."""

    file: Path
    conf: Config
    root: Path
    name: str
    results: Path
    html: Path
    environments: Path
    benchmarks: Path

    @property
    def work(self) -> Path:
        """Where runs keep what is not finished; on the same disk as the results, so that moving is one step."""
        return self.root / ".convbench"

    @property
    def code(self) -> list[str]:
        """All but the results, as git names paths: a run writes those, and they change nothing that is measured."""
        results = self.results.resolve()
        return [".", f":!{results.relative_to(self.root)}"] if results.is_relative_to(self.root) else ["."]

    def commit(self, name: str = "HEAD") -> str:
        """The full hash of a commit. Raises ClickException where git knows none of that name."""
        try:
            return self.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        except click.ClickException as error:
            if not error.message.endswith("failed: "):  # git said why: no repository, or no git
                raise
            raise click.ClickException(f"git knows no commit {name!r} in {self.root}") from None

    def git(self, *command: str) -> str:
        """Run git here and return what it printed. Raises ClickException with git's own words."""
        try:
            done = subprocess.run(["git", "-C", self.root, *command], capture_output=True, text=True, check=True)
        except FileNotFoundError:
            raise click.ClickException("git is not installed; results are kept by commit") from None
        except subprocess.CalledProcessError as error:
            first = error.stderr.strip().partition("\n")[0]
            raise click.ClickException(f"git {command[0]} failed: {first}") from None
        return done.stdout.strip()


def find() -> Project:
    """The project of the current folder or the nearest one above it. Raises ClickException where there is none."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        for name in ("asv.conf.json", "asv.conf.jsonc"):
            if (folder / name).is_file():
                return load(folder / name)
    raise click.ClickException(f"no asv.conf.json in {here} or above it; change to a project that asv measures")


def load(path: Path) -> Project:
    """Read a configuration file. Raises ClickException where asv cannot."""
    try:
        conf = Config.load(str(path))
        root = path.parent.resolve()
        folders = [root / name for name in (conf.results_dir, conf.html_dir, conf.env_dir, conf.benchmark_dir)]
        return Project(root / path.name, conf, root, conf.project, *folders)
    except (UserError, ValueError, TypeError) as error:
        raise click.ClickException(f"{path.name} is no configuration of asv: {' '.join(str(error).split())}") from None
