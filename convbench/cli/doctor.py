"""`convbench doctor`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from convbench.cli.parts import options, output
from convbench.common.terminal import SafeConsole


@click.command("doctor")
@click.option("--json", "file", type=options.FILE, metavar="FILE", help="Write the report to FILE as JSON.")
@options.CONFIG
def command(file: Path | None, config: Path | None) -> None:
    """Check whether this machine is suitable for benchmarking.

    Measures the machine's noise for a minute and lists missing libraries and devices.

    Exit status: 0 if the machine is suitable, with or without reservations, otherwise 1.
    """
    from convbench.asv import project
    from convbench.doctor import display
    from convbench.doctor.diagnose import diagnose
    from convbench.doctor.verdict import UNFIT

    found = diagnose(project.find(config), SafeConsole(stderr=True))
    if file is not None:
        output.write_json(file, display.document(found))
    display.show(found, output.console())
    sys.exit(found.verdict == UNFIT)
