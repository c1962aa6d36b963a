"""Options of several commands."""

from __future__ import annotations

import re
from pathlib import Path

import click

FILE = click.Path(dir_okay=False, path_type=Path)


def _regular_expressions(_context, parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse invalid regular expressions before anything is built."""
    for value in values:
        try:
            re.compile(value)
        except re.error as error:
            raise click.BadParameter(f"{value!r} is not a valid regular expression: {error}", param=parameter) from None
    return values


BENCH = click.option(
    *("--bench", "-b"),
    multiple=True,
    metavar="REGEX",
    callback=_regular_expressions,
    help='Select cells by "name(parameters)".',
)
IMPLEMENTATION = click.option(
    *("--implementation", "-i"), multiple=True, metavar="GLOB", help="Select implementations, for example cpu.*."
)
MACHINE = click.option("--machine", "machine_name", help="Name of the machine.  [default: this one]")
THREADS = click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="Number of threads.")
JSON_LINES = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per cell.")
CSV_LINES = click.option("--csv", "as_csv", is_flag=True, help="Print one CSV line per cell.")
WHY = click.option("--why", is_flag=True, help="List the reason for each cell without a time.")
CONFIG = click.option("--config", type=FILE, metavar="FILE", help="Path of the asv configuration.  [default: found here]")
ENVIRONMENT = click.option(
    *("--environment", "-E", "environments"), multiple=True, metavar="SPEC", help="As in asv: KIND or KIND:PYTHON."
)
PYTHON = click.option("--python", metavar="VERSION", help="As in asv: Python of the configured kind of environment.")
LAUNCH_METHOD = click.option("--launch-method", type=click.Choice(["auto", "spawn", "forkserver"]), help="As in asv.")
CLUSTER = click.option(
    "--cluster", metavar="ADDRESS", help="Measure on the workers of this dask scheduler, or of its scheduler file."
)
MACHINES = click.option(
    "--machines", metavar="GLOB", default="*", help="With --cluster: the machines to measure on.  [default: all]"
)
DISTURBED = click.option(
    *("--disturbed", "again"),
    flag_value="disturbed",
    help="Repeat measurements that were disturbed by other processes.",
)
