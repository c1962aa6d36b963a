"""Resolves a gate's arguments to the commits of both sides and the accepted regressions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import click

from convbench.asv.project import Project
from convbench.gate import accept
from convbench.gate.accept import Acceptance
from convbench.gate.failures import Usage


@dataclass(frozen=True)
class Acceptances:
    """counted: those that accept regressions. proposed: those of the head's file that do not, since another file was named.

    proposal_error: why the head's file could not be read, if another file was named.
    """

    counted: list[Acceptance]
    proposed: list[Acceptance] = field(default_factory=list)
    proposal_error: str | None = None


def commits(project: Project, base: str | None, head: str | None, dirty: bool = False) -> dict[str, str]:
    """The full hashes of base and head. Raises Usage for an unknown revision, and where both are one commit.

    base: a revision. None is where the head left the project's first branch. head: as for `newest`. dirty: the head is the
    working tree as it is.
    """
    newer = _working_tree(project) if dirty else newest(project, head)
    try:
        older = project.merge_base(_first_branch(project), newer) if base is None else project.commit(base)
    except click.ClickException as error:
        raise Usage(error.message) from None
    if older == newer:
        raise Usage(
            f"base and head are the same commit, {newer[:10]}: name another base, as convbench gate HEAD~1, or measure "
            "noise with --self-test"
        )
    return {"base": older, "head": newer}


def _working_tree(project: Project) -> str:
    """The hash of a commit made of the working tree as it is. Raises Usage if nothing is uncommitted."""
    try:
        if found := project.snapshot():
            return found
    except click.ClickException as error:
        raise Usage(error.message) from None
    raise Usage("there are no uncommitted changes: omit --dirty to gate the checked-out commit")


def newest(project: Project, head: str | None) -> str:
    """The full hash of the head. Raises Usage for an unknown revision or a working tree with uncommitted changes.

    head: a revision. None is the commit that is checked out.
    """
    try:
        project.pull()
        if head is None and (changed := project.uncommitted()):
            raise Usage(
                f"{changed} has uncommitted changes, and a gate measures commits: commit them, add --dirty, or name the head"
            )
        return project.commit(head or "HEAD")
    except Usage:
        raise
    except click.ClickException as error:
        raise Usage(error.message) from None


def _first_branch(project: Project) -> str:
    """The commit of the branch that a head is compared with by default.

    asv's own default is the local git's name of a new branch, which must not decide a verdict.
    """
    if name := (project.conf.branches or [None])[0]:
        # A checkout of a pull request has the branch as the remote's alone.
        if found := _known(project, name) or _known(project, f"origin/{name}"):
            return found
        raise Usage(
            f"git knows no branch {name}, the first in {project.file.name}: give the base, as convbench gate BASE"
            f"{project.shallow_words}"
        )
    if found := _known(project, "origin/HEAD"):
        return found
    known = [found for name in ("main", "master") if (found := _known(project, name) or _known(project, f"origin/{name}"))]
    if len(known) == 1:
        return known[0]
    raise Usage(
        f"{project.file.name} has no branches, and git no default branch: give the base, as convbench gate BASE"
        f"{project.shallow_words}"
    )


def _known(project: Project, name: str) -> str | None:
    try:
        return project.commit(name)
    except click.ClickException:
        return None


def named_file(file: Path | None) -> list[Acceptance] | None:
    """The acceptances in the file that replaces the head's own, None if none is named. Raises Usage."""
    try:
        return accept.read(file) if file else None
    except accept.Malformed as error:
        raise Usage(str(error)) from None


def acceptances(head: Path, named: list[Acceptance] | None) -> Acceptances:
    """Those of the head's own file; or the named ones, and then what the head's file has beyond them is only proposed.

    head: the folder of its checkout. Raises Usage if the head's own file counts and cannot be read.
    """
    try:
        own = accept.read(head / accept.FILE)
    except accept.Malformed as error:
        if named is None:
            raise Usage(str(error)) from None
        return Acceptances(named, proposal_error=str(error))
    if named is None:
        return Acceptances(own)
    known = {(acceptance.cell, acceptance.reason) for acceptance in named}
    return Acceptances(named, [acceptance for acceptance in own if (acceptance.cell, acceptance.reason) not in known])
