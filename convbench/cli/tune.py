"""`convbench tune`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from convbench.cli import options, output

if TYPE_CHECKING:
    from convbench.speed.measure import Again


@click.command("tune")
@options.DISTURBED
@click.option("--dirty", is_flag=True, help="Measure uncommitted code all the same, and keep the times apart.")
def command(again: Again, dirty: bool) -> None:
    """Measure which implementation is fastest on which problem, and write the table that cpu.auto picks from.

    Resumes where it stopped if interrupted.
    """
    from convbench.asv import project
    from convbench.speed import tuning

    click.echo("\n".join(tuning.run(project.find(), again, dirty, output.console())))
