"""The Python steps of action.yml.

python -I -m convbench.adopt.action facts|build CONFIGURATION ENVIRONMENT [COMMIT], in a folder of the checkout; "" stands for
the configuration that is found there, and for the environment that it names.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import click

from convbench.asv import project
from convbench.gate import accept


@click.group()
def main() -> None:
    """Run one step of action.yml."""


@main.command()
@click.argument("config")
@click.argument("environment")
def facts(config: str, environment: str) -> None:
    """Print outputs of a step: what tells environments apart, where they, accepted regressions and the gate's work lie."""
    here = project.find(Path(config) if config else None)
    top = Path(here.suite_git("rev-parse", "--show-toplevel"))
    name = hashlib.sha256(here.file.read_bytes() + b"\0" + environment.encode()).hexdigest()[:20]
    found = {
        "accept": here.root.relative_to(top) / accept.FILE,
        "configuration": name,
        "environments": here.environments.resolve(),
        "work": here.work,
    }
    for key, value in found.items():
        if not str(value).isprintable():  # a second line would be an output of its own
            raise click.ClickException(f"{here.file.name} has a path with a control character: {str(value)!r}")
        click.echo(f"{key}={value}")


@main.command("build")
@click.argument("config")
@click.argument("environment")
@click.argument("commit")
def build_commit(config: str, environment: str, commit: str) -> None:
    """Build a commit in asv's environment, which then holds its wheel."""
    from convbench.gate import build, pipeline

    here = project.find(Path(config) if config else None)
    work = pipeline.folder(here)
    work.mkdir(parents=True, exist_ok=True)
    # The commit is given as both sides: asv builds it once.
    build.build(here, dict.fromkeys(build.SIDES, commit), work, build.Wanted(tuple(filter(None, [environment]))))
    for clone in here.environments.glob("*/project"):  # it shares objects with this checkout, which the next job lacks
        shutil.rmtree(clone)


if __name__ == "__main__":
    main()
