"""`convbench speed` and `convbench tune`: time implementations in turn and store the times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from convbench.cli.parts import options, output
from convbench.common import extras

if TYPE_CHECKING:
    from convbench.speed.measure import Again


@click.command("speed")
@click.option("--row", "rows", multiple=True, metavar="NAME", help="Measure only this row of the goals; may be repeated.")
@click.option("--again", flag_value="all", help="Measure again even if results exist.")
@options.DISTURBED
@click.option("--dirty", is_flag=True, help="Measure uncommitted changes and keep the times in .convbench.")
@click.option("--report", is_flag=True, help="Measure nothing and print the last results.")
def command(rows: tuple[str, ...], again: Again, dirty: bool, report: bool) -> None:
    """Compare this suite's kernels with torch, OpenCV and a copy.

    The goals are in benchmarks/commands/speed.toml.

    Measures the working tree and writes docs/speed.md. Rows that were not measured now keep their last results. Resumes
    where it stopped if interrupted.
    """
    from convbench.asv import project
    from convbench.speed import measure, times_file

    here = project.find()
    times = times_file.find(here, dirty)
    kept_apart = times.command != times_file.COMMAND
    if report:
        click.echo((measure.show if kept_apart else measure.show_all)(here, times, rows))
        return
    failed = measure.run(here, times, rows, again, output.console())
    click.echo(measure.show(here, times, rows))
    if not kept_apart:
        measure.publish(here, times)
        click.echo("the report of all rows is in docs/speed.md")
    if failed:
        raise click.ClickException(f"{failed} candidates or measurements failed and are not timed; see the reasons above")


@click.command("tune")
@options.DISTURBED
@click.option("--dirty", is_flag=True, help="Measure uncommitted changes and keep the times in .convbench.")
@options.CLUSTER
@options.MACHINES
def tune(again: Again, dirty: bool, cluster: str | None, machines: str) -> None:
    """Measure what is fastest on this machine, for impls.conv2d.

    With --cluster, a machine of each name builds and tunes HEAD. Resumes where it stopped if interrupted.
    """
    from convbench.asv import project
    from convbench.speed import tuning

    if cluster:
        if dirty:
            raise click.UsageError("--cluster cannot be combined with --dirty")
        extras.require("--cluster", "cluster", "distributed")
        from convbench.cluster import tunes

        click.echo("\n".join(tunes.run(project.find(), again, cluster, machines, output.console())))
        return
    click.echo("\n".join(tuning.run(project.find(), again, dirty, output.console())))
