"""`convbench try`."""

from __future__ import annotations

import click

from convbench.cli import options, output
from convbench.common.terminal import SafeConsole


@click.command("try")
@click.argument("input", metavar="INPUT")
@click.argument("weight", metavar="WEIGHT")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--stride", type=click.IntRange(1), default=1, show_default=True)
@click.option("--padding", default="0", show_default=True, help='A number, VERTICALxHORIZONTAL or "same".')
@click.option("--dilation", type=click.IntRange(1), default=1, show_default=True)
@click.option("--groups", type=click.IntRange(1), default=1, show_default=True)
@click.option("--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True)
@options.THREADS
@click.option("--seconds", type=click.FloatRange(0.01), default=0.5, show_default=True, help="For each implementation.")
@options.JSON_LINES
@options.CSV_LINES
def command(input, weight, names, as_json, as_csv, **options) -> None:
    """Check and time your shape on the working tree, every implementation in turn. Stores nothing.

    INPUT is NxCxHxW and WEIGHT KxCxRxS, with C the channels of a group: convbench try 1x64x56x56 128x64x3x3 --stride 2
    """
    from convbench.asv import project
    from convbench.suite import one_shape

    request = one_shape.request(input, weight, names, options)
    cells, notes = one_shape.run(project.find(), request, SafeConsole(stderr=True))
    output.print_cells(cells, notes, as_json, as_csv)
    if failed := ", ".join(cells[cells.status == "failed"].implementation):
        raise click.ClickException(f"{failed} failed: implementations that fail verification or raise an error are not timed")
    if not (cells.status == "ok").any():
        raise click.ClickException("nothing was timed; see the reasons above")
