"""Small projects with an asv suite of their own, for gates to be run on: built without a network, in commits that are known.

tests/proofs/gate_proof.py and the tests write them.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

# A build backend inside the project: a wheel of the package's files, and nothing to install for it.
BACKEND = """
import base64, hashlib, os, zipfile


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = "sample-1.0-py3-none-any.whl"
    files = {f"sample/{f}": open(f"sample/{f}", "rb").read() for f in sorted(os.listdir("sample")) if f.endswith(".py")}
    if b"does not build" in files["sample/__init__.py"]:
        raise SystemExit("sample does not build: the compiler says no")
    files["sample-1.0.dist-info/METADATA"] = b"Metadata-Version: 2.1\\nName: sample\\nVersion: 1.0\\n"
    tags = b"Wheel-Version: 1.0\\nGenerator: sample\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    files["sample-1.0.dist-info/WHEEL"] = tags
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\\n"
        for path, data in files.items()
    )
    files["sample-1.0.dist-info/RECORD"] = (record + "sample-1.0.dist-info/RECORD,,\\n").encode()
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        for path, data in files.items():
            wheel.writestr(path, data)
    return name
"""

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
RUNNER = {"pip+asv_runner": "0.3.2"}

# A package that spins for so many microseconds, and its suite.
FAST, SLOW = 100, 300  # microseconds that the package spins
PACKAGE = """
import time


def work():
    end = time.perf_counter() + {} / 1e6
    while time.perf_counter() < end:
        pass
"""
SUITE = "import sample\n\n\ndef time_work():\n    sample.work()\n\n\ntime_work.sample_time = 0.002\n"


class Sample:
    """A project in a folder; commit() writes files and returns the commit's hash."""

    def __init__(self, folder: Path, requirements: Mapping[str, str] | None = None, environments: Path | None = None) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        conf = {
            "version": 1,
            "project": "sample",
            "repo": ".",
            "branches": ["main"],
            "environment_type": "virtualenv",
            "launch_method": "forkserver",
            "env_dir": str(environments or folder / ".asv" / "env"),
            "matrix": {"req": {name: [version] for name, version in {**(requirements or {}), **RUNNER}.items()}},
            "build_command": ["python -m pip wheel --quiet --no-deps --no-build-isolation -w {build_cache_dir} {build_dir}"],
            "install_command": ["in-dir={env_dir} python -m pip install --quiet --no-deps --force-reinstall {wheel_file}"],
        }
        self.git("init", "--quiet", "--initial-branch", "main")
        self.write({"asv.conf.json": json.dumps(conf, indent=1), "backend.py": BACKEND, "pyproject.toml": PYPROJECT})
        self.write({"benchmarks/__init__.py": "", ".gitignore": ".asv\n.convbench\nresults\nhtml\n__pycache__\n"})

    def git(self, *command: str) -> str:
        """Run git here, as a fixed user."""
        who = {f"GIT_{role}_{what}": "nobody" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(
            ["git", "-C", self.folder, *command], check=True, capture_output=True, text=True, env=os.environ | who
        )
        return done.stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, by path."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def commit(self, files: Mapping[str, str], message: str = "a change") -> str:
        """Write files and commit all; the commit's hash."""
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")
