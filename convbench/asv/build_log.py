"""What the log of asv or of a build says about its cause."""

from __future__ import annotations

from pathlib import Path

KILLED = "the process that starts the cells was killed, probably out of memory"

PINNED = "Could not find a version that satisfies"

# Words in a build's log, and what they mean.
CAUSES = {
    "Unknown compiler(s)": "no C compiler was found, and the Cython kernels need one: install gcc or clang",
    "No space left on device": "the disk is full",
    "File too large": "no file may grow as large here as one of asv's has to",
    "Killed signal terminated program": "the compiler was killed, probably out of memory",
    PINNED: "asv.conf.json pins a library that this Python cannot have",
    "Temporary failure in name resolution": "the package index cannot be reached, and asv's environment is installed from it",
    # asv says the one or the other, by which of them it notices first.
    "did not receive data from socket": KILLED,
    "Process exited with code -9": KILLED,
}


def cause(log: Path) -> str:
    """The reason of a failed build, if its log has a clear one."""
    text = log.read_text(errors="replace")
    return next((sentence for words, sentence in CAUSES.items() if words in text), "")


def tail(log: Path) -> str:
    """The last words of a log that say something."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return " / ".join(lines[-6:])[-800:] or "it printed nothing"
