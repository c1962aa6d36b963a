"""make says what is missing before it starts."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")


def make(*arguments):
    return subprocess.run(["make", "--no-print-directory", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("target", ["bench", "test"])
def test_without_a_c_compiler_make_says_what_to_install(tmp_path, target):
    done = make(f"VENV={tmp_path}/venv", "CC=no-such-compiler", target)
    assert done.returncode
    assert "no C compiler: the Cython kernels need no-such-compiler; install one" in done.stdout
    assert not (tmp_path / "venv").exists()


def test_an_old_python_is_refused_in_a_sentence(tmp_path):
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = make(f"VENV={tmp_path}/venv", f"PYTHON={old}", "test")
    assert done.returncode
    assert "Python 3.11 or later is needed" in done.stdout


def test_help_names_every_target():
    targets = {
        line.split(":")[1].strip() for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith(".PHONY")
    }
    shown = make("help").stdout
    assert all(f"make {target} " in shown for target in targets.pop().split() if target != "help")
