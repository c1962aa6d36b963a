"""`convbench history`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from convbench.cli.parts import errors, options, output
from convbench.common.selection import Selection, check_names


@click.command("history")
@options.BENCH
@options.IMPLEMENTATION
@options.MACHINE
@click.option("--since", metavar="REV", help="Only commits from this one on.")
@click.option("--fail", is_flag=True, help="End with 1 where a cell is slower now than at the first of these commits.")
@click.option("--json", "file", type=options.FILE, metavar="FILE", help="Write the changes to FILE as JSON.")
@click.option("--markdown", type=options.FILE, metavar="FILE", help="Write to FILE what is slower now, for an issue.")
@options.CONFIG
def command(
    bench,
    implementation,
    machine_name: str | None,
    since: str | None,
    fail: bool,
    file: Path | None,
    markdown: Path | None,
    config: Path | None,
) -> None:
    """Where did stored times change, by how much, and with which commit? Measures nothing.

    All series of a machine are judged together; docs/history.md says how, and how often that is right.

    Ends with 0, with --fail 1 where a cell is slower, and with 2 after a mistake or where there is nothing to judge.
    """
    from convbench.asv import machine, project
    from convbench.stored import compare, history, history_formats, results, table

    with errors.mistakes_end_with_2():
        here = project.find(config)
        known = errors.readable(results.benchmarks, here.results)
        check_names(known, implementation)
        name = compare.choose_machine(here.results, machine_name, machine.name())
        chain = history.commits(here, since)
        found = history.history(here.results, name, chain, known, Selection(bench, implementation))
        if file is not None:
            output.write_json(file, history_formats.document(found))
        if markdown is not None:
            output.write_text(markdown, history_formats.as_markdown(found))
        history_formats.show(found, output.console(table.ENDLESS))
    sys.exit(fail and bool(history.slower(found)))
