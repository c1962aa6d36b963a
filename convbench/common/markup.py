"""Escapes untrusted text for Markdown."""

from __future__ import annotations

import re

from convbench.common.terminal import line

# The last two are of links without any markup.
SPECIAL = re.compile(r"[\\`*_{}\[\]<>|#@&~]|:(?=//)|(?<=www)\.")


def escaped(text: str) -> str:
    """The text with everything escaped that Markdown, HTML or GitHub would interpret."""
    return SPECIAL.sub(lambda found: f"&#{ord(found[0])};", line(" ".join(text.split())))


def code(text: str) -> str:
    """The text as code."""
    return f"<code>{escaped(text)}</code>"
