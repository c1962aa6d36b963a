"""The group `convbench`, with every command."""

from __future__ import annotations

import click

from convbench.cli import bisect, compare, dashboard, doctor, export, gate, history, init, profile, run, speed, table, try_

COMMANDS = (run, table, export, try_, profile, speed, dashboard, compare, history, doctor, gate, bisect, init)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="convbench")
def main() -> None:
    """Which convolution is fastest here, how far from this machine's limit, and did the last commit make it slower."""


for module in COMMANDS:
    main.add_command(module.command)
main.add_command(speed.tune)
