"""The range of commits in which a bisection searches."""

from __future__ import annotations

from collections.abc import Sequence

import click

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.common.selection import Selection, exactly
from convbench.common.untrusted import Unreadable
from convbench.gate.failures import Usage
from convbench.stored import change_points, compare, history, results
from convbench.stored.history import Commit


def commits(project: Project, cell: str, good: str | None, bad: str | None) -> list[Commit]:
    """The commits from good to bad by first parents.

    good: a revision. None is the last commit before the newest step by which stored times of the cell became slower.
    bad: a revision. None is HEAD. Raises Usage for an unknown revision, and where there is no such range.
    """
    try:
        project.pull()
        newest = project.commit(bad or "HEAD")
        oldest = _old_level(project, cell, history.commits(project, head=newest)) if good is None else project.commit(good)
        if oldest == newest:
            raise Usage(f"GOOD and BAD are the same commit, {newest[:10]}: name an older GOOD")
        found = {commit.hash: commit for commit in history.commits(project, head=newest)}
    except Usage:
        raise
    except click.ClickException as error:
        raise Usage(error.message) from None
    if oldest not in found:
        raise Usage(f"GOOD, {oldest[:10]}, is not in the history of BAD, {newest[:10]}, by first parents: name one that is")
    hashes = list(found)
    return [found[one] for one in hashes[hashes.index(oldest) :]]


def _old_level(project: Project, cell: str, chain: Sequence[Commit]) -> str:
    """The last commit at the old level in the stored results. Raises Usage where these show no step."""
    try:
        known = results.benchmarks(project.results)
        name = compare.choose_machine(project.results, None, machine.name())
        events = history.history(project.results, name, chain, known, Selection((exactly(cell),))).events
    except (click.ClickException, Unreadable) as error:
        reason = f" ({error.message if isinstance(error, click.ClickException) else error})"
        events = ()
    else:
        reason = ""
    places = {commit.hash: place for place, commit in enumerate(chain)}
    slower = [event for event in events if event.kind == change_points.STEP and event.change.ratio > 1]
    if not slower:
        raise Usage(f"stored results do not show when {cell} became slower{reason}: name GOOD, as convbench bisect CELL GOOD")
    return max(slower, key=lambda event: places[event.good.hash]).good.hash
