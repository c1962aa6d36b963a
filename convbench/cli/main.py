"""The group `convbench` and its commands."""

from __future__ import annotations

import click

from convbench.cli import (
    bisect,
    compare,
    dashboard,
    doctor,
    export,
    gate,
    history,
    init,
    profile,
    run,
    speed,
    table,
    tour,
    try_,
)

MAX_HELP_WIDTH = 100  # characters of a line; click's own limit is 80
COMMANDS = (run, table, export, try_, tour, profile, speed, dashboard, compare, history, doctor, gate, bisect, init)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": MAX_HELP_WIDTH})
@click.version_option(package_name="convbench")
def main() -> None:
    """Find the fastest convolution on this machine, its distance from the machine's limit, and what made it slower."""


for module in COMMANDS:
    main.add_command(module.command)
main.add_command(speed.tune)
