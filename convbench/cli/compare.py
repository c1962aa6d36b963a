"""`convbench compare`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from convbench.cli.parts import errors, options, output


@click.command("compare")
@click.argument("base", metavar="REV")
@click.argument("head", metavar="REV")
@options.BENCH
@options.MACHINE
@click.option("--json", "file", type=options.FILE, metavar="FILE", help="Write the results to FILE as JSON.")
@options.CONFIG
def command(
    base: str, head: str, bench: tuple[str, ...], machine_name: str | None, file: Path | None, config: Path | None
) -> None:
    """Compare the stored results of two commits, worst cells first.

    Measures nothing. The results were measured at different times, so a verdict (same, differs or unknown) is a hint.

    Exit status: 0 if no cell is slower, 1 if a cell is slower, 2 after an error, 4 if nothing could be compared.
    """
    from convbench.asv import machine, project
    from convbench.stored import compare, results, table

    with errors.mistakes_end_with_2():
        here = project.find(config)
        commits = here.commit(base), here.commit(head)
        known = errors.readable(results.benchmarks, here.results)
        name = compare.choose_machine(here.results, machine_name, machine.name())
        found = errors.readable(compare.compare, here.results, name, *commits, known, bench)
        if file is not None:
            output.write_json(file, compare.document(found))
        compare.show(found, output.console(table.ENDLESS))
    sys.exit(compare.exit_status(found.cells))
