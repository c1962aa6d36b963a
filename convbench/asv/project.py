"""The asv project in the current folder: its configuration, its repository, its results."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import click
from asv.config import Config
from asv.util import UserError

from convbench.asv import git
from convbench.common import untrusted

LARGEST = 256 << 10  # bytes of a configuration: asv reads comments in it, and takes a second for as many


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
        return git.run(self.root, *command)


def _check(conf: Config) -> None:
    """Raise Malformed where a setting that is used here is of another kind."""
    for name in ("project", "repo", "results_dir", "html_dir", "env_dir", "benchmark_dir"):
        value = getattr(conf, name)
        if not isinstance(value, str) or not value or "\0" in value:
            raise untrusted.Malformed(f"{name} is no text")
    for name, kinds in (("branches", (str, type(None))), ("plugins", (str,))):
        values = getattr(conf, name)
        if not isinstance(values, list) or not all(isinstance(value, kinds) for value in values):
            raise untrusted.Malformed(f"{name} is no list of texts")
    for pattern, value in (conf.regressions_thresholds or {}).items():
        try:
            re.compile(pattern)
        except re.error as error:
            raise untrusted.Malformed(f"regressions_thresholds: {pattern!r} is no regular expression: {error}") from None
        float(value)


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
        untrusted.read_bytes(path.resolve(), LARGEST)
        conf = Config.load(str(path))
        _check(conf)
        root = path.parent.resolve()
        folders = [root / name for name in (conf.results_dir, conf.html_dir, conf.env_dir, conf.benchmark_dir)]
        found = Project(root / path.name, conf, root, conf.project, *folders)
    except (UserError, untrusted.Unreadable, *untrusted.FAULTS) as error:
        raise click.ClickException(f"{path.name} is no configuration of asv: {' '.join(str(error).split())}") from None
    git.require_own(root, conf.repo, conf.project)
    return found
