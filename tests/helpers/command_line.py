"""The command as tests call it."""

import contextlib
import os
import re
import subprocess
import sys

from click.testing import CliRunner

from convbench.cli.main import main

USAGE = re.compile(r"(Usage: |Try '|$)")  # what click puts above the sentence about a mistyped argument


def settings(folder):
    return {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": str(folder.parent)}


def process(folder, *arguments, **environment):
    """The command in a process of its own."""
    command = [sys.executable, "-m", "convbench", *arguments]
    environment = {**os.environ, **settings(folder), **environment}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


def inside(folder, *arguments):
    """The command in this process, which is quicker; what would be a traceback in its own is raised here."""
    with contextlib.chdir(folder):
        done = CliRunner(env=settings(folder)).invoke(main, arguments, catch_exceptions=False)
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
