"""Options that several commands have."""

from __future__ import annotations

import re
from pathlib import Path

import click

FILE = click.Path(dir_okay=False, path_type=Path)


def _regular_expressions(_context, parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what is no regular expression before anything is built."""
    for value in values:
        try:
            re.compile(value)
        except re.error as error:
            raise click.BadParameter(f"{value!r} is no regular expression: {error}", param=parameter) from None
    return values


BENCH = click.option(
    *("--bench", "-b"),
    multiple=True,
    metavar="REGEX",
    callback=_regular_expressions,
    help='Only cells whose "name(parameters)" matches.',
)
IMPLEMENTATION = click.option(
    *("--implementation", "-i"), multiple=True, metavar="GLOB", help="Only these implementations, as cpu.*."
)
MACHINE = click.option("--machine", "machine_name", help="Another machine than this one.")
THREADS = click.option("--threads", type=click.IntRange(1), default=1, show_default=True)
JSON_LINES = click.option("--json", "as_json", is_flag=True, help="One object a cell.")
CSV_LINES = click.option("--csv", "as_csv", is_flag=True, help="One line a cell.")
WHY = click.option("--why", is_flag=True, help="Every reason for which something has no time, not only their counts.")
CONFIG = click.option("--config", type=FILE, metavar="FILE", help="Another asv configuration than the one found here.")
ENVIRONMENT = click.option(
    *("--environment", "-E", "environments"), multiple=True, metavar="SPEC", help="As asv's: KIND, or KIND:PYTHON."
)
PYTHON = click.option("--python", metavar="VERSION", help="As asv's: a Python for the configured kind of environment.")
LAUNCH_METHOD = click.option("--launch-method", type=click.Choice(["auto", "spawn", "forkserver"]), help="As asv's.")
DISTURBED = click.option(
    *("--disturbed", "again"),
    flag_value="disturbed",
    help="Repeat measurements that were disturbed by other processes.",
)
