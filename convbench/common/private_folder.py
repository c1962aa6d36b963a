"""Folders that only this user can write to, for caches: another user's files there would be trusted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import click


def folder(name: str) -> Path:
    """The folder `name` in this user's cache, made if there is none.

    Raises ClickException if it cannot be made, or where it belongs to another user or is open to one.
    """
    top = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "convbench"
    try:
        top.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = top.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022:
            top.chmod(0o700)  # another program made it, and other users could only read it
        else:
            raise click.ClickException(
                f"{top} must be a folder owned by this user with mode 0700, since its files are trusted: remove it, or set "
                "XDG_CACHE_HOME to another folder"
            )
        (top / name).mkdir(exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"cannot make {top}: {error.strerror}; set XDG_CACHE_HOME to another folder") from None
    return top / name
