"""Finds the cause of a failure in the log of asv or of a build."""

from __future__ import annotations

from pathlib import Path

KILLED = "the process that starts the cells was killed, probably out of memory"
FULL = "the disk is full"
LIMITED = "the limit on file sizes (ulimit -f) is too low for asv's files"

PINNED = "Could not find a version that satisfies"

# Words in a build's log, and what they mean.
CAUSES = {
    "Unknown compiler(s)": "no C compiler was found, and the Cython kernels need one: install gcc or clang",
    "No space left on device": FULL,
    "File too large": LIMITED,
    "Killed signal terminated program": "the compiler was killed, probably out of memory",
    PINNED: "asv.conf.json pins a library version that is not available for this Python",
    "Temporary failure in name resolution": "the package index cannot be reached, and asv's environment is installed from it",
    # asv reports one of the two, whichever it notices first.
    "did not receive data from socket": KILLED,
    "Process exited with code -9": KILLED,
}


def cause(log: Path) -> str:
    """The reason of a failed build, if its log has a clear one."""
    text = log.read_text(errors="replace")
    return next((sentence for words, sentence in CAUSES.items() if words in text), "")


def tail(log: Path) -> str:
    """The last informative lines of a log."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return " / ".join(lines[-6:])[-800:] or "it printed nothing"
