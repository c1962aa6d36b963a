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
@click.option("--since", metavar="REV", help="First commit to include.")
@click.option("--fail", is_flag=True, help="Exit with 1 if a cell is slower now than at the first commit.")
@click.option("--json", "file", type=options.FILE, metavar="FILE", help="Write the changes to FILE as JSON.")
@click.option(
    "--markdown", type=options.FILE, metavar="FILE", help="Write the cells that are slower now to FILE as Markdown."
)
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
    """Find the commits that changed stored times, and by how much.

    Measures nothing. All series of a machine are judged together; docs/history.md explains the method and its error rates.

    Exit status: 0; 1 with --fail if a cell is slower; 2 after an error or if there are too few results.
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
