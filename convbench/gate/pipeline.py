"""The gate from end to end: two commits in, both built, measured in turn, judged and reported."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import click
from rich.console import Console

from convbench.asv import machine
from convbench.asv.project import Project
from convbench.common import interrupts, lock, numbers, progress
from convbench.common.selection import Selection
from convbench.gate import accept, build, discover, judge
from convbench.gate import report as outcome
from convbench.gate.accept import Acceptance
from convbench.gate.report import Outcome
from convbench.gate.sample import Session


@dataclass(frozen=True)
class Request:
    """What is asked for.

    base, head: revisions, None for their defaults. budget: seconds, None for what the cells need. accept_file: read in place
    of the head's own file of accepted regressions.
    """

    base: str | None = None
    head: str | None = None
    selection: Selection = field(default_factory=Selection)
    budget: float | None = None
    acceptances: tuple[Acceptance, ...] = ()
    json: Path | None = None
    markdown: Path | None = None
    accept_file: Path | None = None


class Usage(click.ClickException):
    """A question that cannot be answered as it was put."""

    exit_code = outcome.USAGE


def run(project: Project, request: Request, console: Console) -> Outcome:
    """Measure head against base and write the reports as it goes.

    Raises Usage for a wrong question; everything else that goes wrong stands in the outcome, with its exit status.
    """
    commits = resolve(project, request)
    try:
        given = accept.read(request.accept_file) if request.accept_file else None
    except accept.Malformed as error:
        raise Usage(str(error)) from None
    for path in filter(None, (request.json, request.markdown)):
        if not path.parent.is_dir():
            raise Usage(f"{path} cannot be written: {path.parent} is no folder")
    settings = {
        "smallest": judge.SMALLEST,
        "level": judge.LEVEL,
        "first_rounds": judge.FIRST,
        "budget_seconds": request.budget,
        "bench": list(request.selection.patterns),
        "implementation": list(request.selection.implementations),
        "quick": request.selection.quick,
    }
    result = Outcome(commits["base"], commits["head"], machine.facts(), settings)
    start = time.monotonic()

    def write() -> None:
        result.seconds = time.monotonic() - start
        if request.json:
            outcome.write_json(request.json, result)
        if request.markdown:
            outcome.write(request.markdown, outcome.as_markdown(result))

    try:
        with lock.lock(project.work, project.results), interrupts.termination():
            _measure(project, request, commits, given, result, console, write)
    except (KeyboardInterrupt, interrupts.Interrupted):
        _stop(result, "interrupted: what had been measured by then stands above and in the reports")
    except click.ClickException as error:
        if error.exit_code == outcome.USAGE:
            raise
        _stop(result, error.message)
    try:
        write()
    except click.ClickException as error:
        _stop(result, error.message)
    return result


def _stop(result: Outcome, reason: str, status: int = outcome.NOT_MEASURED) -> None:
    result.error, result.error_status = reason, status


def resolve(project: Project, request: Request) -> dict[str, str]:
    """The full hashes of both sides. Raises Usage where git has none of that name, or the working tree is not committed."""
    try:
        if request.head is None and (changed := project.git("status", "--porcelain", "-uno", "--", *project.code)):
            raise Usage(
                f"{changed.split()[1]} has uncommitted changes, and a gate measures commits: commit them, or name the head"
            )
        head = project.commit(request.head or "HEAD")
        if request.base is not None:
            return {"base": project.commit(request.base), "head": head}
        return {"base": project.git("merge-base", _first_branch(project), head), "head": head}
    except click.ClickException as error:
        raise Usage(error.message) from None


def _first_branch(project: Project) -> str:
    name = (project.conf.branches or ["HEAD"])[0] or "HEAD"
    for known in (name, f"origin/{name}"):  # a checkout of a pull request has the branch as the remote's alone
        try:
            return project.commit(known)
        except click.ClickException:
            continue
    raise Usage(f"the first branch in asv.conf.json, {name}, is not known to git here: name the base, as convbench gate BASE")


def _measure(
    project: Project,
    request: Request,
    commits: dict[str, str],
    given: list[Acceptance] | None,
    result: Outcome,
    console: Console,
    write: Callable[[], None],
) -> None:
    console.print(f"building {commits['base'][:10]} (base) and {commits['head'][:10]} (head)", highlight=False)
    if commits["base"] == commits["head"]:
        console.print("both sides are the same commit: whatever differs is noise, as `--self-test` measures it")
    session = prepare(project, request, commits, result, console)
    if session is None:
        return
    try:
        by_file = acceptances(session.built["head"].folder / "checkout", given, result)
    except accept.Malformed as error:
        raise Usage(str(error)) from None
    report(session, result, [*request.acceptances, *by_file], write, console, project.work / "gate")


def acceptances(head: Path, given: list[Acceptance] | None, result: Outcome) -> list[Acceptance]:
    """Those of the head's own file; or the given ones, and then what the head's file has beyond them is only proposed.

    head: the folder of its checkout. Raises Malformed where the head's own file counts and cannot be read.
    """
    try:
        own = accept.read(head / accept.FILE)
    except accept.Malformed as error:
        if given is None:
            raise
        own, result.proposal_error = [], str(error)
    if given is None:
        return own
    known = {(acceptance.cell, acceptance.reason) for acceptance in given}
    result.proposed = [acceptance for acceptance in own if (acceptance.cell, acceptance.reason) not in known]
    return given


def prepare(project: Project, request: Request, commits: dict[str, str], result: Outcome, console: Console) -> Session | None:
    """Build both sides and find their cells; None where that failed, as the outcome then says."""
    work = project.work / "gate"
    work.mkdir(parents=True, exist_ok=True)
    try:
        built = build.build(project, commits, work)
        suite = discover.discover(built, work, request.selection)
    except build.NotBuilt as error:
        side = error.side or "environment"
        status = outcome.HEAD_BROKEN if error.side == "head" else outcome.NOT_MEASURED
        _stop(result, f"the {side} does not build: {error.reason}", status)
        return None
    except click.ClickException as error:
        raise Usage(error.message) from None
    except discover.NoSuite as error:
        status = outcome.HEAD_BROKEN if error.side == "head" else outcome.NOT_MEASURED
        _stop(result, f"the suite cannot be listed with the code of the {error.side}: {error.reason}", status)
        return None
    _tell_unread(suite, request, result)
    result.listed, result.environment = suite.listed, built["head"].environment
    if not suite.cells:
        if not result.error:  # which would say why there is none
            asked = " of that name" if request.selection != Selection() else ""
            _stop(result, f"there is no benchmark{asked} that both sides could be timed on")
        return None
    console.print(f"{len(suite.cells)} cells, measured in turn in rounds of fresh processes", highlight=False)
    return Session(built, suite, smallest_changes(project, suite), request.budget)


def _tell_unread(suite: discover.Suite, request: Request, result: Outcome) -> None:
    """Modules of the suite that cannot be imported: their benchmarks are missing, unless others were asked for by name."""
    on_head, on_base = suite.unread["head"], suite.unread["base"]
    told = {
        name: f"cannot be imported with the code of {'either side' if name in on_base else 'the head'}: {reason}"
        for name, reason in on_head.items()
    }
    if on_head and request.selection == Selection():
        worst = min(on_head, key=lambda name: (name in on_base, name))
        status = outcome.NOT_MEASURED if worst in on_base else outcome.HEAD_BROKEN
        _stop(result, f"{worst} {told.pop(worst)}", status)
    suite.listed += sorted(told.items())


def smallest_changes(project: Project, suite: discover.Suite) -> dict[str, float]:
    """Each cell's smallest change worth reporting, where asv.conf.json's regressions_thresholds name one."""
    found: dict[str, float] = {}
    for pattern, value in (project.conf.regressions_thresholds or {}).items():
        found |= {cell.name: float(value) for cell in suite.cells if re.match(pattern, cell.name)}
    return found


def report(
    session: Session,
    result: Outcome,
    acceptances: list[Acceptance],
    write: Callable[[], None],
    console: Console,
    work: Path,
) -> None:
    """Run a session to its end; the outcome and its files are up to date after every round, and however it ends."""

    def update() -> None:
        result.rows = outcome.rows(list(session.states.values()), acceptances)
        result.rounds = session.rounds

    done = 0
    with progress.bar(console) as bar:
        task = bar.add_task("round 1", total=len(session.suite.cells))
        try:
            for settled, total in session.run(work):
                left = "" if session.budget is None else f", at most {numbers.minutes(max(0.0, session.left()))} left"
                bar.update(
                    task, completed=settled, description=f"round {session.rounds + 1}, {settled} of {total} decided{left}"
                )
                if session.rounds > done:
                    done = session.rounds
                    update()
                    write()
        finally:
            update()
