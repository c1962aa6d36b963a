"""Calls git, with the configuration of the queried repository only.

A clone may carry a bare repository among its files, with a configuration of its own, which may run programs.
https://git-scm.com/docs/git-config has safe.bareRepository, log.showSignature and core.fsmonitor.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import click
from asv.console import log
from asv.plugins.git import Git
from asv.util import ProcessError, UserError

# Settings by which reading a log or a status starts a program.
QUIET = {"log.showSignature": "false", "core.fsmonitor": "false"}
SETTINGS = {"safe.bareRepository": "explicit"} | QUIET
OPTIONS = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
# What `git rev-parse --local-env-vars` names, but for settings. Git exports these to hooks, where they would name the
# repository of the hook in place of the one that a call is about.
LOCAL = frozenset(
    f"GIT_{name}"
    for name in (
        *("ALTERNATE_OBJECT_DIRECTORIES", "OBJECT_DIRECTORY", "DIR", "WORK_TREE", "IMPLICIT_WORK_TREE", "GRAFT_FILE"),
        *("INDEX_FILE", "NO_REPLACE_OBJECTS", "REPLACE_REF_BASE", "PREFIX", "INTERNAL_SUPER_PREFIX", "SHALLOW_FILE"),
        *("COMMON_DIR", "CONFIG"),
    )
)
# A submodule in `git status --porcelain=v2`: whether there are changes inside, and its kind of file in HEAD, 0 for none.
SUBMODULE = re.compile(r"1 .. S.(?P<inside>..) (?P<before>\d+) (?:\w+ ){4}(?P<path>.*)", re.DOTALL)


def run(folder: Path, *command: str, **variables: str) -> str:
    """Run git in a folder of a work tree and return what it printed. Raises ClickException with git's own words.

    variables: of the environment, beside those that are set.
    """
    try:
        done = _call(folder, *command, **variables)
    except FileNotFoundError:
        raise click.ClickException("git is not installed; results are kept by commit") from None
    if done.returncode:
        first = done.stderr.strip().partition("\n")[0]
        verb = next(word for word in command if not word.startswith("-"))
        raise click.ClickException(f"git {verb} failed: {first}") from None
    return done.stdout.strip()


def _call(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    words = ["git", "-C", str(folder), *OPTIONS, *command]
    env = _anywhere(os.environ) | variables
    return subprocess.run(words, capture_output=True, encoding="utf-8", errors="replace", check=False, env=env)


def _anywhere(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables without those that name a repository."""
    return {name: value for name, value in variables.items() if name not in LOCAL}


def holds(folder: Path) -> bool:
    """Whether a folder lies in a work tree."""
    return not _call(folder, "rev-parse", "--show-toplevel").returncode


def tracked(folder: Path, *patterns: str) -> list[Path]:
    """Files of a work tree that match one of git's patterns, relative to a folder of it; none if it is not a work tree."""
    try:
        listed = _call(folder, "ls-files", "-z", "--", *patterns).stdout
    except FileNotFoundError:  # no git
        return []
    return [Path(name) for name in listed.split("\0") if name]


def snapshot(top: Path, left_out: Iterable[str]) -> str | None:
    """Make a commit of a work tree as it is, new files included, on top of HEAD; None if it holds what HEAD holds.

    left_out: paths from the top whose changes do not count. Neither the index nor a branch is touched, and the same tree on
    the same HEAD is the same commit. Raises ClickException for changes inside other repositories, of which a commit holds
    only the commit.
    """
    index = Path(run(top, "rev-parse", "--path-format=absolute", "--git-path", "index"))
    role = {"NAME": "convbench", "EMAIL": "", "DATE": run(top, "show", "--no-patch", "--format=%cI", "HEAD")}
    known = {f"GIT_{person}_{what}": value for person in ("AUTHOR", "COMMITTER") for what, value in role.items()}
    with tempfile.TemporaryDirectory() as folder:
        known["GIT_INDEX_FILE"] = str(Path(folder, "index"))
        if index.is_file():  # the index knows unchanged files, and files that are not checked out
            shutil.copyfile(index, known["GIT_INDEX_FILE"])
        # git refuses an exclusion of files that it ignores.
        seen = [path for path in left_out if _call(top, "check-ignore", "--quiet", "--", path).returncode]
        counted = (":(top)", *(f":(top,exclude){path}" for path in seen))
        run(top, "add", "--all", "--", *counted, **known)
        listed = ("status", "--porcelain=v2", "-z", "--no-renames", "--ignore-submodules=none", "--", *counted)
        _require_whole(top, run(top, *listed, **known))
        tree = run(top, "write-tree", **known)
        if tree == run(top, "rev-parse", "HEAD^{tree}"):
            return None
        return run(top, "commit-tree", tree, "-p", "HEAD", "-m", "uncommitted changes", **known)


def _require_whole(top: Path, status: str) -> None:
    """Raise ClickException if a submodule has changes inside, or a repository is new and no submodule.

    status: as git prints it in version 2 of its format, after all files were added.
    """
    named = _call(top, "config", "--file", str(top / ".gitmodules"), "--get-regexp", r"^submodule\..*\.path$").stdout
    known = {line.partition(" ")[2] for line in named.splitlines()}
    for found in filter(None, map(SUBMODULE.match, status.split("\0"))):
        path = found["path"]
        if found["inside"] != "..":
            raise click.ClickException(
                f"the submodule {path} has changes inside, which no commit of this repository can hold: commit and push"
                " them there, or have git ignore them"
            )
        if found["before"] == "000000" and path not in known:
            raise click.ClickException(
                f"{path} is a repository of its own and no submodule, so its files cannot be measured: have git ignore it,"
                " or make it a submodule"
            )


def share(source: Path, target: Path) -> None:
    """Make a clone of a shallow repository that has all its commits: `git clone --shared`, which asv calls, refuses to."""
    objects = Path(run(source, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    run(source, "init", "--quiet", str(target))
    (target / ".git" / "objects" / "info" / "alternates").write_text(f"{objects / 'objects'}\n", encoding="utf-8")
    shutil.copyfile(objects / "shallow", target / ".git" / "shallow")


def pack(directory: str, wanted: Iterable[str], known: Iterable[str]) -> bytes:
    """Commits with all that they need and a repository with the known ones lacks. directory: of git itself, as .git.

    Raises ClickException with git's own words.
    """
    revisions = "\n".join([*wanted, *(f"^{commit}" for commit in known)])
    command = ("pack-objects", "--quiet", "--revs", "--thin", "--stdout", "--delta-base-offset")
    return _piped(directory, revisions.encode(), *command)


def unpack(directory: str, packed: bytes) -> None:
    """Add packed commits to a repository. Raises ClickException with git's own words."""
    _piped(directory, packed, "index-pack", "--stdin", "--fix-thin")


def refer(directory: str, names: Mapping[str, str]) -> None:
    """Make names for commits, as branches are. Raises ClickException with git's own words."""
    lines = "".join(f"update {name} {commit}\n" for name, commit in names.items())
    _piped(directory, lines.encode(), "update-ref", "--stdin")


def _piped(directory: str, sent: bytes, *command: str) -> bytes:
    words = ["git", f"--git-dir={directory}", *OPTIONS, *command]
    done = subprocess.run(words, input=sent, capture_output=True, check=False, env=_anywhere(os.environ))
    if done.returncode:
        raise click.ClickException(f"git {command[0]} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def pull(folder: Path, repository: str, name: str) -> None:
    """Clone a repository that is elsewhere, as asv does, or fetch what is new. Raises ClickException with git's own words."""
    with contextlib.chdir(folder), log.set_level(logging.CRITICAL + 1):
        try:
            Repository(repository, name).pull()
        except (ProcessError, UserError) as error:
            said = (getattr(error, "stderr", "") or str(error)).strip().rpartition("\n")[2]
            raise click.ClickException(f"the repository {repository} cannot be fetched: {said}") from None


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables for asv, so that its own calls of git start no program either, and find the repositories that it means.

    Not safe.bareRepository: asv finds its mirror of a remote repository, which is bare, and does not name it.
    """
    known = _anywhere(variables)
    count = int(known.get("GIT_CONFIG_COUNT") or 0)
    for number, (name, value) in enumerate(QUIET.items(), count):
        known |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return known | {"GIT_CONFIG_COUNT": str(count + len(QUIET))}


def require_own(root: Path, repository: str, mirror: str) -> None:
    """Raise ClickException if a project's repository is a bare one among the files of a clone.

    root: the project's folder. repository, mirror: from there, a path or URL, and where asv keeps its mirror of a remote one.
    """
    try:
        for folder in {root, root / repository}:
            bare = _bare(folder)
            if bare and not _call(bare.parent, "rev-parse", "--show-toplevel").returncode:
                raise click.ClickException(
                    f"{bare.name} is a bare repository inside a work tree, and its configuration is not trusted: move it"
                    " out of the work tree, or name another `repo`"
                )
        if _bare(root / mirror) == root / mirror and _call(root, "ls-files", "--", f":(literal){mirror}").stdout:
            raise click.ClickException(
                f"{mirror} is a bare repository in the work tree, where asv would keep its own clone: "
                "remove it, or rename the project"
            )
    except FileNotFoundError:  # git is missing, which the first call that needs it reports
        return


def _bare(folder: Path) -> Path | None:
    """The bare repository that git would find from a folder, None if it would find another or none.

    A folder in a bare repository lies inside its git directory; one in a work tree lies beside it. This works also for git
    before 2.38, without safe.bareRepository: git is only asked for a path, which runs no program of the repository's.
    """
    if not os.path.isdir(folder):  # noqa: PTH112  # a URL is not a path
        return None
    words = ["git", "-C", str(folder), *(word for name, value in QUIET.items() for word in ("-c", f"{name}={value}"))]
    words += ["rev-parse", "--absolute-git-dir"]
    env = _anywhere(os.environ)
    done = subprocess.run(words, capture_output=True, encoding="utf-8", errors="replace", check=False, env=env)
    found = done.stdout.strip()
    return Path(found) if found and folder.resolve().is_relative_to(found) else None


class Repository(Git):
    """asv's reader of a repository, with the settings of our own calls.

    A bare repository, such as asv's mirror, is named explicitly, since git refuses one that it only found.
    """

    def _run_git(self, args, cwd=True, **kwargs):
        is_mirror = cwd is True and not Path(self._path, ".git").exists()
        named = ["--git-dir", self._path] if is_mirror else []
        return super()._run_git([*OPTIONS, *named, *args], cwd, env=_anywhere(os.environ), **kwargs)
