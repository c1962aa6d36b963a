"""`python -m benchmarks` with arguments, in a process of its own or in this one, which has imported what it draws with."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch

from benchmarks.__main__ import main

ROOT = Path(__file__).parents[2]


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)


def run_here(*arguments):
    """Run in this process, which saves the import of torch and matplotlib; returns the same as run()."""
    threads, output, code = torch.get_num_threads(), io.StringIO(), 0
    with mock.patch.object(sys, "argv", ["benchmarks", *arguments]), contextlib.redirect_stdout(output):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    torch.set_num_threads(threads)
    said = code if isinstance(code, str) else ""  # as Python itself ends with a text: printed, and status 1
    return SimpleNamespace(returncode=1 if said else code, stdout=output.getvalue(), stderr=said)
