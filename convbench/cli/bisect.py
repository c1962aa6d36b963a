"""`convbench bisect`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from convbench.cli.parts import errors, options, output
from convbench.common import extras


@click.command("bisect")
@click.argument("cell")
@click.argument("good", required=False)
@click.argument("bad", required=False)
@options.CLUSTER
@options.MACHINES
@options.CONFIG
@options.ENVIRONMENT
@options.PYTHON
@options.LAUNCH_METHOD
def command(
    cell: str,
    good: str | None,
    bad: str | None,
    cluster: str | None,
    machines: str,
    config: Path | None,
    environments: tuple[str, ...],
    python: str | None,
    launch_method: str | None,
) -> None:
    """Find the commit that made CELL slower: builds and measures about log2 of the commits from GOOD to BAD.

    CELL is a name with parameters, as in the gate's reports. GOOD is the last commit at the old level in the stored results,
    BAD is HEAD. Only first parents are searched; commits that do not build are skipped. If interrupted, the same command
    resumes where it stopped.

    Ends with 0: one commit is found; 2: a mistake, or BAD is not slower; 3: BAD does not build or breaks the benchmark;
    4: one of several commits, of which all but the last were skipped, or no verdict.
    """
    errors.require_linux("bisect")
    from convbench.asv import project
    from convbench.bisect import answer, search
    from convbench.gate.build import Wanted
    from convbench.stored import table

    with errors.mistakes_end_with_2():
        wanted = Wanted.chosen(environments, python, launch_method)
        question = project.find(config), cell, good, bad, wanted
        if cluster:
            extras.require("--cluster", "cluster", "distributed")
            from convbench.cluster import bisects

            found = bisects.run(*question, cluster, machines, output.console(table.ENDLESS))
        else:
            found = search.run(*question, output.console(table.ENDLESS))
        answer.show(found, output.console(table.ENDLESS))
    sys.exit(found.exit_status)
