"""convbench profile, in this process and in one of its own."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from convbench.cli.main import main
from convbench.suite import profiler

ROOT = Path(__file__).parents[2]
SMALL = "n1c1h7w7k1r3s3"
TOOLS = {"graph": "svg", "native": "svg", "trace": "json", "output": "prof"}


def convbench(*arguments, **environment):
    """The command; what it starts are processes of their own."""
    with contextlib.chdir(ROOT):
        words = ["profile", *map(str, arguments)]
        done = CliRunner(env=environment).invoke(main, words, catch_exceptions=False)
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def start(*arguments, **environment):
    """The same in a process of its own, at the head of a group as at a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "convbench", "profile", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process):
    said = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, *said)


def sentence(done):
    lines = done.stderr.splitlines()
    assert done.returncode == 1, done.stdout
    assert len(lines) == 1, done.stderr
    assert done.stdout == ""
    return lines[0].removeprefix("Error: ")


def need(*options):
    for option in options:
        try:
            profiler.require_tools(profiler.Outputs(**{option: Path("any")}))
        except click.ClickException as error:
            pytest.skip(error.message)
