"""Unexpected exceptions in one sentence."""

from __future__ import annotations

import tempfile
import traceback


def sentence(error: Exception) -> str:
    """Say that an exception is a fault of convbench, and where its traceback is: in a new file."""
    with tempfile.NamedTemporaryFile("w", prefix="convbench-", suffix=".txt", delete=False, encoding="utf-8") as file:
        traceback.print_exception(error, file=file)
    words = " ".join("".join(traceback.format_exception_only(error)).split())
    return f"this is a fault of convbench, please report it: {words[:500]} (traceback: {file.name})"
