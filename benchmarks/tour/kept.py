"""The stored results of the tour, which `convbench tour --keep` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks.harness import cell
from benchmarks.tour.stories import STORIES


class Kept(NamedTuple):
    """A story's results: where and when they were measured."""

    machine: str
    commit: str
    date: str
    steps: Mapping[str, Mapping[str, Any]]


def newest() -> dict[str, Kept]:
    """The newest results of each story. Raises LookupError for a story without any."""
    found: dict[str, Kept] = {}
    for path in sorted((cell.CHECKOUT / "results").glob("*/tour/*.json")):
        for name, story in json.loads(path.read_text(encoding="utf-8")).items():
            one = Kept(path.parents[1].name, path.stem, story["date"], story["steps"])
            found[name] = max(one, found.get(name, one), key=lambda each: each.date)
    if missing := [name for name in STORIES if name not in found]:
        raise LookupError(f"the story {missing[0]} has no stored results: convbench tour {missing[0]} --keep")
    return found
