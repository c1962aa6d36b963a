"""The functions that a dask worker runs: it says what it is, takes the project, and starts a process for each measurement."""

from __future__ import annotations

import contextlib
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import dask
from dask.typing import Key
from distributed import Status, get_worker
from distributed.utils import sync

from convbench.asv import machine
from convbench.cluster import source
from convbench.cluster.source import Source
from convbench.common import session_guard
from convbench.common.load import MachineFault

POLL_SECONDS = 0.2
# Without a client that wants the measurement, before it is ended: another one may ask for the same.
UNWANTED_SECONDS = 60.0
PLACE = "measure"  # the resource by which a worker says that it measures
JOB, ANSWER, LOG = "job.pickle", "answer.pickle", "log"

# The last answer that was ready after its client was gone, by its task's key: the same client started again asks for it.
unclaimed: dict[Key, Any] = {}


@dataclass(frozen=True)
class Facts:
    """What a worker says of itself. places: how much it measures at a time. known: the commits that its clone has.

    unclaimed: answers that no client has taken, by the keys of their tasks.
    """

    versions: dict[str, str]
    node: str
    name: str
    kind: str
    has_device: bool
    places: float
    known: list[str]
    unclaimed: dict[Key, Any]


@dataclass(frozen=True)
class Job:
    """A call of a function in a process of its own, with the project first.

    seconds: after which it is given up. patience: seconds to wait for another measurement on the machine to end.
    """

    source: Source
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    seconds: float
    patience: float


@dataclass(frozen=True)
class Failed:
    """In place of an answer. address: of a worker that cannot measure now, and takes nothing more of this client.

    It is no exception, since dask's client waits for ever for a task whose traceback is long.
    """

    reason: str
    address: str | None = None


def versions() -> dict[str, str]:
    """What has to be alike on the client and its workers: results are of one kind, and travel as Python's own objects."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"convbench": version("convbench"), "Python": python, "asv": version("asv")}


def hello(project: Source) -> Facts | Failed:
    """What this worker is."""
    try:
        machine.require_device_names()
        places = get_worker().state.total_resources.get(PLACE, 0)
        about = versions(), platform.node(), machine.name(), machine.kind(), machine.has_device()
        return Facts(*about, places, source.known(project), unclaimed)
    except Exception as error:
        return Failed(_words(error))


def _words(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        return error.message
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}"
    return f"{type(error).__name__}: {error}"


def receive(
    project: Source, packed: Sequence[bytes], commits: Sequence[str], shallow: str, labels: Sequence[str]
) -> Failed | None:
    """Take the project. labels: resources of this worker from then on."""
    try:
        source.receive(project, packed, commits, shallow)
        _provide(dict.fromkeys(labels, 1.0))
    except Exception as error:
        return Failed(_words(error))
    return None


def _provide(resources: dict[str, float]) -> None:
    """Change what this worker provides."""
    worker = get_worker()

    async def provide() -> None:
        await worker.set_resources(**resources)
        # The scheduler looks for workers of tasks that none could take when one arrives or goes on, not when one changes.
        worker.status = Status.paused
        worker.status = Status.running

    sync(worker.loop, provide)


def perform(job: Job, token: str, *needed: Any) -> Any:
    """The answer of a job, or Failed.

    token: of the resources that the worker takes back where it cannot measure. needed: results of other tasks, passed to the
    job's function last.
    """
    worker = get_worker()
    try:
        with tempfile.TemporaryDirectory(dir=worker.local_directory) as name:
            folder = Path(name)
            (folder / JOB).write_bytes(pickle.dumps((job, needed)))
            answer = _answer(folder, token, job.seconds)
    except OSError as error:
        answer = MachineFault(_words(error))
    except Exception as error:
        answer = click.ClickException(_words(error))
    if isinstance(answer, MachineFault):
        _provide({label: 0.0 for label in worker.state.total_resources if label.endswith(token)})
        return Failed(answer.message, worker.address)
    if isinstance(answer, click.ClickException):
        return Failed(answer.message)
    key = worker.get_current_task()
    if not _is_wanted(key):
        unclaimed.clear()
        unclaimed[key] = answer
    return answer


def same(answer: Any) -> Any:
    """An answer that is known: a task of its own for those that need it."""
    return answer


def _answer(folder: Path, token: str, seconds: float) -> Any:
    """The answer of the job in a folder, or the ClickException that ended it."""
    program = [sys.executable, "-P", "-m", "convbench.common.session_guard", "convbench.cluster.job", str(folder)]
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,  # closed when this worker ends, which the guard notices
            stdout=log,
            stderr=subprocess.STDOUT,
            env=_environment(),
            start_new_session=True,
        )
        try:
            _wait(process, token, time.monotonic() + seconds)
        except subprocess.TimeoutExpired:
            return click.ClickException(f"it took more than {seconds:.0f} seconds")
        finally:
            session_guard.end(process)
    with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
        return pickle.loads((folder / ANSWER).read_bytes())
    said = (folder / LOG).read_text(errors="replace").strip().splitlines() or ["it printed nothing"]
    return click.ClickException(f"its process ended with status {process.returncode}: {said[-1][:300]}")


def _wait(process: subprocess.Popen[bytes], token: str, until: float) -> None:
    """Wait for a process. Raises TimeoutExpired at a moment, and when no client has wanted the task for a while."""
    worker = get_worker()
    key, wanted = worker.get_current_task(), time.monotonic()
    while process.poll() is None:
        now = time.monotonic()
        if _is_wanted(key) or any(token in str(other) for other in list(worker.state.tasks) if other != key):
            wanted = now  # where other tasks of this project and these commits wait, this one will be asked for
        if now > until or now - wanted > UNWANTED_SECONDS:
            raise subprocess.TimeoutExpired(process.args, now - wanted)
        time.sleep(POLL_SECONDS)


def _is_wanted(key: Key) -> bool:
    """Whether a client waits for a task that is executing."""
    task = get_worker().state.tasks.get(key)
    return task is not None and task.state == "executing"


def _environment() -> dict[str, str]:
    """The worker's, without the numbers of threads that dask's nanny sets for the worker itself."""
    given = dask.config.get("distributed.nanny.pre-spawn-environ", {})
    return {name: value for name, value in os.environ.items() if str(given.get(name)) != value}
