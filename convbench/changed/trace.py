"""Traces which of the differing files the cells of a suite load and run, on both sides at the same time."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convbench.changed.builds import SIDES, Difference, Install, Kind
from convbench.common import session_guard

PROGRAM = Path(__file__).with_name("tracer.py")
POLL_SECONDS = 0.05
EVERY = '"every": true'  # in the answer of a process for all cells
MAX_SILENCE = 1200.0  # seconds for the next cell, or for loading the suite

# What a process saw, as tracer.py writes it.
Facts = dict[str, Any]


@dataclass(frozen=True)
class Side:
    """How a side's processes are started. worker: the program that prepares cells; spawns: whether each loads the suite."""

    install: Install
    suite: Path
    worker: Path
    spawns: bool


@dataclass(frozen=True)
class Request:
    """A cell of one side as worker.py takes it, and its name."""

    name: str
    id: str
    params: Sequence[str]
    place: int
    folder: Path
    sample_time: float
    timeout: float


class Trace:
    """Questions to tracer.py, and what its processes answered.

    Where something differs, a cell makes as many calls as in a round of a gate on the side that comes to it first, and one on
    the other, for both run the same until both come upon what differs; what one side alone has only that side can see.
    """

    def __init__(self, sides: Mapping[str, Side], difference: Difference) -> None:
        self.sides = sides
        one_sided = any(len(change.files) < len(SIDES) for change in difference.changes)
        calls = "one" if difference.is_none else "round" if one_sided else "claimed"
        claims = sides["base"].install.folder / "claims"
        shutil.rmtree(claims, ignore_errors=True)
        claims.mkdir()
        for side, one in sides.items():
            marks: dict[str, list[list[int]]] = {}
            whole: list[str] = []
            for change in difference.changes:
                if side not in change.files:
                    continue
                path = str(change.files[side])
                if change.functions is None:
                    whole.append(path)
                else:
                    marks[path] = [[at.line, at.column] for at in getattr(change.functions, side)]
            data = sorted({change.package or "" for change in difference.changes if change.kind is Kind.DATA})
            question: dict[str, Any] = {
                "answers": str(self._answers(side)),
                "roots": list(map(str, difference.roots.get(side, ()))),
            }
            question |= {"marks": marks, "whole": whole, "data": data, "alone": _alone(difference, side)}
            question |= {"spawn": one.spawns, "calls": calls, "claims": str(claims)}
            self._question(side).write_text(json.dumps(question), encoding="utf-8")
            self._answers(side).write_text("", encoding="utf-8")

    def program(self, side: str) -> list[str]:
        """The program that runs in place of worker.py."""
        return [str(PROGRAM), str(self.sides[side].worker), str(self._question(side))]

    def run(
        self,
        requests: Mapping[str, Sequence[Request]],
        environment: Mapping[str, Mapping[str, str]],
        done: Callable[[int], None],
    ) -> None:
        """Trace the cells of both sides. environment: by side. done: is told the cells that both have answered, so far."""
        running: list[subprocess.Popen[bytes]] = []
        before = {side: len(self._lines(side)) for side in SIDES}
        try:
            for side in SIDES:
                question = json.loads(self._question(side).read_text(encoding="utf-8"))
                question["requests"] = [{**vars(one), "folder": str(one.folder), "slower": 0.0} for one in requests[side]]
                self._question(side).write_text(json.dumps(question), encoding="utf-8")
                running.append(self._start(side, environment[side]))
            heard, until = 0, time.monotonic() + MAX_SILENCE
            while any(process.poll() is None for process in running) and time.monotonic() < until:
                time.sleep(POLL_SECONDS)
                lines = {side: self._lines(side) for side in SIDES}
                counts = [len(lines[side]) - before[side] for side in SIDES]
                if sum(counts) > heard:
                    heard, until = sum(counts), time.monotonic() + MAX_SILENCE
                    done(min(counts))
                    if any(EVERY in lines[side][-1] for side, count in zip(SIDES, counts, strict=True) if count):
                        return
        finally:
            for process in running:
                session_guard.end(process)

    def facts(self, side: str) -> list[Facts]:
        """What the processes of a side have answered."""
        return [json.loads(line) for line in self._lines(side)]

    def _start(self, side: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        one = self.sides[side]
        with (one.install.folder / "trace.log").open("ab") as log:
            return subprocess.Popen(
                [one.install.python, *self.program(side), "cells", str(one.suite)],
                cwd=one.install.folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )

    def _lines(self, side: str) -> list[str]:
        """Whole lines: a process that was ended may have left a part of one."""
        *lines, _ = self._answers(side).read_text(encoding="utf-8", errors="replace").split("\n")
        return lines

    def _question(self, side: str) -> Path:
        return self.sides[side].install.folder / "trace.json"

    def _answers(self, side: str) -> Path:
        return self.sides[side].install.folder / "traced.jsonl"


def _alone(difference: Difference, side: str) -> dict[str, list[str]]:
    """By folder of a side, the files there that one side alone has."""
    found: dict[str, list[str]] = {}
    for change in difference.changes:
        if len(change.files) < len(SIDES):
            for root in difference.roots.get(side, ()):
                found.setdefault(str((root / change.name).parent), []).append(change.name)
    return found
