"""Which level of the kernels is used, the best or the one that IMPLS_CPU names, and what each is compiled to."""

import importlib.machinery
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from impls import levels

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
X86 = ["baseline", "avx2", "avx512"]


def machine(monkeypatch, compiled, best, asked):
    kernels = SimpleNamespace(compiled=lambda: compiled, best=lambda: best) if compiled else None
    monkeypatch.setattr(levels, "kernels", kernels)
    monkeypatch.setenv(levels.VARIABLE, asked)


@pytest.mark.parametrize(
    ("compiled", "best", "asked", "used"),
    [
        (X86, "avx512", "", "avx512"),
        (X86, "avx2", "", "avx2"),
        (X86, "avx512", "avx2", "avx2"),
        (X86, "avx2", "baseline", "baseline"),
        (X86, "none", "", None),
        (["neon"], "neon", "neon", "neon"),
        (["avx"], "baseline", "", "avx"),  # compiled for one machine, which is trusted
        (None, "avx2", "", None),
    ],
)
def test_the_best_level_or_the_one_that_was_asked_for(compiled, best, asked, used, monkeypatch):
    machine(monkeypatch, compiled, best, asked)
    assert levels.chosen() == used


@pytest.mark.parametrize(
    ("compiled", "best", "asked", "there"),
    [
        (X86, "avx2", "avx512", "baseline, avx2"),
        (X86, "avx512", "neon", "baseline, avx2, avx512"),
        (X86, "none", "baseline", r"\(none is there\)"),
        (["avx512"], "avx512", "avx2", "avx512"),
        (None, "avx2", "avx2", r"\(none is there\)"),
    ],
)
def test_a_level_that_is_not_there_is_an_error_that_lists_those_that_are(compiled, best, asked, there, monkeypatch):
    machine(monkeypatch, compiled, best, asked)
    with pytest.raises(ValueError, match=f"^IMPLS_CPU={asked}: .* one of: {there}"):
        levels.chosen()


def test_a_command_shows_that_error_without_a_traceback():
    command = [sys.executable, "-m", "benchmarks", "doctor"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "IMPLS_CPU": "avx9"}, capture_output=True, text=True, check=False
    )
    assert "IMPLS_CPU=avx9: " in json.loads(done.stdout.splitlines()[-1])["error"]
    assert not done.stderr


def test_a_level_s_kernel_is_found_by_its_name_alone(tmp_path):
    ending = importlib.machinery.EXTENSION_SUFFIXES[0]
    for level in X86:
        (tmp_path / f"_cython_x.{level}{ending}").touch()
    found = levels.Finder("avx2").find_spec("impls.conv2d.cpu._cython_x", [str(tmp_path)])
    assert (found.name, found.origin) == ("impls.conv2d.cpu._cython_x", str(tmp_path / f"_cython_x.avx2{ending}"))
    assert isinstance(found.loader, importlib.machinery.ExtensionFileLoader)
    assert levels.Finder("neon").find_spec("impls.conv2d.cpu._cython_x", [str(tmp_path)]) is None
    assert levels.Finder("avx2").find_spec("other._cython_x", [str(tmp_path)]) is None


def registers(file):
    """The kinds of vector registers in the instructions of an extension."""
    text = subprocess.check_output(["objdump", "--disassemble", "--no-show-raw-insn", file], text=True)
    return set(re.findall(r"%([xyz]mm)\d", text))


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have one level")
def test_a_kernel_has_the_registers_of_its_level_alone(tmp_path):
    """Of all kernels tests/test_portable.py says so."""
    meson, ninja = (shutil.which(name, path=PATH) for name in ("meson", "ninja"))
    if not (meson and ninja and shutil.which("objdump")):
        pytest.skip("meson, ninja or objdump is not installed: pip install meson ninja; apt-get install binutils")
    names = [f"_cython_typed.{level}{importlib.machinery.EXTENSION_SUFFIXES[0]}" for level in X86]
    for command in ([meson, "setup", "-Dportable=true", tmp_path, ROOT], [ninja, "-C", tmp_path, *names]):
        subprocess.run(command, env={**os.environ, "PATH": PATH}, check=True, capture_output=True)
    baseline, avx2, avx512 = (registers(tmp_path / name) for name in names)
    assert (baseline, "zmm" in avx2, "ymm" in avx2, "zmm" in avx512) == ({"xmm"}, False, True, True)
