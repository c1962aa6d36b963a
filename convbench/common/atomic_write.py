"""Publishes finished files, whole or not at all."""

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

MAX_LINKS = 40  # that are followed one after the other, as by Linux


@contextlib.contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A file to write that takes the place of the target when all went well, in one step, and is gone otherwise.

    A link stays one, and what is no file, a pipe or /dev/stdout for example, is itself written to. Raises OSError, also for
    a link that another user has made.
    """
    if target.exists() and not target.is_file():
        yield target
        return
    target = _behind_links(target)
    # A name that can be known before would let another user put a link there.
    beside = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
    try:
        beside.touch(exist_ok=False)
        yield beside
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _behind_links(path: Path) -> Path:
    """What a path names in the end. The system follows no links of other users in shared folders, and neither does this."""
    for _ in range(MAX_LINKS):
        if not path.is_symlink():
            return path
        if hasattr(os, "geteuid") and path.lstat().st_uid not in (os.geteuid(), 0):
            raise PermissionError(errno.EACCES, "it is a link of another user's", str(path))
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def finite(content: Any) -> Any:
    """What JSON can hold of a document: numbers that are not finite as null."""
    if isinstance(content, dict):
        return {key: finite(item) for key, item in content.items()}
    if isinstance(content, (list, tuple)):
        return [finite(item) for item in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def publish(finished: Path, target: Path) -> None:
    """Put a finished file into its place. Raises ClickException where that cannot be written; what was there stays."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole(target) as beside:
            shutil.copyfile(finished, beside)
    except OSError as error:
        raise click.ClickException(f"cannot write to {target}: {error.strerror}") from None
