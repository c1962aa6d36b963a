"""`convbench profile`."""

from __future__ import annotations

from pathlib import Path

import click

from convbench.cli.parts import options
from convbench.common.terminal import SafeConsole
from convbench.suite import flat_profile


@click.command("profile")
@click.argument("name")
@click.argument("problem")
@click.option("--operation", default="conv2d", show_default=True, help="An operation of impls: adam_step, train_step, ...")
@options.THREADS
@click.option(
    "--calls",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Maximum number of calls (ignored with --native).",
)
@click.option(
    "--seconds", type=click.FloatRange(0.01), default=5.0, show_default=True, help="Approximate time limit in seconds."
)
@click.option("--flat", is_flag=True, help="Print a flat profile instead of the call tree.")
@click.option(
    "--sort",
    type=click.Choice(list(flat_profile.ORDERS)),
    default="own",
    show_default=True,
    help="Order of the flat profile.",
)
@click.option("--counters", is_flag=True, help="Print cycles, instructions and misses, counted by perf.")
@click.option("--output", type=options.FILE, metavar="FILE.prof", help="Write the profile for snakeviz, gprof2dot or pstats.")
@click.option("--graph", type=options.FILE, metavar="FILE.svg", help="Draw the call graph, by gprof2dot and Graphviz.")
@click.option("--native", type=options.FILE, metavar="FILE.svg", help="Draw a flame graph with compiled frames, by py-spy.")
@click.option(
    "--rate",
    type=click.IntRange(1),
    help="Stacks per second of the flame graph.  [default: 100, fewer in more than 9 seconds]",
)
@click.option(
    "--trace", type=options.FILE, metavar="FILE.json", help="Write the trace of torch's profiler, for chrome://tracing."
)
def command(
    flat: bool,
    sort: str,
    counters: bool,
    output: Path | None,
    graph: Path | None,
    native: Path | None,
    rate: int | None,
    trace: Path | None,
    **question,
) -> None:
    """Show where an implementation spends its time.

    Prints the call tree unless another output is selected.

    PROBLEM is one of benchmarks/sets, or any shape by its label: convbench profile im2col.naive n1c1h7w7k1r3s3
    """
    from convbench.asv import project
    from convbench.suite import profiler

    outputs = profiler.Outputs(graph, native, trace, output, sort if flat else None, counters, rate)
    click.echo(profiler.run(project.find(), question, outputs, SafeConsole(stderr=True)))
