"""The project in the clones of many machines: what is measured travels from the client as packs of git.

Neither the client's folder nor the repository's host has to be within reach of the machines, and nobody's credentials either.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from convbench.asv import git, project
from convbench.asv.project import Project
from convbench.common import private_folder

REFS = "refs/convbench"  # in the clones: the commits that were sent
DIGITS = 16


@dataclass(frozen=True)
class Source:
    """A project at a commit of its suite.

    identity: the same in every clone of it. file: the path of its configuration in the repository of the suite. mirror: the
    path of asv's clone where another repository is measured, None where the suite lies in the measured one.
    """

    identity: str
    head: str
    file: str
    mirror: str | None

    @property
    def place(self) -> Path:
        """The folder of this project on this machine; machines may share a home folder."""
        return private_folder.folder("cluster") / platform.node() / self.identity

    @property
    def clone(self) -> Path:
        return self.place / "clone"

    def directories(self) -> list[Path]:
        """The folders of git that packs go to, the suite's first."""
        root = (self.clone / self.file).parent
        return [self.clone / ".git", *([root / self.mirror] if self.mirror else [])]


def of(here: Project) -> Source:
    """The project as it is committed. Raises ClickException without the suite's repository, or if it is another local one."""
    if not git.holds(here.root):
        raise click.ClickException(f"{here.file.name} is in no git repository, and other machines get the suite from one")
    top = Path(here.suite_git("rev-parse", "--show-toplevel"))
    if not here.is_mirror and Path(here.git("rev-parse", "--show-toplevel")) != top:
        raise click.ClickException(
            f"the measured repository is in another folder than {here.file.name}: name it by its URL, for machines to share"
        )
    head = here.suite_git("rev-parse", "HEAD")
    file = here.file.relative_to(top).as_posix()
    known = (here.suite_git("rev-list", "--max-parents=0", "HEAD"), file, here.conf.project)
    identity = hashlib.sha256(repr(known).encode()).hexdigest()[:DIGITS]
    return Source(identity, head, file, here.conf.project if here.is_mirror else None)


def packs(here: Project, source: Source, commits: Collection[str], known: Collection[str]) -> list[bytes]:
    """What a machine that has the known commits lacks of the suite and of these commits: a pack for each repository."""
    wanted = [[source.head], list(commits)] if source.mirror else [[source.head, *commits]]
    found = []
    for words, hashes in zip((here.suite_git, here.git), wanted, strict=False):
        directory = words("rev-parse", "--absolute-git-dir")
        have = words("rev-list", "--no-walk", "--ignore-missing", *known).split() if known else []
        lacking = set(hashes) - set(have)
        found.append(git.pack(directory, lacking, have) if lacking else b"")
    return found


def shallow(here: Project) -> str:
    """What git notes of a repository whose history is cut short, "" of a whole one."""
    file = Path(here.git("rev-parse", "--absolute-git-dir"), "shallow")
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def known(source: Source) -> list[str]:
    """The commits that this machine has been sent."""
    listed = [
        _in(directory, "for-each-ref", "--format=%(objectname)", REFS).split()
        for directory in source.directories()
        if directory.is_dir()
    ]
    return [commit for commits in listed for commit in commits]


def receive(source: Source, packed: Sequence[bytes], commits: Iterable[str], shallow: str) -> None:
    """Add what was sent to this machine's clones, which are made if there are none."""
    hashes = [[source.head], list(commits)] if source.mirror else [[source.head, *commits]]
    for directory, pack, sent in zip(source.directories(), packed, hashes, strict=True):
        if not directory.is_dir():
            _make(directory)
        if shallow:
            (directory / "shallow").write_text(shallow, encoding="utf-8")
        if pack:
            git.unpack(str(directory), pack)
        git.refer(str(directory), {f"{REFS}/{commit}": commit for commit in sent})
        # asv fetches from where a mirror came from, which is itself.
        _in(directory, "update-ref", "--no-deref", "HEAD", sent[0])


def _make(directory: Path) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    if directory.name == ".git":
        git.run(directory.parent, "init", "--quiet")
    else:
        git.run(directory.parent, "init", "--quiet", "--bare", str(directory))
        _in(directory, "config", "remote.origin.url", str(directory))


def _in(directory: Path, *command: str) -> str:
    return git.run(directory.parent, f"--git-dir={directory}", *command)


def checkout(source: Source) -> Project:
    """The project in this machine's clone, at the commit of the suite; what was built and measured there stays."""
    git.run(source.clone, "checkout", "--quiet", "--force", "--detach", source.head)
    return project.load(source.clone / source.file)
