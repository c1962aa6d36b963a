"""Publishes files atomically: whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

MAX_LINKS = 40  # links in a row, as Linux follows them


@contextlib.contextmanager
def whole(target: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces the target in one step if all goes well, and is removed otherwise.

    Links stay links. A target that is not a regular file, such as /dev/stdout, is written to directly. Raises OSError,
    also for a link of another user.
    """
    if target.exists() and not target.is_file():
        yield target
        return
    target = _behind_links(target)
    # A predictable name would let another user put a link there.
    beside = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
    try:
        beside.touch(exist_ok=False)
        yield beside
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _behind_links(path: Path) -> Path:
    """The target of a path. Like the system, this follows no links of other users in shared folders."""
    for _ in range(MAX_LINKS):
        if not path.is_symlink():
            return path
        if hasattr(os, "geteuid") and path.lstat().st_uid not in (os.geteuid(), 0):
            raise PermissionError(errno.EACCES, "it is a link that belongs to another user", str(path))
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def finite(content: Any) -> Any:
    """The document for JSON, with null for numbers that are not finite."""
    if isinstance(content, dict):
        return {key: finite(item) for key, item in content.items()}
    if isinstance(content, (list, tuple)):
        return [finite(item) for item in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def publish(finished: Path, target: Path) -> None:
    """Move a finished file to its place. Raises ClickException if that cannot be written; an old file then stays."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole(target) as beside:
            shutil.copyfile(finished, beside)
    except OSError as error:
        raise click.ClickException(f"cannot write to {target}: {error.strerror}") from None
