"""`convbench export`."""

from __future__ import annotations

from pathlib import Path

import click

from convbench.cli.parts import errors, options


@click.command("export")
@click.argument("file", type=options.FILE)
@options.CONFIG
def command(file: Path, config: Path | None) -> None:
    """Write all stored results to FILE (.csv or .parquet).

    A row is one cell of one commit on one machine.
    """
    from convbench.asv import project
    from convbench.stored import export

    here = project.find(config)
    export.check(file)
    cells = errors.readable(export.frame, here.results)
    if cells.empty:
        raise click.ClickException(f"no results yet in {here.results.name}/: measure with `convbench run --quick` first")
    export.write(cells, file)
    click.echo(f"{len(cells)} cells of {cells.commit.nunique()} commits on {cells.machine.nunique()} machines are in {file}")
