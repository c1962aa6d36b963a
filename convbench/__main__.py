"""The entry point of the command: errors that happen before or after any command runs."""

from __future__ import annotations

import errno
import sys

from convbench.common import faults

OURS = ("convbench", "benchmarks", "impls")


def main() -> None:
    """Run the command. Ends with one sentence where a library is missing or nothing more can be written."""
    try:
        _run()
    except ModuleNotFoundError as error:
        sys.exit(f"Error: {_missing(error)}")
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            sys.stdout = None  # the rest of its buffer cannot be written at exit either
            sys.exit("Error: no space left on device")
        sys.exit(f"Error: {faults.sentence(error)}")


def _missing(error: ModuleNotFoundError) -> str:
    if (error.name or "").partition(".")[0] in OURS:
        return faults.sentence(error)
    return f"{error.name} is missing, which pip installs together with convbench: pip install --upgrade convbench"


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
