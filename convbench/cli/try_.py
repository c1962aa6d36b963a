"""`convbench try`."""

from __future__ import annotations

import shlex
import sys

import click
from click.core import ParameterSource

from convbench.cli.parts import options, output
from convbench.common.terminal import SafeConsole


@click.command("try")
@click.argument("texts", metavar="PROBLEM... [NAME]...", nargs=-1)
@click.option("--operation", default="conv2d", show_default=True, metavar="NAME", help="The operation.")
@click.option("--stride", type=click.IntRange(1), default=1, show_default=True)
@click.option("--padding", default="0", show_default=True, help='A number, VERTICALxHORIZONTAL or "same".')
@click.option("--dilation", type=click.IntRange(1), default=1, show_default=True)
@click.option("--groups", type=click.IntRange(1), default=1, show_default=True)
@click.option("--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True)
@click.option("--fill", type=float, default=0.0, show_default=True, help="im2col: value of the padding.")
@click.option(
    "--batch",
    type=click.IntRange(1),
    default=32,
    show_default=True,
    help="read_batch: maximum number of tiles.",
)
@click.option("--bands", metavar="BAND,...", help="read_batch: bands to read, from 1.  [default: 4,3,2 where there are four]")
@click.option("--region", metavar="TOPxLEFTxHEIGHTxWIDTH", help="preprocess: part of the picture, in pixels.  [default: all]")
@click.option(
    "--size",
    type=click.IntRange(1),
    default=128,
    show_default=True,
    help="preprocess: side of the network's input, in pixels.",
)
@click.option(
    "--file",
    "files",
    type=click.Path(exists=True, dir_okay=False),
    multiple=True,
    help="File with another implementation; may be repeated.",
)
@options.THREADS
@click.option("--seconds", type=click.FloatRange(0.01), default=0.5, show_default=True, help="Time for each implementation.")
@options.WHY
@options.JSON_LINES
@options.CSV_LINES
@click.pass_context
def command(context: click.Context, texts, operation, files, why, as_json, as_csv, **options) -> None:
    """Check and time implementations on your problem.

    Times the working tree's implementations, all or those given, and stores nothing. The problem of conv2d is INPUT
    (NxCxHxW) and WEIGHT (KxCxRxS), where WEIGHT's C is the number of channels of a group, or a label as tables print it:

    \b
    convbench try 1x64x56x56 128x64x3x3 --stride 2
    convbench try n1c64h56w56k128r3s3t2 cpu.torch cpu.mine
    convbench try 1x64x56x56 128x64x3x3 cpu.torch --file mine.py
    convbench try 1x64x56x56 128x64x3x3 cpu.mine cpu.mine@HEAD

    \b
    Problems of other operations:
    conv2d_backward   INPUT WEIGHT   as for conv2d
    conv_transpose2d  INPUT WEIGHT   as torch has them: 1x128x8x8 128x64x4x4
    im2col            IMAGE KERNEL   sizes along each axis: 64x64 3x3
    read_batch        FOLDER         of GeoTIFF tiles
    preprocess        PICTURE        a JPEG
    adam_step         PROBLEM        a number of parameters: 1796010
    train_step, ...   PROBLEM        a label: perceptron-n100
    """
    from convbench.asv import project
    from convbench.suite import one_problem, other_kernels, problem_forms

    given = [name for name in options if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    request = problem_forms.request(operation, texts, options, given)
    found = project.find()
    with other_kernels.files(found.root, operation, request["names"], files) as request["files"]:
        cells, notes = one_problem.run(found, request, SafeConsole(stderr=True))
    output.print_cells(cells, notes, as_json, as_csv, why)
    if not (as_json or as_csv):
        _show_winner(cells, notes)
    if failed := ", ".join(cells[cells.status == "failed"].implementation):
        raise click.ClickException(f"{failed} failed: implementations that fail verification or raise an error are not timed")
    if not (cells.status == "ok").any():
        raise click.ClickException("nothing was timed; see the reasons above")


def _show_winner(cells, notes) -> None:
    """Print what is fastest, how sure that is, and the command that repeats it."""
    from convbench.stored import table

    timed = cells[(cells.status == "ok") & cells.value.gt(0)]
    if timed.empty:
        return
    fastest, *close = table.as_fast(timed)
    words = f"fastest: {fastest}"
    if notes.baseline and fastest != notes.baseline:
        ratio, between = table.speedup(next(cell for cell in timed.itertuples() if cell.implementation == fastest))
        words += f", {ratio} the speed of {notes.baseline} ({between})"
    if close:
        words += f"\nas fast within the spread: {', '.join(close)}"
    click.echo(f"{words}\nagain: {shlex.join(['convbench', *sys.argv[1:]])}")
