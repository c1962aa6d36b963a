"""Asks the suite on the working tree: one process a question, its answers as they come."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Generator
from typing import Any

import click
from rich.console import Console

from convbench import progress
from convbench.project import Project


def ask(
    project: Project, verb: str, question: dict[str, Any], console: Console, title: str = ""
) -> Generator[dict[str, Any], None, None]:
    """The suite's answers, line by line; shows who is checked and how far the sampling is, behind a title.

    Closing the answers ends the process.

    Raises ClickException in one sentence where the suite has no such verb, gives no answer, or ends before its time.
    """
    if not (project.benchmarks / "__main__.py").is_file():
        raise click.ClickException(
            f"{project.name} has no `python -m {project.benchmarks.name} {verb}`; {verb} asks a suite that has"
        )
    command = [sys.executable, "-m", project.benchmarks.name, verb, json.dumps(question)]
    with tempfile.TemporaryFile("w+") as errors, progress.bar(console) as bar:
        task = bar.add_task(f"{title}starting", total=None)
        latest = "the suite"
        with subprocess.Popen(command, cwd=project.root, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
            try:
                for line in process.stdout or ():
                    event = json.loads(line)
                    if "error" in event:
                        raise click.ClickException(event["error"])
                    if "preparing" in event:
                        latest = event["preparing"]
                        bar.update(task, description=f"{title}checking {latest}")
                    elif "profiling" in event:
                        bar.update(task, description=f"{title}profiling {event['profiling']}")
                    elif "sampled" in event:
                        latest = "one of the timed calls"
                        bar.update(task, description=f"{title}sampling in turn", total=1, completed=event["sampled"])
                    else:
                        yield event
            except BaseException:
                process.terminate()
                raise
        if process.returncode:
            errors.seek(0)
            lines = errors.read().strip().splitlines() or ["it printed nothing"]
            raise click.ClickException(f"{latest} ended the process with status {process.returncode}: {lines[-1]}")
