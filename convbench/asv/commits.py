"""Resolves a range of commits in asv's notation, and orders the commits for measuring."""

from __future__ import annotations

import contextlib
import heapq
import logging
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from asv.console import log
from asv.repo import NoSuchNameError
from asv.util import ProcessError, UserError

from convbench.asv.git import Repository
from convbench.asv.project import Project


def resolve(project: Project, words: str, measured: Callable[[], set[str]]) -> list[str]:
    """The commits of a range, newest first: NEW, EXISTING, ALL, TAGS, HASHFILE:FILE, HEAD, or git's words, as main~5..main.

    measured: gives the commits that have results, for NEW and EXISTING. Raises ClickException if git knows no such
    commits, or there are none.
    """
    listed = _listed(words.partition(":")[2]) if words.startswith("HASHFILE:") else None
    # asv resolves paths from the current folder, and prints git's output before it raises.
    with contextlib.chdir(project.root), log.set_level(logging.CRITICAL + 1):
        try:
            repository = Repository(project.conf.repo, project.conf.project)
            repository.pull()
            if listed is None:
                found = _find(repository, project.conf.branches, words, measured)
            else:
                found = list(map(repository.get_hash_from_name, listed))
            place = repository.get_revisions(set(found))
        except NoSuchNameError as error:
            raise click.ClickException(f"git knows no commit {str(error)!r}, which {words} names") from None
        except (ProcessError, UserError, ValueError) as error:
            said = (getattr(error, "stderr", "") or str(error)).strip().partition("\n")[0]
            raise click.ClickException(f"no range of commits is called {words!r}: {said.removeprefix('fatal: ')}") from None
    if words == "EXISTING":
        found = [commit for commit in found if commit in place]  # results outlive commits that a rebase has replaced
    if not found:
        raise click.ClickException(f"there is no commit in {words}")
    # A commit that no branch and no tag holds is at the head of a work in progress.
    return sorted(dict.fromkeys(found), key=lambda commit: place.get(commit, math.inf), reverse=True)


def _find(repository: Repository, branches: list[str], words: str, measured: Callable[[], set[str]]) -> list[str]:
    match words:
        case "HEAD":
            return [repository.get_hash_from_name("HEAD")]
        case "ALL":
            return repository.get_new_branch_commits(branches, [])
        case "EXISTING":
            return list(measured())
        case "NEW":
            return repository.get_new_branch_commits(branches, measured())
        case "TAGS":
            return list(repository.get_tags().values())
    return repository.get_hashes_from_range(words)


def _listed(file: str) -> list[str]:
    """The names in a file, or with "-" on standard input, one a line."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise click.ClickException(f"the list of commits {file!r} cannot be read: {error}") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def order(commits: Sequence[str]) -> list[str]:
    """Both ends first, then always the middle of the widest gap: the first few show the shape of the whole.

    >>> order("abcdefghi")
    ['a', 'i', 'e', 'c', 'g', 'b', 'd', 'f', 'h']
    """
    last = len(commits) - 1
    places = sorted({0, last})
    stretches = [(-last, 0, last)]
    while stretches:
        _, left, right = heapq.heappop(stretches)
        if right - left > 1:
            middle = (left + right) // 2
            places.append(middle)
            heapq.heappush(stretches, (left - middle, left, middle))
            heapq.heappush(stretches, (middle - right, middle, right))
    return [commits[place] for place in places]
