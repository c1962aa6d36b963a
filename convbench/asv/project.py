"""The asv project in the current folder: its configuration, its repository, its results."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from asv.config import Config
from asv.util import UserError

from convbench.asv import git
from convbench.common import untrusted

NAMES = ("asv.conf.json", "asv.conf.jsonc")
LARGEST = 256 << 10  # bytes of a configuration: asv reads comments in it, and takes a second for as many


@dataclass(frozen=True)
class Project:
    """An asv configuration, as file and as read, and the folder it lies in; every path absolute.

    python: the interpreter of the suite's processes. start: the folder that they start in, if it is not the root.
    """

    file: Path
    conf: Config
    root: Path
    name: str
    results: Path
    html: Path
    environments: Path
    benchmarks: Path
    python: str = sys.executable
    start: Path | None = None

    @property
    def work(self) -> Path:
        """The folder for unfinished results; on the same disk as the results, so that moving is one step."""
        return self.root / ".convbench"

    @property
    def source(self) -> Path:
        """The repository that is measured: a folder of its work tree, a bare one, or asv's mirror of one elsewhere."""
        local = self.root / self.conf.repo
        return local if local.is_dir() else self.root / self.conf.project

    @property
    def is_mirror(self) -> bool:
        """Whether the repository is elsewhere or bare, so that there is no work tree of it here."""
        local = self.root / self.conf.repo
        return not local.is_dir() or ((local / "HEAD").is_file() and (local / "objects").is_dir())

    @property
    def is_shallow(self) -> bool:
        """Whether the history of the repository is cut short."""
        return self.git("rev-parse", "--is-shallow-repository") == "true"

    def commit(self, name: str = "HEAD") -> str:
        """The full hash of a commit. Raises ClickException if git knows none of that name."""
        try:
            return self.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        except click.ClickException as error:
            # git said why: no repository, or no git.
            if not (error.message.endswith("failed: ") or "expected commit type" in error.message):
                raise
            raise click.ClickException(f"git knows no commit {name!r} in {self.source}{self.shallow_words}") from None

    def merge_base(self, one: str, other: str) -> str:
        """The newest commit that both come from. Raises ClickException if there is none."""
        try:
            return self.git("merge-base", one, other)
        except click.ClickException as error:
            if not error.message.endswith("failed: "):
                raise
            raise click.ClickException(f"{one[:10]} and {other[:10]} have no commit in common{self.shallow_words}") from None

    def git(self, *command: str) -> str:
        """Run git on the repository that is measured and return what it printed. Raises ClickException with git's own words.

        A repository elsewhere is cloned first, as asv does.
        """
        if not self.is_mirror:
            return git.run(self.source, *command)
        if not self.source.is_dir():
            self.pull()
        return git.run(self.root, f"--git-dir={self.source}", *command)

    def suite_git(self, *command: str) -> str:
        """Run git in the folder of the configuration, whose repository holds the suite."""
        return git.run(self.root, *command)

    def pull(self) -> None:
        """Fetch what is new in a repository elsewhere. Raises ClickException with git's own words."""
        if self.is_mirror:
            git.pull(self.root, self.conf.repo, self.conf.project)

    def uncommitted(self) -> str | None:
        """A file of the measured repository with uncommitted changes, results left out, since a run writes those."""
        if self.is_mirror:
            return None
        top, results = Path(self.git("rev-parse", "--show-toplevel")), self.results.resolve()
        left_out = [f":(top,exclude){results.relative_to(top)}"] if results.is_relative_to(top) and results != top else []
        return _first_file(self.git("status", "--porcelain", "-uno", "--", ":(top)", *left_out))

    def snapshot(self) -> str | None:
        """A commit of the measured work tree with its changes, None without changes; asv's output is left out.

        Raises ClickException if the repository is elsewhere, and for changes in repositories inside of it.
        """
        if self.is_mirror:
            raise click.ClickException(f"the repository {self.conf.repo} is elsewhere, and has no work tree here")
        top = Path(self.git("rev-parse", "--show-toplevel"))
        written = (folder.resolve() for folder in (self.results, self.html, self.environments, self.work))
        return git.snapshot(top, [str(path.relative_to(top)) for path in written if path.is_relative_to(top) and path != top])

    def uncommitted_suite(self) -> str | None:
        """A file of the suite or its configuration with uncommitted changes; None also if they are in no repository."""
        kept = [(self.benchmarks, "."), (self.root, self.file.name)]
        kept = [(folder, path) for folder, path in kept if folder.is_dir() and git.holds(folder)]
        changed = (_first_file(git.run(folder, "status", "--porcelain", "--", path)) for folder, path in kept)
        return next(filter(None, changed), None)

    def in_checkout(self, path: Path, checkout: Path) -> Path:
        """A path of the work tree in another checkout of the measured repository; of another repository, the path itself."""
        path = path.resolve()
        top = None if self.is_mirror else Path(self.git("rev-parse", "--show-toplevel"))
        return checkout / path.relative_to(top) if top and path.is_relative_to(top) else path

    @property
    def shallow_words(self) -> str:
        """The end of a message about possibly missing history: what to do."""
        if not self.is_shallow:
            return ""
        return "; this clone is shallow: fetch more history, as by git fetch --unshallow"


def _first_file(status: str) -> str | None:
    """The first file that `git status --porcelain` names."""
    return status.split(maxsplit=1)[1].partition("\n")[0] if status else None


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


# The types of settings that are used here, or that would end asv with a traceback.
KINDS: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    (
        "text",
        "project repo results_dir html_dir env_dir benchmark_dir",
        lambda v: isinstance(v, str) and v > "" and "\0" not in v,
    ),
    ("text", "environment_type repo_subdir launch_method", lambda v: v is None or isinstance(v, str)),
    ("a list of strings", "plugins pythons conda_channels", _texts),
    ("a list of strings", "branches", lambda v: isinstance(v, list) and _texts([one for one in v if one is not None])),
    (
        "a list of commands",
        "build_command install_command uninstall_command",
        lambda v: v is None or _texts(v) or _texts([v]),
    ),
    ("a list of objects", "exclude include", lambda v: isinstance(v, list) and all(isinstance(one, dict) for one in v)),
    ("an object", "matrix", lambda v: isinstance(v, dict) or v == []),
    ("a number of seconds", "install_timeout default_benchmark_timeout", lambda v: isinstance(v, (int, float)) and v > 0),
)


def _check(conf: Config) -> None:
    """Raise Malformed where a setting is of another kind."""
    for kind, names, fits in KINDS:
        for name in names.split():
            if not fits(getattr(conf, name)):
                raise untrusted.Malformed(f"{name} is not {kind}")
    for pattern, value in (conf.regressions_thresholds or {}).items():
        try:
            re.compile(pattern)
        except re.error as error:
            raise untrusted.Malformed(
                f"regressions_thresholds: {pattern!r} is not a valid regular expression: {error}"
            ) from None
        float(value)


class Ambiguous(click.ClickException):
    """There are several configurations, and none was named."""

    exit_code = 2


class Missing(click.ClickException):
    """There is no configuration."""


def find(configuration: Path | None = None) -> Project:
    """The project of a configuration file or, without one, of the current folder, the nearest above it, or the repository's.

    Raises Missing if there is none, and Ambiguous where git tracks several.
    """
    if configuration:
        return load(configuration.resolve())
    here = Path.cwd()
    for folder in (here, *here.parents):
        beside = [name for name in NAMES if (folder / name).is_file()]
        if len(beside) > 1:
            raise Ambiguous(f"several asv configurations: {' and '.join(beside)} in {folder}; name one with --config")
        if beside:
            return load(folder / beside[0])
    # Not among all files: a virtual environment has asv's own template.
    tracked = [path for path in git.tracked(here, *(f":(top,glob)**/{name}" for name in NAMES)) if (here / path).is_file()]
    if not tracked:
        raise Missing(f"no asv.conf.json in {here}, above it, or in its repository; change to a project that asv measures")
    if len(tracked) > 1:
        raise Ambiguous(f"several asv configurations: {', '.join(map(str, tracked))}; name one with --config")
    return load((here / tracked[0]).resolve())


def load(path: Path) -> Project:
    """Read a configuration file. Raises ClickException if asv cannot."""
    try:
        untrusted.read_bytes(path.resolve(), LARGEST)
        conf = Config.load(str(path))
        _check(conf)
        root = path.parent.resolve()
        folders = [root / name for name in (conf.results_dir, conf.html_dir, conf.env_dir, conf.benchmark_dir)]
        found = Project(root / path.name, conf, root, conf.project, *folders)
    except (UserError, untrusted.Unreadable, *untrusted.FAULTS) as error:
        raise click.ClickException(f"{path.name} is not a valid asv configuration: {' '.join(str(error).split())}") from None
    git.require_own(root, conf.repo, conf.project)
    return found
