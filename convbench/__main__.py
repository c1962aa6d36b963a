"""The entry point of the command: errors that happen before or after any command runs."""

from __future__ import annotations

import errno
import sys

OURS = ("convbench", "benchmarks", "impls")


def main() -> None:
    """Run the command. Ends with one sentence where a library is missing or nothing more can be written."""
    try:
        _run()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OURS:
            raise
        sys.exit(
            f"Error: {error.name} is missing, which pip installs together with convbench: pip install --upgrade convbench"
        )
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sys.stdout = None  # what is left in it cannot be written at the end either
        sys.exit("Error: no space left on device")


def _run() -> None:
    from convbench.cli import main as cli
    from convbench.common import terminal

    terminal.guard()
    try:
        cli.main()
    finally:
        sys.stdout.flush()


if __name__ == "__main__":
    main()
