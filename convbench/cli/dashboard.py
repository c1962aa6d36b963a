"""`convbench dashboard`."""

from __future__ import annotations

from pathlib import Path

import click

from convbench.cli.parts import options


@click.command("dashboard")
@click.option("--port", type=click.IntRange(1, 65535), help="Where to serve, instead of 8080 or any free one.")
@click.option("--no-serve", is_flag=True, help="Write the pages, and leave serving them to others.")
@options.CONFIG
def command(port: int | None, no_serve: bool, config: Path | None) -> None:
    """Publish asv's dashboard with nothing in it that needs a network, and serve it to this machine until Ctrl-C."""
    from convbench.asv import project
    from convbench.pages import asv_dashboard, server, vendor

    here = project.find(config)
    asv_dashboard.publish(here)
    vendor.make_local(here)
    if no_serve:
        click.echo(f"the dashboard is in {here.html}; a browser reads it from a server alone, such as `asv preview`")
    else:
        server.serve(here.html, port)
