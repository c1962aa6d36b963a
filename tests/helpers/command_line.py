"""What several files of tests share."""

import contextlib
import os
import re
import subprocess

from click.testing import CliRunner

from convbench.cli import commands

USAGE = re.compile(r"(Usage: |Try '|$)")  # what click puts above the sentence about a mistyped argument


def settings(folder):
    return {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": str(folder.parent)}


def inside(folder, *arguments):
    """The same in this process, which is quicker; what would be a traceback there is raised here."""
    with contextlib.chdir(folder):
        done = CliRunner(env=settings(folder)).invoke(commands.main, arguments, catch_exceptions=False)
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def sentence(done):
    """The one sentence of a command that failed."""
    lines = done.stderr.splitlines()
    if any(line.startswith("Usage: ") for line in lines):
        lines = [line for line in lines if not USAGE.match(line)]
    assert done.returncode != 0, done.stdout
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("Error: ")
    assert "Traceback" not in done.stdout
    return lines[0]
