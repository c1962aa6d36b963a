"""`convbench init`."""

from __future__ import annotations

from pathlib import Path

import click

from convbench.cli.parts import options

NEXT = """
What to do next:
1. Commit both files and merge them: only workflows on the default branch can post comments.
2. Open a pull request. Its check is called `gate`, and its summary lists the measurements.
3. Settings, Rules: require the check `gate` for the default branch, and a review of changes to .github/.
4. Make the label that lets slowdowns pass: gh label create accept-regression
See docs/adopt.md of convbench for more."""


@click.command("init")
@click.option(
    "--action",
    metavar="OWNER/REPOSITORY@COMMIT",
    help="The action of convbench.  [default: where pip installed convbench from]",
)
@options.CONFIG
def command(action: str | None, config: Path | None) -> None:
    """Write GitHub workflows that gate pull requests.

    One workflow measures a pull request, the other one comments on it.
    """
    from convbench.adopt import workflows
    from convbench.asv import project

    try:
        here = project.find(config)
    except project.Missing as error:
        raise click.ClickException(f"{error.message}; create a first suite with `asv quickstart`") from None
    place = action or workflows.installed_from()
    if place is None:
        raise click.UsageError(
            "convbench was not installed from GitHub, so the location of its action is unknown: convbench init --action "
            "OWNER/convbench@COMMIT"
        )
    for path in workflows.write(here, config, place):
        click.echo(f"wrote {path}")
    click.echo(NEXT)
