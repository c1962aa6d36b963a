"""The stored results of the tour, which `convbench tour --keep` writes."""

from __future__ import annotations

import gzip
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
    for path in sorted((cell.CHECKOUT / "results").glob("*/tour/*.json.gz")):
        for name, story in json.loads(gzip.decompress(path.read_bytes())).items():
            one = Kept(path.parents[1].name, path.name.partition(".")[0], story["date"], story["steps"])
            found[name] = max(one, found.get(name, one), key=lambda each: each.date)
    if missing := [name for name in STORIES if name not in found]:
        raise LookupError(f"the story {missing[0]} has no stored results: convbench tour {missing[0]} --keep")
    return found
