"""What a gate's arguments name: the commits of both sides, and the regressions that are accepted."""

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

    proposal_error: why the head's file could not be read, where another file was named.
    """

    counted: list[Acceptance]
    proposed: list[Acceptance] = field(default_factory=list)
    proposal_error: str | None = None


def commits(project: Project, base: str | None, head: str | None) -> dict[str, str]:
    """The full hashes of base and head. Raises Usage for an unknown revision or a working tree with uncommitted changes.

    base, head: revisions. None is where the head left the project's first branch, and the commit that is checked out.
    """
    try:
        if head is None and (changed := project.git("status", "--porcelain", "-uno", "--", *project.code)):
            raise Usage(
                f"{changed.split()[1]} has uncommitted changes, and a gate measures commits: commit them, or name the head"
            )
        newer = project.commit(head or "HEAD")
        older = project.git("merge-base", _first_branch(project), newer) if base is None else project.commit(base)
    except click.ClickException as error:
        raise Usage(error.message) from None
    return {"base": older, "head": newer}


def _first_branch(project: Project) -> str:
    name = (project.conf.branches or ["HEAD"])[0] or "HEAD"
    for known in (name, f"origin/{name}"):  # a checkout of a pull request has the branch as the remote's alone
        try:
            return project.commit(known)
        except click.ClickException:
            continue
    raise Usage(f"the first branch in asv.conf.json, {name}, is not known to git here: name the base, as convbench gate BASE")


def named_file(file: Path | None) -> list[Acceptance] | None:
    """The acceptances in the file that replaces the head's own, None where none is named. Raises Usage."""
    try:
        return accept.read(file) if file else None
    except accept.Malformed as error:
        raise Usage(str(error)) from None


def acceptances(head: Path, named: list[Acceptance] | None) -> Acceptances:
    """Those of the head's own file; or the named ones, and then what the head's file has beyond them is only proposed.

    head: the folder of its checkout. Raises Usage where the head's own file counts and cannot be read.
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
