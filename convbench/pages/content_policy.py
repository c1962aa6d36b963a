"""The content security policy of our pages: https://www.w3.org/TR/CSP3.

An inline script is allowed by its hash, so that one which a name or a reason brings into an open page does not run.
"""

from __future__ import annotations

import base64
import hashlib
import re

INLINE = re.compile(rb"<script\b[^>]*>(.+?)</script\s*>", re.DOTALL | re.IGNORECASE)
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'"
# Style attributes are in asv's pages, and Plotly sets them.
STYLES = "'unsafe-inline'"


def source(script: bytes) -> str:
    """An inline script as an entry of script-src. A browser reads every end of a line as one character."""
    digest = hashlib.sha256(re.sub(rb"\r\n?", b"\n", script)).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def alone(*scripts: str) -> str:
    """The policy of a self-contained page: these scripts, and pictures that it draws."""
    allowed = " ".join(source(script.encode()) for script in scripts)
    return f"{NOTHING}; script-src {allowed}; style-src {STYLES}; img-src data: blob:"


def served(page: bytes) -> str:
    """The policy of a served page: nothing from another host, and no inline scripts but its own."""
    allowed = " ".join(["'self'", *dict.fromkeys(map(source, INLINE.findall(page)))])
    return (
        f"{NOTHING}; frame-ancestors 'none'; script-src {allowed}; style-src 'self' {STYLES}; img-src 'self' data: blob:; "
        "font-src 'self'; connect-src 'self'"
    )
