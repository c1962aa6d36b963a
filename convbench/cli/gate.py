"""`convbench gate`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from convbench.cli.parts import errors, options, output
from convbench.common import extras, terminal
from convbench.common.selection import Selection

MAX_SHARDS = 1000


def _shard(_context, parameter, text: str | None) -> tuple[int, int] | None:
    """A shard's number and how many there are. Raises BadParameter for anything else."""
    if text is None:
        return None
    place, _, count = text.partition("/")
    if not (place.isdecimal() and count.isdecimal() and 1 <= int(place) <= int(count) <= MAX_SHARDS):
        raise click.BadParameter(f"{text!r} is not a shard such as 2/5", param=parameter)
    return int(place), int(count)


@click.command("gate")
@click.argument("sides", metavar="[BASE] [HEAD]", nargs=-1)
@options.BENCH
@options.IMPLEMENTATION
@click.option("--quick", is_flag=True, help="Measure the suite's short selection of problems.")
@click.option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    metavar="MINUTES",
    help="Time limit of the measurements, without the builds.",
)
@click.option("--shard", metavar="K/N", callback=_shard, help="Measure every Nth cell from the Kth on, for example 2/5.")
@click.option("--merge", is_flag=True, help="Merge the JSON reports of all shards, given instead of BASE and HEAD.")
@click.option(
    "--why", metavar="CELL", help="Print which difference touches a cell, or cells that match a glob; measure nothing."
)
@click.option("--all", "every", is_flag=True, help="Measure also the cells that no difference between the builds touches.")
@click.option("--partial", is_flag=True, help="Pass even if the budget was too short for some cells.")
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="CELL",
    help="Accept that this cell, or cells that match this glob, are slower.",
)
@click.option("--reason", metavar="TEXT", help="The reason for --accept.")
@click.option(
    "--accept-file",
    type=options.FILE,
    metavar="FILE",
    help="File of accepted cells.  [default: HEAD's convbench-accept.toml]",
)
@click.option("--json", "json_file", type=options.FILE, metavar="FILE", help="Write the report to FILE as JSON.")
@click.option("--markdown", type=options.FILE, metavar="FILE", help="Write the report to FILE as Markdown.")
@click.option(
    "--self-test",
    type=click.IntRange(1),
    is_flag=False,
    flag_value=1,
    metavar="[N]",
    help="Compare HEAD with itself N times (1), with artificial slow-downs of 0, 5, 10 and 25 %.",
)
@click.option("--dirty", is_flag=True, help="Measure the working tree, with uncommitted and new files, as HEAD.")
@click.option("--installed", is_flag=True, help="Build nothing: BASE and HEAD are interpreters or folders of packages.")
@options.CLUSTER
@options.MACHINES
@options.CONFIG
@options.ENVIRONMENT
@options.PYTHON
@options.LAUNCH_METHOD
def command(
    sides,
    bench,
    implementation,
    quick,
    budget,
    shard,
    merge,
    why,
    every,
    partial,
    accepted,
    reason,
    accept_file,
    json_file,
    markdown,
    self_test,
    dirty,
    installed,
    cluster,
    machines,
    config,
    environments,
    python,
    launch_method,
) -> None:
    """Test whether HEAD is slower than BASE, for any asv suite.

    Builds both commits, measures them in turn and gives a verdict for each cell. HEAD is the commit that is checked out,
    BASE its merge base with the first branch of asv.conf.json, unless they are given.

    Exit status: 0 if nothing is slower; 1 if a cell has regressed; 2 after an error in the call; 3 if HEAD does not build
    or breaks a benchmark that works on BASE; 4 if BASE does not build or cells were not measured.
    """
    errors.require_linux("gate")
    from convbench.asv import project
    from convbench.gate import formats, pipeline
    from convbench.gate import self_test as selftest
    from convbench.gate.accept import Acceptance
    from convbench.gate.build import Wanted
    from convbench.gate.report import Kind
    from convbench.stored import table

    if bool(accepted) != bool(reason):
        raise click.UsageError("--accept and --reason must be given together")
    if merge and (not sides or shard or dirty or installed or self_test):
        raise click.UsageError("--merge takes the shards' reports, as convbench gate --merge *.json, and measures nothing")
    if len(sides) > 2 and not merge:
        raise click.UsageError(f"expected at most BASE and HEAD, got {len(sides)} arguments")
    base, head = (*sides, None, None)[:2]
    if why is not None and (every or self_test or merge):
        raise click.UsageError("--why cannot be combined with --all, --self-test or --merge")
    if dirty + installed + bool(self_test) > 1:
        raise click.UsageError("--dirty, --installed and --self-test cannot be combined")
    if self_test and markdown:
        raise click.UsageError("--self-test writes no Markdown: use --json, or omit --markdown")
    if cluster and (shard or merge or why is not None or installed or self_test):
        raise click.UsageError("--cluster cannot be combined with --shard, --merge, --why, --installed or --self-test")
    if dirty and head:
        raise click.UsageError("--dirty measures the working tree as HEAD: give BASE at most")
    with errors.mistakes_end_with_2():
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
            Wanted.chosen(environments, python, launch_method),
            Kind.INSTALLED if installed else Kind.DIRTY if dirty else Kind.COMMITS,
            partial,
            shard,
            every,
        )
        if merge:
            found = pipeline.merged([Path(side) for side in sides], request)
            formats.show(found, output.console(table.ENDLESS))
            sys.exit(found.exit_status)
        here = project.find(config)
        if why is not None:
            for name, reason in pipeline.why(here, request, why, output.console()).items():
                click.echo(terminal.line(f"{name}: {reason}"))
            return
        if self_test:
            rates = selftest.run(here, request, self_test, output.console())
            selftest.show(rates, output.console())
            sys.exit(selftest.exit_status(rates))
        if cluster:
            extras.require("--cluster", "cluster", "distributed")
            from convbench.cluster import gates

            found = gates.run(here, request, cluster, machines, output.console())
        else:
            found = pipeline.run(here, request, output.console())
        formats.show(found, output.console(table.ENDLESS))
    sys.exit(found.exit_status)
