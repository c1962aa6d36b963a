"""`convbench gate --cluster`: a shard of the cells for each machine, judged together at the end."""

from __future__ import annotations

import dataclasses
import io
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.cluster import batch, pool
from convbench.cluster.pool import Pool
from convbench.common import interrupts
from convbench.gate import merge, pipeline, resolve
from convbench.gate.failures import EmptyShard, Failure, Usage
from convbench.gate.pipeline import Request
from convbench.gate.report import Report


def run(project: Project, request: Request, address: str, names: str, console: Console) -> Report:
    """Measure head against base on all machines of these names, both sides of a cell always on one; write the reports.

    Raises Usage for a wrong question; every other failure is in the report, with its exit status.
    """
    sides, start = pipeline.sides_of(project, request), time.monotonic()
    resolve.named_file(request.accept_file)
    pipeline.require_folders(request)
    failure = None
    try:
        commits = list(sides.values())
        with (
            interrupts.interruptible(lambda: "nothing is judged without all cells"),
            pool.connect(address, project, commits, names, console) as machines,
        ):
            machines.wait()
            found = _merged(_reports(machines, request, sides), request)
    except Usage:
        raise
    except click.ClickException as error:
        failure = error if isinstance(error, Failure) else Failure(error.message)
        found = Report(sides["base"], sides["head"], machine.facts(), pipeline.settings(request), failure=failure)
    found = dataclasses.replace(found, kind=request.kind, seconds=time.monotonic() - start)
    pipeline.write(request, found)
    return found


def shard(project: Project, request: Request, accepted: str | None) -> str | Usage | None:
    """The JSON report of a shard, on this machine; None if it has no cells. accepted: the file of accepted regressions."""
    work = pipeline.folder(project)
    work.mkdir(parents=True, exist_ok=True)
    file, named = work / "shard.json", work / "accepted.toml"
    if accepted is not None:
        named.write_text(accepted, encoding="utf-8")
        request = dataclasses.replace(request, accept_file=named)
    try:
        pipeline.run(project, dataclasses.replace(request, json=file), Console(file=io.StringIO()))
    except EmptyShard:
        return None
    except Usage as error:
        return error
    return file.read_text(encoding="utf-8")


def _reports(machines: Pool, request: Request, sides: Mapping[str, str]) -> list[dict[str, Any]]:
    """The reports of the shards, one for each machine that is there, without those that have no cells. Raises Usage."""
    accepted = request.accept_file.read_text(encoding="utf-8") if request.accept_file else None
    asked = dataclasses.replace(request, base=sides["base"], head=sides["head"], kind=Request().kind)
    asked = dataclasses.replace(asked, json=None, markdown=None, accept_file=None)
    count = machines.places()
    calls = [
        (f"shard {place}/{count}", (dataclasses.replace(asked, shard=(place, count)), accepted))
        for place in range(1, count + 1)
    ]
    answers = batch.answers(machines, "measuring", shard, calls)
    for answer in answers:
        if isinstance(answer, Usage):
            raise answer
    return [json.loads(answer) for answer in answers if answer is not None]


def _merged(contents: Sequence[dict[str, Any]], request: Request) -> Report:
    """The reports judged as one, counted anew. Raises Usage."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{place}.json") for place in range(1, len(contents) + 1)]
        for place, (file, content) in enumerate(zip(files, contents, strict=True), 1):
            file.write_text(json.dumps(content | {"shard": f"{place}/{len(contents)}"}), encoding="utf-8")
        return merge.merge(files, request.acceptances)
