"""`convbench run`."""

from __future__ import annotations

import click

from convbench.cli.parts import errors, options, output
from convbench.common.selection import Selection


@click.command("run")
@click.argument("commits", metavar="[RANGE]", required=False)
@click.option("--steps", type=click.IntRange(1), metavar="N", help="At most N commits of RANGE: its ends, then the middles.")
@options.BENCH
@options.IMPLEMENTATION
@click.option("--quick", is_flag=True, help="A short selection of problems: minutes, not an hour.")
@click.option("--again", is_flag=True, help="Measure again even if results exist, and build again what did not build.")
@click.option("--busy", is_flag=True, help="Do not wait for an idle machine.")
@options.CONFIG
def command(commits, steps, bench, implementation, quick, again, busy, config) -> None:
    """Measure HEAD, or each commit of RANGE as itself. Resumes where it stopped if interrupted.

    RANGE is asv's: NEW, EXISTING, ALL, TAGS, HASHFILE:FILE, or git's, as main~5..main or COMMIT^!. The newest commit is
    measured first, then the oldest, then always the one in the middle of the widest gap.
    """
    errors.require_linux("run")
    from convbench.asv import project
    from convbench.run import reporter, session

    if steps and not commits:
        raise click.UsageError("--steps says how many commits of a RANGE, and none was given")
    request = session.Request(Selection(bench, implementation, quick), commits, steps, again, busy)
    here = project.find(config)
    outcome = session.run(here, request, output.console())
    if problems := reporter.problems(outcome):
        raise click.ClickException("; ".join(problems))
