"""Runs asv as a process that ends when its caller does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from pathlib import Path

import click

from convbench.asv import build_log, git
from convbench.common import session_guard
from convbench.common.load import MachineFault
from convbench.run.workspace import Workspace

POLL_SECONDS = 0.2
FULL_DISK_BYTES = 1 << 20  # a disk with less free space counts as full
BENCHMARK_FAILED = 2  # asv's exit status; the side file says which benchmark and why


def run(workspace: Workspace, command: list[str], log: Path, variables: Mapping[str, str] | None = None) -> Generator[None]:
    """Run a module of convbench that runs asv. Yields while it runs, and leaves no process behind, however it ends.

    command: the module and its arguments. Raises ClickException with the cause where asv ends with an error.
    """
    environment = git.environment({**os.environ, "CONVBENCH_RUN": f"{time.time():.0f}", **(variables or {})})
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "convbench.common.session_guard", *command],
            cwd=workspace.project.root,
            env=environment,
            stdin=subprocess.PIPE,  # closed when this process ends, which the guard notices
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                yield
                time.sleep(POLL_SECONDS)
        finally:
            session_guard.end(process)
    if process.returncode not in (0, BENCHMARK_FAILED):
        raise _failure(workspace.folder, log, process.returncode)


def _failure(folder: Path, log: Path, status: int) -> click.ClickException:
    ended = f"asv ended with status {status}"
    # A log on a full disk cannot hold the reason.
    is_full = shutil.disk_usage(folder).free < FULL_DISK_BYTES
    if reason := build_log.FULL if is_full else build_log.cause(log):
        kind = MachineFault if reason in (build_log.FULL, build_log.LIMITED) else click.ClickException
        return kind(f"{reason}; {ended}, and its output is in {log}")
    return click.ClickException(f"{ended}: {build_log.tail(log)}")
