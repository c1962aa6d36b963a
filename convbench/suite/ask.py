"""Asks the suite on the working tree: one process a question, or a server for several; answers come as they are made."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from typing import IO, Any

import click
from rich.console import Console

from convbench.asv.project import Project
from convbench.common import progress


def ask(
    project: Project, verb: str, question: dict[str, Any], console: Console, title: str = ""
) -> Generator[dict[str, Any], None, None]:
    """Yield the suite's answers, and show the progress behind a title.

    Closing the answers ends the process.

    Raises ClickException in one sentence where the suite has no such verb, gives no answer, or ends before its time.
    """
    with tempfile.TemporaryFile("w+") as errors, _start(project, verb, [json.dumps(question)], errors) as process:
        latest = _Latest()
        try:
            for event in _shown(_events(process), latest, console, title):
                if "error" in event:
                    raise click.ClickException(event["error"])
                yield event
        except BaseException:
            process.terminate()
            raise
        if process.wait():
            raise latest.ended(process.returncode, errors)


class ForkServer(contextlib.AbstractContextManager):
    """A process of the suite that has loaded what its questions need, and answers each in a fork of itself."""

    def __init__(self, project: Project, verb: str) -> None:
        """Starts nothing before the first question."""
        self._project, self._verb = project, verb
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by __exit__)
        self._process: subprocess.Popen[str] | None = None

    def __exit__(self, *_: object) -> None:
        """End it, in the middle of an answer too."""
        if self._process:
            self._process.terminate()
            self._process.communicate()
        self._errors.close()

    def ask(self, question: dict[str, Any], console: Console, title: str = "") -> Iterator[dict[str, Any]]:
        """Ask as the function does; an error of one question leaves the process for the next."""
        process = self._process = self._process or _start(self._project, self._verb, [], self._errors, stdin=subprocess.PIPE)
        assert process.stdin
        self._errors.seek(0)  # the process writes there too, so that the last line is this answer's
        self._errors.truncate()
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        latest, error = _Latest(), None
        for event in _shown(_events(process), latest, console, title):
            if "error" in event:
                error = click.ClickException(event["error"])
            elif "ended" not in event:
                yield event
            elif error or not event["ended"]:
                break
            else:
                raise latest.ended(event["ended"], self._errors)
        else:
            raise latest.ended(process.wait(), self._errors)
        if error:
            raise error


class _Latest:
    """The last candidate at work, which is named if the process ends early."""

    def __init__(self) -> None:
        self.name = "the suite"

    def ended(self, status: int, errors: IO[str]) -> click.ClickException:
        errors.seek(0)
        lines = errors.read().strip().splitlines() or ["it printed nothing"]
        return click.ClickException(f"{self.name} ended the process with status {status}: {lines[-1]}")


def _start(project: Project, verb: str, arguments: list[str], errors: IO[str], **streams: Any) -> subprocess.Popen[str]:
    if not (project.benchmarks / "__main__.py").is_file():
        raise click.ClickException(
            f"{project.name} has no `python -m {project.benchmarks.name} {verb}`, which this command needs"
        )
    command = [project.python, "-m", project.benchmarks.name, verb, *arguments]
    folder = project.start or project.root
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True, **streams)


def _events(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    for line in process.stdout or ():
        try:
            yield json.loads(line)
        except ValueError:
            raise click.ClickException(f"invalid response from the benchmark process: {line.strip()[:100]!r}") from None


def _shown(
    events: Iterator[dict[str, Any]], latest: _Latest, console: Console, title: str
) -> Generator[dict[str, Any], None, None]:
    """The events that are not about progress, which a bar shows."""
    with progress.bar(console) as bar:
        task = bar.add_task(f"{title}starting", total=None)
        for event in events:
            if "preparing" in event:
                latest.name = event["preparing"]
                bar.update(task, description=f"{title}checking {latest.name}")
            elif "profiling" in event:
                bar.update(task, description=f"{title}profiling {event['profiling']}")
            elif "sampled" in event:
                latest.name = "one of the timed calls"
                bar.update(task, description=f"{title}sampling in turn", total=1, completed=event["sampled"])
            else:
                yield event
