"""`convbench run`."""

from __future__ import annotations

import click

from convbench.cli.parts import errors, options, output
from convbench.common import extras
from convbench.common.selection import Selection


@click.command("run")
@click.argument("commits", metavar="[RANGE]", required=False)
@click.option(
    "--steps", type=click.IntRange(1), metavar="N", help="Measure at most N commits of RANGE: its ends, then the middles."
)
@options.BENCH
@options.IMPLEMENTATION
@click.option("--quick", is_flag=True, help="Measure the suite's short selection of problems: minutes, not an hour.")
@click.option("--again", is_flag=True, help="Measure even if results exist; build commits that failed to build.")
@click.option("--busy", is_flag=True, help="Do not wait for an idle machine.")
@options.CLUSTER
@options.MACHINES
@options.CONFIG
def command(commits, steps, bench, implementation, quick, again, busy, cluster, machines, config) -> None:
    """Build and measure HEAD, or each commit of RANGE.

    Resumes where it stopped if interrupted. RANGE is one of asv's (NEW, EXISTING, ALL, TAGS, HASHFILE:FILE) or of git's
    (main~5..main, COMMIT^!). The newest commit is measured first, then the oldest, then the middle of the widest gap.
    """
    errors.require_linux("run")
    from convbench.asv import project
    from convbench.run import reporter, session

    if steps and not commits:
        raise click.UsageError("--steps needs a RANGE")
    request = session.Request(Selection(bench, implementation, quick), commits, steps, again, busy)
    here = project.find(config)
    if cluster:
        extras.require("--cluster", "cluster", "distributed")
        from convbench.cluster import ranges

        ranges.run(here, request, cluster, machines, output.console())
        return
    outcome = session.run(here, request, output.console())
    if problems := reporter.problems(outcome):
        raise click.ClickException("; ".join(problems))
