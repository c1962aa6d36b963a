"""`convbench history`."""

from __future__ import annotations

from pathlib import Path

import click

from convbench.cli import errors, options, output
from convbench.common.selection import Selection, check_names


@click.command("history")
@options.BENCH
@options.IMPLEMENTATION
@options.MACHINE
@click.option("--since", metavar="REV", help="Only commits from this one on.")
@click.option("--json", "file", type=options.FILE, metavar="FILE", help="Write the changes to FILE as JSON.")
@options.CONFIG
def command(
    bench, implementation, machine_name: str | None, since: str | None, file: Path | None, config: Path | None
) -> None:
    """Where did stored times change, by how much, and with which commit? Measures nothing.

    All series of a machine are judged together; docs/history.md says how, and how often that is right.
    """
    from convbench.asv import machine, project
    from convbench.stored import compare, history, results, table

    here = project.find(config)
    known = errors.readable(results.benchmarks, here.results)
    check_names(known, implementation)
    name = compare.choose_machine(here.results, machine_name, machine.name())
    chain = history.commits(here, since)
    found = history.history(here.results, name, chain, known, Selection(bench, implementation))
    if file is not None:
        output.write_json(file, history.document(found))
    history.show(found, output.console(table.ENDLESS))
