"""The command `convbench`: options in, the other modules' work, an exit status out."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

# What one command alone needs is imported by it: all of it together takes as long as reading a table.
from convbench.asv import machine, project
from convbench.common import atomic_write, untrusted
from convbench.common.selection import Selection, check_names, select
from convbench.common.terminal import SafeConsole
from convbench.pages import dashboard
from convbench.stored import compare, results, roofline, table, unbuilt

if TYPE_CHECKING:
    from convbench.speed.measure import Again

# A table that is read by a program or a log has no screen to fit: this many characters hold nine implementations.
WIDE = 160


def regular_expressions(_context, parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what is no regular expression before anything is built."""
    for value in values:
        try:
            re.compile(value)
        except re.error as error:
            raise click.BadParameter(f"{value!r} is no regular expression: {error}", param=parameter) from None
    return values


BENCH = click.option(
    *("--bench", "-b"),
    multiple=True,
    metavar="REGEX",
    callback=regular_expressions,
    help='Only cells whose "name(parameters)" matches.',
)
IMPLEMENTATION = click.option(
    *("--implementation", "-i"), multiple=True, metavar="GLOB", help="Only these implementations, as cpu.*."
)

FILE = click.Path(dir_okay=False, path_type=Path)


def console(width: int = WIDE) -> SafeConsole:
    """Standard output, as wide as the screen or, without one, so many characters: table.ENDLESS where a line is of one cell
    and is found by its name, which must not be broken.
    """
    return SafeConsole() if sys.stdout.isatty() else SafeConsole(width=width)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="convbench")
def main() -> None:
    """Which convolution is fastest here, how far from this machine's limit, and did the last commit make it slower."""


@main.command()
@click.argument("commits", metavar="[RANGE]", required=False)
@click.option("--steps", type=click.IntRange(1), metavar="N", help="At most N commits of RANGE: its ends, then the middles.")
@BENCH
@IMPLEMENTATION
@click.option("--quick", is_flag=True, help="A short selection of problems: minutes, not an hour.")
@click.option("--again", is_flag=True, help="Measure what is there already, too, and build what did not build.")
@click.option("--busy", is_flag=True, help="Measure even while other things run here.")
@click.option("--config", type=FILE, metavar="FILE", help="Another configuration of asv than asv.conf.json.")
def run(commits, steps, bench, implementation, quick, again, busy, config) -> None:
    """Measure HEAD, or each commit of RANGE as itself. Interrupted, the same command goes on where it stopped.

    RANGE is asv's: NEW, EXISTING, ALL, TAGS, HASHFILE:FILE, or git's, as main~5..main or COMMIT^!. The newest commit is
    measured first, then the oldest, then always the one in the middle of the widest gap.
    """
    from convbench.run import session as measurement

    if steps and not commits:
        raise click.UsageError("--steps says how many commits of a RANGE, and none was given")
    wanted = Selection(bench, implementation, quick)
    request = measurement.Request(wanted, commits, steps, again, busy)
    here = project.load(config.resolve()) if config else project.find()
    if problems := measurement.run(here, request, console()).problems():
        raise click.ClickException("; ".join(problems))


@main.command(name="table")
@BENCH
@IMPLEMENTATION
@click.option("--machine", "machine_name", help="Another machine than this one.")
@click.option("--commit", help="Another commit than the one measured last.")
@click.option("--baseline", help="What speed-ups are relative to, instead of the suite's own baseline.")
@click.option("--layout", type=click.Choice(["own", "compare"]), default="own", show_default=True, help="Or torch's Compare.")
@click.option("--json", "as_json", is_flag=True, help="One object a cell.")
@click.option("--csv", "as_csv", is_flag=True, help="One line a cell.")
def show_table(bench, implementation, machine_name, commit, baseline, layout, as_json, as_csv) -> None:
    """Show stored results: problems down, implementations across."""
    if layout == "compare" and (as_json or as_csv):
        raise click.UsageError("--layout is for people; --json and --csv have all there is")
    here = project.find()
    known = _readable(results.benchmarks, here.results)
    check_names(known, (*implementation, *filter(None, [baseline])))
    stored = _latest(here, known, machine_name, commit)
    cells = roofline.derive(stored.cells, roofline.from_cells(stored.cells, known), baseline)
    cells = cells.assign(machine=stored.machine, commit=stored.commit, environment=stored.environment)
    wanted = set(select(known, Selection(bench, implementation)))
    keep = np.array([(cell.benchmark, cell.params) in wanted for cell in cells.itertuples()], dtype=bool)
    cells = cells[keep]
    if not as_json and not as_csv:
        cells = cells[cells.status != "not measured"]
    if cells.empty:
        where = f"in the results of {stored.commit[:8]} on {stored.machine}"
        raise click.ClickException(f"nothing {where} passes these filters, or it is of other versions of the benchmarks")
    named = baseline or " or ".join(cells.baseline.dropna().unique()) or None
    heading = f"{stored.machine}, commit {stored.commit[:8]}, {stored.environment}"
    if layout == "compare":
        from convbench.stored import torch_compare as by_torch

        click.echo(f"{heading}\n{by_torch.compare(cells, known)}")
        return
    _print(cells, table.Notes(heading, named), as_json, as_csv)


@main.command(name="export")
@click.argument("file", type=FILE)
def export_results(file: Path) -> None:
    """Write all stored results to FILE, .csv or .parquet: a row a cell of every machine and commit."""
    from convbench.stored import export

    here = project.find()
    export.check(file)
    cells = _readable(export.frame, here.results)
    if cells.empty:
        raise click.ClickException(f"no results yet in {here.results.name}/: measure with `convbench run --quick` first")
    export.write(cells, file)
    click.echo(f"{len(cells)} cells of {cells.commit.nunique()} commits on {cells.machine.nunique()} machines are in {file}")


@main.command(name="try")
@click.argument("input", metavar="INPUT")
@click.argument("weight", metavar="WEIGHT")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--stride", type=click.IntRange(1), default=1, show_default=True)
@click.option("--padding", default="0", show_default=True, help='A number, VERTICALxHORIZONTAL or "same".')
@click.option("--dilation", type=click.IntRange(1), default=1, show_default=True)
@click.option("--groups", type=click.IntRange(1), default=1, show_default=True)
@click.option("--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True)
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True)
@click.option("--seconds", type=click.FloatRange(0.01), default=0.5, show_default=True, help="For each implementation.")
@click.option("--json", "as_json", is_flag=True, help="One object a cell.")
@click.option("--csv", "as_csv", is_flag=True, help="One line a cell.")
def try_shape(input, weight, names, as_json, as_csv, **options) -> None:
    """Check and time your shape on the working tree, every implementation in turn. Stores nothing.

    INPUT is NxCxHxW and WEIGHT KxCxRxS, with C the channels of a group: convbench try 1x64x56x56 128x64x3x3 --stride 2
    """
    from convbench.suite import one_shape

    request = one_shape.request(input, weight, names, options)
    cells, notes = one_shape.run(project.find(), request, SafeConsole(stderr=True))
    _print(cells, notes, as_json, as_csv)
    failed = cells[cells.status == "failed"]
    if len(failed):
        raise click.ClickException(f"{', '.join(failed.implementation)} failed: who is wrong or raises an error has no time")
    if not (cells.status == "ok").any():
        raise click.ClickException("nothing was timed; the reasons stand above")


@main.command(name="profile")
@click.argument("name")
@click.argument("problem")
@click.option(
    "--operation", default="conv2d", show_default=True, help="Or adam_step, preprocess, train_step, ... as impls has them."
)
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True)
@click.option("--calls", type=click.IntRange(1), default=100, show_default=True, help="At most so many, but for --native.")
@click.option("--seconds", type=click.FloatRange(0.01), default=5.0, show_default=True, help="At most so long, about.")
@click.option("--graph", type=FILE, metavar="FILE.svg", help="Draw the call graph, by gprof2dot and Graphviz.")
@click.option("--native", type=FILE, metavar="FILE.svg", help="Draw a flame graph with compiled frames, by py-spy.")
@click.option("--trace", type=FILE, metavar="FILE.json", help="Write the trace of torch's profiler, for chrome://tracing.")
def profile_one(graph: Path | None, native: Path | None, trace: Path | None, **question) -> None:
    """Where does the time go inside one implementation? Prints the call tree, or draws what the options name.

    PROBLEM is one of benchmarks/sets, or any shape by its label: convbench profile im2col.naive n1c1h7w7k1r3s3
    """
    from convbench.suite import profiler

    outputs = profiler.Outputs(graph, native, trace)
    click.echo("\n".join(profiler.run(project.find(), question, outputs, SafeConsole(stderr=True))))


@main.command(name="speed")
@click.option("--row", "rows", multiple=True, metavar="NAME", help="Only this row of the goals; may be repeated.")
@click.option("--again", flag_value="all", help="Measure what is there already, too.")
@click.option("--disturbed", "again", flag_value="disturbed", help="Measure again what somebody else's work disturbed.")
@click.option("--dirty", is_flag=True, help="Measure uncommitted changes, and keep the times in .convbench.")
@click.option("--report", is_flag=True, help="Measure nothing, print what was measured last, and where.")
def measure_speed(rows: tuple[str, ...], again: Again, dirty: bool, report: bool) -> None:
    """Time ours in turn with torch, OpenCV and a copy, and hold them against the goals in benchmarks/commands/speed.toml.

    Measures the working tree, writes docs/speed.md: rows that were not measured here and now are shown from where they were
    last. Interrupted, the same command goes on where it stopped.
    """
    from convbench.speed import measure

    here = project.find()
    times = measure.find_store(here, dirty)
    kept_apart = times.command != measure.COMMAND
    if report:
        click.echo((measure.show if kept_apart else measure.show_all)(here, times, rows))
        return
    failed = measure.run(here, times, rows, again, console())
    click.echo(measure.show(here, times, rows))
    if not kept_apart:
        measure.publish(here, times)
        click.echo("the report of all rows is in docs/speed.md")
    if failed:
        raise click.ClickException(f"{failed} contenders or measurements failed and have no time; the reasons stand above")


@main.command(name="tune")
@click.option("--disturbed", "again", flag_value="disturbed", help="Measure again what somebody else's work disturbed.")
@click.option("--dirty", is_flag=True, help="Measure uncommitted code all the same, and keep the times apart.")
def tune_auto(again: Again, dirty: bool) -> None:
    """Measure who is fastest on which problem, and write the table that cpu.auto picks from.

    Interrupted, the same command goes on where it stopped.
    """
    from convbench.speed import tuning

    click.echo("\n".join(tuning.run(project.find(), again, dirty, console())))


@main.command(name="dashboard")
@click.option("--port", type=click.IntRange(1, 65535), help=f"Where to serve, instead of {dashboard.PORT} or any free one.")
@click.option("--no-serve", is_flag=True, help="Write the pages, and leave serving them to others.")
def show_dashboard(port: int | None, no_serve: bool) -> None:
    """Publish asv's dashboard with nothing in it that needs a network, and serve it to this machine until Ctrl-C."""
    here = project.find()
    dashboard.publish(here)
    dashboard.make_local(here)
    if no_serve:
        click.echo(f"the dashboard is in {here.html}; a browser reads it from a server alone, such as `asv preview`")
    else:
        dashboard.serve(here.html, port)


@main.command(name="compare")
@click.argument("base", metavar="REV")
@click.argument("head", metavar="REV")
@BENCH
@click.option("--machine", "machine_name", help="Another machine than this one.")
@click.option("--json", "file", type=FILE, metavar="FILE", help="Write the cells here.")
def compare_stored(base: str, head: str, bench: tuple[str, ...], machine_name: str | None, file: Path | None) -> None:
    """Compare the stored results of two commits, before and after, the worst cells first. Measures nothing.

    They were measured at different times, so a verdict is a hint: same, differs or unknown.

    Ends with 0 where nothing is slower, 1 where a cell is, 2 after a mistake, 4 where nothing could be compared.
    """
    with _mistakes_end_with_2():
        here = project.find()
        commits = here.commit(base), here.commit(head)
        known = _readable(results.benchmarks, here.results)
        name = compare.choose_machine(here.results, machine_name, machine.facts()["machine"])
        found = _readable(compare.compare, here.results, name, *commits, known, bench)
        if file is not None:
            _write(file, compare.document(found))
        compare.show(found, console(table.ENDLESS))
    sys.exit(compare.exit_status(found.cells))


@main.command(name="history")
@BENCH
@IMPLEMENTATION
@click.option("--machine", "machine_name", help="Another machine than this one.")
@click.option("--since", metavar="REV", help="Only commits from this one on.")
@click.option("--json", "file", type=FILE, metavar="FILE", help="Write the changes here.")
def show_history(bench, implementation, machine_name: str | None, since: str | None, file: Path | None) -> None:
    """Where did stored times change, by how much, and with which commit? Measures nothing.

    All series of a machine are judged together; docs/history.md says how, and how often that is right.
    """
    from convbench.stored import history

    here = project.find()
    known = _readable(results.benchmarks, here.results)
    check_names(known, implementation)
    name = compare.choose_machine(here.results, machine_name, machine.facts()["machine"])
    chain = history.commits(here, since)
    found = history.history(here.results, name, chain, known, Selection(bench, implementation))
    if file is not None:
        _write(file, history.document(found))
    history.show(found, console(table.ENDLESS))


@main.command(name="doctor")
@click.option("--json", "file", type=FILE, metavar="FILE", help="Write what was found here.")
def see_doctor(file: Path | None) -> None:
    """Is this machine fit to measure on? Looks at it, measures its noise for a minute, and says what is missing.

    Ends with 0 where it is fit, with reservations or without, and with 1 where it is not.
    """
    from convbench.doctor import checks

    report = checks.examine(project.find(), SafeConsole(stderr=True))
    if file is not None:
        _write(file, checks.document(report))
    checks.show(report, console())
    sys.exit(report.verdict == checks.UNFIT)


@contextlib.contextmanager
def _mistakes_end_with_2():
    """Where exit status 1 says that something became slower, nothing else may end with it."""
    try:
        yield
    except click.ClickException as error:
        if error.exit_code == 1:
            raise compare.Impossible(error.message) from None
        raise
    except KeyboardInterrupt:
        sys.exit(130)  # as shells have it
    except Exception:  # a mistake of ours
        traceback.print_exc()
        sys.exit(2)


@main.command(name="gate")
@click.argument("base", required=False)
@click.argument("head", required=False)
@BENCH
@IMPLEMENTATION
@click.option("--quick", is_flag=True, help="The suite's short selection of problems.")
@click.option("--budget", type=click.FloatRange(0, min_open=True), metavar="MINUTES", help="For measuring alone.")
@click.option("--accept", "accepted", multiple=True, metavar="CELL", help="A cell, or a glob, that may be slower.")
@click.option("--reason", metavar="TEXT", help="Why what --accept names may be slower.")
@click.option("--accept-file", type=FILE, metavar="FILE", help="Read in place of the head's convbench-accept.toml.")
@click.option("--json", "json_file", type=FILE, help="Write the report there.")
@click.option("--markdown", type=FILE, help="The same, for a summary or a comment.")
@click.option("--self-test", is_flag=True, help="HEAD against itself, with slow-downs of 0, 5, 10 and 25 % made on purpose.")
def measure_gate(
    base, head, bench, implementation, quick, budget, accepted, reason, accept_file, json_file, markdown, self_test
) -> None:
    """Is HEAD slower than BASE? Builds both, measures them in turn, and judges every cell of any asv suite.

    BASE is where HEAD left the first branch of asv.conf.json, HEAD the commit that is checked out.

    Ends with 0: nothing is slower; 1: a cell has regressed; 2: a mistake in the call; 3: the head does not build, or broke a
    benchmark that works on the base; 4: the base does not build, or cells were not measured.
    """
    from convbench.gate import pipeline, report
    from convbench.gate import self_test as selftest
    from convbench.gate.accept import Acceptance

    if bool(accepted) != bool(reason):
        raise click.UsageError("--accept and --reason belong together: what may be slower, and why")
    with _mistakes_end_with_2():
        here = project.find()
        seconds = None if budget is None else 60 * budget
        acceptances = tuple(Acceptance(cell, reason, "--accept") for cell in accepted)
        request = pipeline.Request(
            base,
            head,
            Selection(bench, implementation, quick),
            seconds,
            acceptances,
            json_file,
            markdown,
            accept_file,
        )
        if self_test:
            rates = selftest.run(here, request, console())
            selftest.show(rates, console())
            sys.exit(selftest.exit_status(rates))
        result = pipeline.run(here, request, console())
        report.show(result, console(table.ENDLESS))
    sys.exit(result.exit_status)


def _latest(here: project.Project, known: dict, machine_name: str | None, commit: str | None) -> results.Run:
    """The newest readable results that fit; files that cannot be read are named and passed over."""
    files = results.result_files(here.results)
    there = results.machines(here.results)
    if machine_name is None:  # this machine, if it has been measured: others' results may be in the repository
        own = machine.facts()["machine"]
        machine_name = own if own in there else None
    elif there and machine_name not in there:
        raise click.ClickException(compare.no_such_machine(machine_name, here.results, there))
    full = here.commit(commit) if commit else ""
    files = [path for path in files if machine_name in (None, path.parent.name) and path.name.startswith(full[:8])]
    for path in reversed(files):
        try:
            return results.load(path, known)
        except results.Unreadable as error:
            untrusted.warn(error)
    for folder in sorted(path for path in here.results.glob("*") if machine_name in (None, path.name)):
        if line := unbuilt.read(folder).get(full):
            raise click.ClickException(f"commit {full[:8]} does not build on {folder.name}: {line['reason']}")
    asked = "".join(f" of {what}" for what in (machine_name, commit) if what)
    raise click.ClickException(f"no results yet{asked} in {here.results.name}/: measure with `convbench run --quick` first")


def _readable(read, *arguments):
    try:
        return read(*arguments)
    except results.Unreadable as error:
        raise click.ClickException(str(error)) from None


def _write(file: Path, document: dict) -> None:
    try:
        with atomic_write.whole(file) as new:
            new.write_text(json.dumps(atomic_write.finite(document), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write to {file}: {error.strerror}") from None


def _print(cells, notes: table.Notes, as_json: bool, as_csv: bool) -> None:
    if as_json:
        click.echo(json.dumps(table.records(cells), indent=1))
    elif as_csv:
        writer = csv.DictWriter(sys.stdout, table.FIELDS)
        writer.writeheader()
        writer.writerows({key: table.for_spreadsheet(value) for key, value in row.items()} for row in table.records(cells))
    else:
        table.show(cells, notes, console())
