"""`convbench dashboard`."""

from __future__ import annotations

from pathlib import Path

import click

from convbench.cli.parts import options


@click.command("dashboard")
@click.option("--port", type=click.IntRange(1, 65535), help="Port to serve on.  [default: 8080, or any free one]")
@click.option("--no-serve", is_flag=True, help="Write the pages and do not serve them.")
@options.CONFIG
def command(port: int | None, no_serve: bool, config: Path | None) -> None:
    """Publish asv's dashboard and serve it on this machine until Ctrl-C.

    The pages need no network.
    """
    from convbench.asv import project
    from convbench.pages import asv_dashboard, server, vendor

    here = project.find(config)
    asv_dashboard.publish(here)
    vendor.make_local(here)
    if no_serve:
        click.echo(f"the dashboard is in {here.html}; it needs a web server, such as `asv preview`")
    else:
        server.serve(here.html, port)
