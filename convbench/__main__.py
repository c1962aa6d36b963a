"""Where the command begins: what it needs is there or named, and what it prints can be printed."""

from __future__ import annotations

import errno
import sys

OURS = ("convbench", "benchmarks", "impls")


def main() -> None:
    """Run the command. Ends with one sentence where a library is missing or nothing more can be written."""
    try:
        from convbench.cli import commands
        from convbench.common import terminal
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OURS:
            raise
        sys.exit(f"Error: {error.name} is missing: the commands need more than impls does; pip install '.[bench]'")
    terminal.guard()
    try:
        try:
            commands.main()
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sys.stdout = None  # what is left in it cannot be written at the end either
        sys.exit("Error: no room is left where the output goes")


if __name__ == "__main__":
    main()
