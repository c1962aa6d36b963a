"""An environment of asv for machines without a network: the libraries that are installed there, and a commit built over them.

A plugin of asv: "environment_type": "preinstalled". asv's own "existing" environments install nothing, so that what is
measured is whatever happens to be installed, and put the interpreter's path into the names of files and series. Here the
name is the same on every machine, and a commit is what is measured.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

from asv import environment, util

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


class Preinstalled(environment.Environment):
    """The interpreter that asv runs on with its packages, and one commit of the project in a folder before them."""

    tool_name = "preinstalled"

    def __init__(self, conf: Any, python: str, requirements: dict[str, str], tagged_env_vars: dict) -> None:
        # Requirements are found, not installed; the side file of every run has their versions.
        self._python = python  # from both of these the base class makes the name
        self._requirements: dict[str, str] = {}
        super().__init__(conf, python, {}, tagged_env_vars)

    @classmethod
    def matches(cls, python: str) -> bool:
        return python == VERSION

    def _setup(self) -> None:
        """Make a virtual environment with this interpreter's packages, pip and its path included."""
        util.check_call([sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", self._path])
        # Without a program of this name, asv makes the environment and builds its commit again.
        pip = Path(sysconfig.get_path("scripts", vars={"base": self._path, "platbase": self._path}), "pip")
        pip.write_text(f'#!/bin/sh\nexec "{pip.with_name("python")}" -m pip "$@"\n', encoding="utf-8")
        pip.chmod(0o755)
        self._list.write_text(_seen(), encoding="utf-8")

    def check_presence(self) -> bool:
        """Whether there is such an environment, over what this interpreter sees today."""
        return super().check_presence() and self._list.is_file() and self._list.read_text(encoding="utf-8") == _seen()

    @property
    def _list(self) -> Path:
        purelib = Path(sysconfig.get_path("purelib", vars={"base": self._path, "platbase": self._path}))
        return purelib / "preinstalled.pth"

    def run(self, args: list[str], **kwargs: Any) -> str:
        """Run the environment's Python."""
        return self.run_executable("python", args, **kwargs)


def _seen() -> str:
    """A .pth file with this interpreter's path.

    It comes after the environment's own folder, which has a commit of the project; the interpreter may see another one.
    """
    return "".join(f"{_line(folder)}\n" for folder in sys.path if folder and Path(folder).is_dir())


def _line(folder: str) -> str:
    """The line of a .pth file that puts a folder on the path.

    The .pth files of the machine's own packages are used, since numba-cuda needs its own; not those of the
    interpreter that asv runs on, where an editable install would come before the commit.
    """
    if Path(folder).name.endswith("-packages") and not Path(folder).is_relative_to(sys.prefix):
        return f"import site; site.addsitedir({folder!r})"
    return folder
