"""Private folders for compiled code: torch and Numba read pickles from theirs, and a pickle can run any code."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

from impls.contract import Unavailable


def place(name: str) -> Path:
    """Where the folder `name` of this user's cache is or would be, in $XDG_CACHE_HOME or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "impls", name)


def folder(name: str) -> Path:
    """The folder `name` in this user's cache, made if there is none.

    Raises Unavailable if it cannot be made, or is another user's, or open to others.
    """
    top = place(name).parent
    try:
        top.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"{top} cannot be made: {error.strerror}; set XDG_CACHE_HOME to another folder") from None
    _require(top, stat.S_IRWXG | stat.S_IRWXO)
    (top / name).mkdir(mode=0o700, exist_ok=True)
    return top / name


def require(path: Path) -> None:
    """Raise Unavailable unless a folder is this user's, and no other can write to it."""
    _require(path, stat.S_IWOTH if _is_group_of_one(path.lstat().st_gid) else stat.S_IWGRP | stat.S_IWOTH)


def _require(path: Path, closed: int) -> None:
    """closed: the bits of its mode that a folder may not have."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & closed:
        raise Unavailable(f"compiled code in {path} may be another user's: remove it, or keep it to yourself with chmod 700")


def _is_group_of_one(group: int) -> bool:
    """Whether a group is this user's own, as many systems make one for each user and let it write."""
    try:
        known = grp.getgrgid(group)
        return not known.gr_mem and known.gr_name == pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
