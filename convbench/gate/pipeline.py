"""The gate from end to end: resolve, build, discover, sample, judge, report."""

from __future__ import annotations

import dataclasses
import fnmatch
import re
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
from rich.console import Console

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.changed.builds import Difference
from convbench.common import faults, interrupts, lock, numbers, progress
from convbench.common.selection import Selection
from convbench.gate import build, discover, formats, installed, judge, merge, report, resolve
from convbench.gate.accept import Acceptance
from convbench.gate.build import Built, Wanted
from convbench.gate.discover import Suite
from convbench.gate.failures import Failure, Usage
from convbench.gate.report import Kind, Report
from convbench.gate.sample import Sampling


@dataclass(frozen=True)
class Request:
    """The options of a gate.

    base, head: revisions, None for their defaults; or paths, where the kind is what is installed. budget: seconds, None for
    what the cells need. accept_file: read in place of the head's own file of accepted regressions. json, markdown: where
    reports are written. partial: whether it may pass although time was too short for some cells.
    shard: (2, 5) for the second fifth of the cells. every: whether cells are measured that nothing has changed.
    """

    base: str | None = None
    head: str | None = None
    selection: Selection = field(default_factory=Selection)
    budget: float | None = None
    acceptances: tuple[Acceptance, ...] = ()
    json: Path | None = None
    markdown: Path | None = None
    accept_file: Path | None = None
    wanted: Wanted = field(default_factory=Wanted)
    kind: Kind = Kind.COMMITS
    partial: bool = False
    shard: tuple[int, int] | None = None
    every: bool = False


def run(project: Project, request: Request, console: Console) -> Report:
    """Measure head against base; write the reports after every round and at the end, however it comes.

    Raises Usage for a wrong question; every other failure is in the report, with its exit status.
    """
    sides = sides_of(project, request)
    named = resolve.named_file(request.accept_file)
    require_folders(request)
    start = time.monotonic()
    found = empty = Report(
        sides["base"], sides["head"], machine.facts(), settings(request), kind=request.kind, partial=request.partial
    )
    if request.shard:
        empty = found = dataclasses.replace(empty, shard="{}/{}".format(*request.shard))
    try:
        with lock.lock(project.work, project.results), interrupts.termination():
            for found in _reports(project, request, named, empty, console):
                write(request, _timed(found, start))
    except (KeyboardInterrupt, interrupts.Interrupted):
        found = found.failed(Failure("interrupted: the report contains the results so far"))
    except Usage:
        raise
    except click.ClickException as error:  # the lock's error has the exit status of other commands
        found = found.failed(error if isinstance(error, Failure) else Failure(error.message))
    except Exception as error:
        found = found.failed(Failure(faults.sentence(error), traceback.format_exc()))
    found = _timed(found, start)
    try:
        write(request, found)
    except Failure as failure:
        found = found.failed(failure)
    return found


def why(project: Project, request: Request, cell: str, console: Console) -> dict[str, str]:
    """The difference that touches each selected cell, by its name; nothing is measured. Raises Failure and Usage.

    cell: a name, or a glob.
    """
    pattern = f"^(?:{re.escape(cell)}$|{fnmatch.translate(cell)})"
    request = dataclasses.replace(request, selection=Selection((pattern,)))
    sides = sides_of(project, request)
    try:
        with lock.lock(project.work, project.results), interrupts.termination():
            _, suite, _ = prepare(project, sides, request, console)
    except (KeyboardInterrupt, interrupts.Interrupted):
        raise Failure("interrupted: what touches the cell is not known yet") from None
    if suite.failure:
        raise suite.failure
    otherwise = "not traced: it fails, is unstable, or exists on one side only"
    found = {one.name: suite.touched.get(one.name, otherwise) for one in suite.cells}
    return found | {one.name: "untouched" for one in suite.untouched}


def require_folders(request: Request) -> None:
    """Raise Usage if a report cannot be written where it is asked for."""
    for path in filter(None, (request.json, request.markdown)):
        if not path.parent.is_dir():
            raise Usage(f"{path} cannot be written: {path.parent} is not a folder")


def sides_of(project: Project, request: Request) -> dict[str, str]:
    """The full hashes, or paths, of both sides. Raises Usage."""
    if request.kind is Kind.INSTALLED:
        return installed.sides(request.base, request.head)
    return resolve.commits(project, request.base, request.head, request.kind is Kind.DIRTY)


def settings(request: Request) -> dict:
    """The settings that reports contain."""
    return {
        "smallest": judge.SMALLEST,
        "level": judge.LEVEL,
        "first_rounds": judge.MIN_ROUNDS,
        "budget_seconds": request.budget,
        "bench": list(request.selection.patterns),
        "implementation": list(request.selection.implementations),
        "quick": request.selection.quick,
        "all": request.every,
    }


def _timed(found: Report, start: float) -> Report:
    return dataclasses.replace(found, seconds=time.monotonic() - start)


def write(request: Request, found: Report) -> None:
    """Write the reports that are asked for. Raises Failure."""
    if request.json:
        formats.write_json(request.json, found)
    if request.markdown:
        formats.write(request.markdown, formats.as_markdown(found))


def _reports(
    project: Project, request: Request, named: list[Acceptance] | None, empty: Report, console: Console
) -> Iterator[Report]:
    """The report after every round, and as it stands where the sampling is interrupted. Raises Failure and Usage."""
    if request.kind is not Kind.INSTALLED:
        console.print(f"building {empty.label('base')} (base) and {empty.label('head')} (head)", highlight=False)
    built, suite, difference = prepare(project, {"base": empty.base, "head": empty.head}, request, console)
    head = built["head"]
    known = dataclasses.replace(empty, listed=suite.listed, environment=head.environment, failure=suite.failure)
    known = dataclasses.replace(known, smallest=suite.smallest)
    if request.shard:
        known = dataclasses.replace(known, settings={**known.settings, "all_cells": suite.every})
    known = dataclasses.replace(known, others=head.others, differences=head.differences)
    if difference:
        known = dataclasses.replace(known, identical=difference.is_none, ignored=difference.ignored)
    untouched = report.untouched(suite.untouched)
    if not suite.cells and not untouched:
        yield known
        return
    root = project.root
    if request.kind is not Kind.INSTALLED:
        there = project.in_checkout(root, head.folder / "checkout")
        root = there if there.is_dir() else root
    accepted = resolve.acceptances(root, named)
    known = dataclasses.replace(known, proposed=accepted.proposed, proposal_error=accepted.proposal_error)
    acceptances = [*request.acceptances, *accepted.counted]
    sampling = Sampling(built, suite, request.budget)

    def so_far() -> Report:
        rows = report.rows(list(sampling.states.values()), acceptances, suite.touched) + untouched
        return dataclasses.replace(known, rows=rows, rounds=sampling.rounds)

    if not suite.cells:
        yield so_far()
        return
    try:
        estimate(sampling, folder(project), console)
        for _ in rounds(sampling, folder(project), console):
            yield so_far()
    except (KeyboardInterrupt, interrupts.Interrupted):
        yield so_far()
        raise


def merged(files: Sequence[Path], request: Request) -> Report:
    """The report of all shards; writes what is asked for. Raises Usage."""
    found = merge.merge(files, request.acceptances)
    write(request, found)
    return found


def folder(project: Project) -> Path:
    """Where a gate builds and measures."""
    return project.work / "gate"


def prepare(
    project: Project, sides: dict[str, str], request: Request, console: Console
) -> tuple[dict[str, Built], Suite, Difference | None]:
    """Build both commits, unless they are installed, and find the cells to measure, and what differs unless all are measured.

    Raises Failure and Usage.
    """
    work = folder(project)
    work.mkdir(parents=True, exist_ok=True)
    difference = None
    if request.kind is Kind.INSTALLED:
        built = installed.ready(project, sides, work, request.wanted.launch_method)
    else:
        begun = time.monotonic()
        with progress.told(console, "building"):
            built = build.build(project, sides, work, request.wanted)
        console.print(f"built in {numbers.duration(time.monotonic() - begun)}", highlight=False)
        if built["head"].suite != project.in_checkout(project.benchmarks, built["head"].folder / "checkout"):
            told = f"the head has no {project.conf.benchmark_dir}: the one beside {project.file.name} measures both sides"
            console.print(told, highlight=False)
    with progress.told(console, "comparing the installed files") as update:
        if not request.every:
            difference = discover.differences(built, {} if request.kind is Kind.INSTALLED else sides)
        update(description="listing the benchmarks")
        is_identical = difference is not None and difference.is_none
        suite = discover.discover(built, work, request.selection, project.conf, request.shard, is_identical)
        if difference is None:
            update(description="running setup_cache")
            suite = discover.with_caches(built, suite)
        else:
            for side in difference.empty:
                raise Failure(f"the {side} has installed no module that a process could load")

            def tell(done: int, of: int) -> None:
                update(description=f"tracing each cell: {done} of {of}", completed=done, total=of)

            update(description="tracing each cell")
            suite = discover.narrowed(built, suite, difference, tell)
    return built, suite, difference


def estimate(sampling: Sampling, work: Path, console: Console) -> None:
    """Estimate the cost of each cell, with a bar, and tell what a budget is enough for; without one the first round does."""
    if sampling.budget is None:
        return
    with progress.told(console, "calling each cell once", len(sampling.states)) as update:
        for count, _ in enumerate(sampling.estimate(work), 1):
            update(completed=count)
    console.print(sampling.expectation, highlight=False)


def rounds(sampling: Sampling, work: Path, console: Console) -> Iterator[None]:
    """Sample to the end, with a bar; yields after every round and at the end."""
    done, total = 0, len(sampling.states)
    with progress.told(console, "round 1", total) as update:
        for _ in sampling.run(work):
            left = "" if sampling.budget is None else f", at most {numbers.minutes(max(0.0, sampling.left()))} left"
            decided = f"{sampling.settled} of {total} decided{left}"
            update(completed=sampling.settled, description=f"round {sampling.rounds + 1}, {decided}")
            if sampling.rounds > done:
                done = sampling.rounds
                yield
    yield
