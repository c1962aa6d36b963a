"""Has asv write its pages from the stored results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from convbench.asv import git, safe_pages
from convbench.asv.project import Project
from convbench.common import session_guard
from convbench.stored import results

PUBLISH = "from convbench.asv import safe_pages; safe_pages.run()"


def publish(project: Project) -> None:
    """Have asv write its pages from what is stored. Raises ClickException in one sentence where it cannot."""
    if not results.machines(project.results):
        raise click.ClickException(f"no results yet in {project.results.name}/: measure with `convbench run --quick` first")
    _require_pages(project.html)
    click.echo("publishing")
    with subprocess.Popen(
        [sys.executable, "-P", "-c", PUBLISH, "publish", "--no-pull"],
        cwd=project.root,
        env=git.environment(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            said, warnings = process.communicate()
        finally:
            session_guard.end(process)
    if process.returncode:
        last = (warnings.strip() or said.strip()).rpartition("\n")[2].strip()
        raise click.ClickException(f"`asv publish` ended with status {process.returncode}: {last}")
    for line in warnings.splitlines():
        click.echo(line, err=True)
    index = project.html / "index.json"
    # The same data, in which nothing looks like markup to what takes the file for a page.
    index.write_text(index.read_text(encoding="utf-8").replace("<", "\\u003c").replace(">", "\\u003e"), encoding="utf-8")


def _require_pages(folder: Path) -> None:
    """Raise ClickException if asv, which removes its output folder, would remove other files."""
    try:
        found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    except OSError as error:
        raise click.ClickException(f"cannot read {folder}: {error.strerror}") from None
    # Other pages have an index.html as well.
    if found and not found & ({path.name for path in safe_pages.WWW.iterdir()} - {"index.html", "error.html"}):
        raise click.ClickException(
            f"asv would remove {folder}, which does not hold its pages: empty it, or choose another html_dir"
        )
