"""Removes this machine's paths and host name from text."""

from __future__ import annotations

import platform
import re

MAX_CHARACTERS = 500  # characters of a reason, from its end

# All but the last name of a path from the file system's root, or of a URL. A slash behind a
# word or a dot is inside a path of the project's own.
FOLDERS = re.compile(r"(?<![\w.~-])(?:[a-z]+:/+)?/(?:[\w.@+~:-]+/)*(?=[\w.@+~-])")


def redact(text: str) -> str:
    """A reason on one line, without the machine's host name and folders; a long one keeps its end."""
    text = FOLDERS.sub("", " ".join(text.split()))
    host = platform.node()
    if host:
        text = re.sub(rf"(?<![\w-]){re.escape(host)}(?![\w-])", "this machine", text)
    return text[-MAX_CHARACTERS:]
