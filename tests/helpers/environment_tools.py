"""Stubs of tools that asv makes environments with: each makes one of the tests' own interpreter, and installs nothing."""

import sys

# What both make: an environment that finds what this interpreter has, pip among it.
MAKE = f"""
import pathlib, subprocess, sys


def make(path):
    subprocess.run([{sys.executable!r}, "-m", "venv", "--without-pip", path], check=True)
    (packages,) = pathlib.Path(path).glob("lib/python*/site-packages")
    packages.joinpath("seen.pth").write_text("\\n".join({[folder for folder in sys.path if folder]!r}))
    pip = pathlib.Path(path, "bin", "pip")
    pip.write_text('#!/bin/sh\\nexec "$(dirname "$0")/python" -m pip "$@"\\n')
    pip.chmod(0o755)
"""
CONDA = """
if sys.argv[1:] == ["--version"]:
    print("conda 24.5.0")
else:
    verb, path = sys.argv[1:4], sys.argv[sys.argv.index("-p") + 1]
    assert verb == ["env", "create", "-f"], verb
    wanted = pathlib.Path(sys.argv[4]).read_text()
    assert f"python={sys.version_info.major}.{sys.version_info.minor}\\n" in wanted, wanted
    make(path)
"""
RATTLER = """
import enum


class ChannelPriority(enum.Enum):
    Strict, Flexible, Disabled = range(3)


class MatchSpec(str):
    pass


class VirtualPackage:
    @staticmethod
    def detect():
        return []


async def solve(sources, specs, virtual_packages, channel_priority):
    return specs


async def install(records, target_prefix):
    assert any(record.startswith("python") for record in records)
    make(target_prefix)
"""


def conda(folder):
    """A program of that name in a folder."""
    program = folder / "conda"
    program.write_text(f"#!{sys.executable}\n{MAKE}{CONDA}", encoding="utf-8")
    program.chmod(0o755)
    return program


def rattler(folder):
    """A package of that name in a folder."""
    (folder / "rattler.py").write_text(MAKE + RATTLER, encoding="utf-8")
