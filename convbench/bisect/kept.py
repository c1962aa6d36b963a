"""What a bisection keeps for the next call: the build of each commit, and what was measured before it was stopped."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convbench.asv.project import Project
from convbench.common import atomic_write
from convbench.gate import build
from convbench.gate.build import Built, Wanted
from convbench.gate.failures import Failure, HeadBroken

SHORT = 10  # digits of a hash that name a folder; all are of one length, as build.SIDES are


@dataclass(frozen=True)
class Builds:
    """Commits as they are built by one configuration, each once, in a folder of its own."""

    project: Project
    folder: Path
    wanted: Wanted

    @classmethod
    def of(cls, project: Project, wanted: Wanted) -> Builds:
        """Those of the project as it is configured now; what another configuration has built is removed."""
        settings = hashlib.sha256(project.file.read_bytes() + repr(wanted).encode()).hexdigest()[:SHORT]
        top = project.work / "bisect"
        _remove_others(top, {settings})
        return cls(project, top / settings, wanted)

    def keep_only(self, commits: Collection[str]) -> None:
        """Remove the builds of all other commits."""
        _remove_others(self.folder, {commit[:SHORT] for commit in commits})

    def get(self, commit: str) -> Built:
        """The build of a commit, made where there is none. Raises HeadBroken where it does not build, and Failure."""
        folder = self.folder / commit[:SHORT]
        file = folder / "kept.json"
        known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
        if known and Path(known["python"]).exists():  # asv's environments may have been removed meanwhile
            kinds = {"folder": Path, "suite": Path, "own_suite": Path, "others": tuple, "differences": tuple}
            return Built(**{name: kinds.get(name, lambda same: same)(value) for name, value in known.items()})
        folder.mkdir(parents=True, exist_ok=True)
        try:
            built = build.build(self.project, {"head": commit}, folder, self.wanted)["head"]
        except HeadBroken as broken:
            raise HeadBroken(broken.message.removeprefix("the head "), broken.trace) from None
        _write(file, dataclasses.asdict(built))
        return built

    def pair(self, base: str, head: str, suite: str) -> dict[str, Built]:
        """Two commits as the sides of a gate; the suite of a third measures both."""
        measures = self.get(suite).suite
        return {side: self._as_side(side, commit, measures) for side, commit in zip(build.SIDES, (base, head), strict=True)}

    def _as_side(self, side: str, commit: str, suite: Path) -> Built:
        built = self.get(commit)
        place = self.folder / side
        place.unlink(missing_ok=True)
        place.symlink_to(built.folder)
        return dataclasses.replace(built, folder=place, suite=suite)


@dataclass(frozen=True)
class Measured:
    """What a gate of one cell said of a commit. ratio, low, high: None where it could not be measured."""

    verdict: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None

    @property
    def words(self) -> str:
        """The ratio with its interval, or why there is none."""
        if self.ratio is None:
            return self.reason or self.verdict
        return f"{self.ratio:.2f}x ({self.low:.2f} to {self.high:.2f})"

    @property
    def brief(self) -> str:
        """The same without what a builder or an exception says."""
        return self.words.partition(": ")[0]


class Verdicts:
    """What was measured for one question, by pair of commits; kept in a file until the question is answered."""

    def __init__(self, file: Path, question: list[str]) -> None:
        self.file, self.question = file, question
        known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        found = known.get("found", {}) if known.get("question") == question else {}
        self.found = {pair: Measured(**said) for pair, said in found.items()}

    def add(self, pair: str, measured: Measured) -> None:
        """Keep what was measured of a pair."""
        self.found[pair] = measured
        found = {pair: dataclasses.asdict(said) for pair, said in self.found.items()}
        _write(self.file, {"question": self.question, "found": found})

    def forget(self) -> None:
        """Remove all: the next call measures again."""
        self.file.unlink(missing_ok=True)


def _write(file: Path, content: dict[str, Any]) -> None:
    """Write a file of ours whole or not at all. Raises Failure where it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write.whole(file) as beside:
            beside.write_text(json.dumps(content, default=str), encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot write to {file}: {error.strerror}") from None


def _remove_others(folder: Path, names: Collection[str]) -> None:
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and not path.is_symlink() and path.name not in names:
            shutil.rmtree(path)
