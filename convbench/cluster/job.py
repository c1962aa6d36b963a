"""The process of one measurement on a worker's machine: python -m convbench.cluster.job FOLDER, which has the job in a file.

It is a process of its own, since a measurement forks, handles signals and pins cores, and what it starts has to end with it.
"""

from __future__ import annotations

import errno
import pickle
import sys
from pathlib import Path
from typing import Any

import click

from convbench.cluster import remote, source
from convbench.cluster.remote import Job
from convbench.common import faults, lock
from convbench.common.load import MachineFault

FULL = "No space left on device", "the disk is full"  # as git, builders and asv have it


def answer(job: Job, needed: tuple[Any, ...]) -> Any:
    """What the job's function returns, or the ClickException that it raises."""
    try:
        lock.keep(job.patience)  # also for the clone, where another worker of this machine may measure another commit
        project = source.checkout(job.source)
        return job.function(project, *job.arguments, *needed)
    except click.ClickException as error:
        full = any(words in error.message for words in FULL) and not isinstance(error, MachineFault)
        return MachineFault(error.message) if full else error
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            return MachineFault("the disk is full")
        return click.ClickException(faults.sentence(error))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    content = pickle.dumps(answer(*pickle.loads((folder / remote.JOB).read_bytes())))
    unfinished = folder / "unfinished"
    unfinished.write_bytes(content)
    unfinished.rename(folder / remote.ANSWER)
