"""The machines of a dask cluster as one client uses them: who is there, what each runs, and what has become of it.

dask schedules: a resource for each machine's name keeps a series where it belongs, and a task whose worker dies is run by
another. Only as many tasks as there are places are handed to it at a time, since it holds a worker's death against every task
that the worker had.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import click
import dask
from distributed import Client, Future, KilledWorker, wait
from rich.console import Console

from convbench.asv.project import Project
from convbench.cluster import remote, source
from convbench.cluster.remote import Facts, Failed, Job
from convbench.common import progress, terminal

CONNECT_SECONDS = 10
SILENT_SECONDS = 30.0  # of a scheduler, after which it counts as gone
ABSENT_SECONDS = 120.0  # without a machine of a name: a worker that is started again takes less
PATIENCE_SECONDS = 300.0  # for others who measure on a machine, or disturb it
TEND_SECONDS = 1.0
RETRIES = 1  # of a task that fails, which a neighbour may have caused
START = "start one with `dask worker ADDRESS --nthreads 1 --resources measure=1`"
KEPT = "what was finished is kept, and the same command resumes"


@dataclass(frozen=True, eq=False)
class Task:
    """A job for machines of a name; with a kind, for all machines of that kind. title: what it does, in words.

    about: whatever the caller adds. needed: tasks whose results the job takes. key: of what else is the same task.
    """

    title: str
    machine: str
    job: Job
    about: Any = None
    kind: str | None = None
    needed: tuple[Future, ...] = ()
    key: str = ""


class Work(Protocol):
    """Tasks, one after the other, and what becomes of them."""

    def next(self, machine: Facts) -> Task | None:
        """The next task for machines of this name, None if there is none now."""

    def done(self, task: Task, future: Future, answer: Any) -> bool:
        """Take the answer of a task; whether other tasks need it, so that its future is to be released later."""

    def failed(self, task: Task, reason: str) -> None:
        """Take note that a task was given up."""

    def absent(self, name: str, reason: str) -> None:
        """Take note that no machine of a name is left, and why."""

    def left(self) -> int:
        """How many tasks are left, beside those that run."""

    def keep(self) -> None:
        """Put what was taken into files, when the machines have their next tasks."""
        return


@dataclass
class Pool:
    """The machines of a cluster that measure commits of a project. names: a glob of those that are used.

    asked: workers that have not answered yet, by address, and what they said. machines: those that measure. refused: the
    names of others, and why they do not. running: the tasks at work. begun: how often each was. again: those that other
    machines have to take over. seen: when a machine of a name was last there. met: when any was, or the wait for one began.
    threads: those that fetch answers.
    """

    client: Client
    project: Project
    commits: Sequence[str]
    names: str
    console: Console
    asked: dict[str, tuple[Future, Facts | None]] = field(default_factory=dict)
    machines: dict[str, Facts] = field(default_factory=dict)
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)
    running: dict[Future, Task] = field(default_factory=dict)
    begun: dict[Task, int] = field(default_factory=dict)
    again: list[Task] = field(default_factory=list)
    seen: dict[str, float] = field(default_factory=dict)
    packed: dict[tuple[str, ...], list[bytes]] = field(default_factory=dict)
    threads: ThreadPoolExecutor = field(default_factory=ThreadPoolExecutor)
    tended: float = 0.0
    used: bool = False

    def __post_init__(self) -> None:
        self.source = source.of(self.project)
        known = (remote.versions(), self.source, *self.commits)
        self.token = hashlib.sha256(repr(known).encode()).hexdigest()[: source.DIGITS]
        self.met = time.monotonic()
        self.identity = self.client.scheduler_info()["id"]

    # Tasks

    def run(self, work: Work, what: str) -> None:
        """Have all tasks done, with a bar. Raises ClickException where no machine is there, or the scheduler is gone."""
        done = 0
        with progress.counting_bar(self.console) as bar, contextlib.ExitStack() as stack:
            stack.callback(work.keep)  # also after an interruption
            shown = bar.add_task(what, total=None, now="")
            while True:
                self._tend()
                self._hand_out(work)
                work.keep()
                left = work.left() + len(self.again)
                bar.update(shown, completed=done, total=done + len(self.running) + left, now=self._now())
                if self.used and not self.running and not left:
                    return
                self._note_absent(work)
                done += self._take_ended(work)

    def places(self, name: str | None = None) -> int:
        """How many tasks machines of a name, or all, run at a time."""
        return sum(name in (None, machine.name) for machine in self.machines.values())

    def _hand_out(self, work: Work) -> None:
        for name, machine in {machine.name: machine for machine in self.machines.values()}.items():
            while sum(task.machine == name for task in self.running.values()) < self.places(name):
                task = next((task for task in self.again if task.machine == name), None)
                if task:
                    self.again.remove(task)
                elif not (task := work.next(machine)):
                    break
                self._submit(task)

    def _submit(self, task: Task) -> None:
        attempt = self.begun[task] = self.begun.get(task, 0) + 1
        key = task.job.function.__name__, task.title, f"{self.token} {task.key} {attempt}"
        call: Sequence[Any] = remote.perform, task.job, self.token, *task.needed
        for machine in self.machines.values():
            if key in machine.unclaimed:
                call = remote.same, machine.unclaimed[key]
        with warnings.catch_warnings(action="ignore"):  # of large arguments
            resources = {remote.PLACE: 1, self._label(task.kind or task.machine): 1}
            future = self.client.submit(*call, key=key, resources=resources)
        self.running[future] = task

    def _ended(self) -> list[Future]:
        """The tasks that have ended, after a second at most."""
        if not self.running:
            time.sleep(TEND_SECONDS)
            return []
        with contextlib.suppress(TimeoutError):
            try:
                wait(list(self.running), timeout=TEND_SECONDS, return_when="FIRST_COMPLETED")
            except CancelledError:
                raise self._gone() from None
        if any(future.status == "cancelled" for future in self.running):
            raise self._gone()
        return [future for future in self.running if future.done()]

    def _take_ended(self, work: Work) -> int:
        """Pass on what has ended; how much of it is done with."""
        fetched = [(future, self.threads.submit(future.result, SILENT_SECONDS)) for future in self._ended()]
        return sum(self._take(work, future, self.running.pop(future), answer.result) for future, answer in fetched)

    def _take(self, work: Work, future: Future, task: Task, fetch: Callable[[], Any]) -> bool:
        """Pass on what has become of a task; whether it is done with.

        Its future is released here, since waits that time out leave references to futures behind, and dask makes again what
        was on a lost worker as long as there is one.
        """
        kept = False
        try:
            answer = fetch()
        except TimeoutError:  # its worker has ended before it could be asked: dask runs it once more
            self.running[future] = task
            return False
        except KilledWorker as killed:
            reason = f"{killed.allowed_failures + 1} workers were killed while they ran it"
            # dask holds a worker's death against all tasks that it had, also those that waited there.
            if killed.last_worker.executing.keys() - {future.key}:
                future.release()
                return self._failed(work, task, Failed(reason))
            work.failed(task, f"{task.title} is given up: {reason}")
        except CancelledError:
            raise self._gone() from None
        except Exception as error:  # of dask, which could not pass on the task or its answer
            work.failed(task, f"{task.title} on {task.machine}: {type(error).__name__}: {error}")
        else:
            if isinstance(answer, Failed):
                future.release()
                return self._failed(work, task, answer)
            kept = work.done(task, future, answer)
        if not kept:
            future.release()
        del self.begun[task]
        return True

    def _failed(self, work: Work, task: Task, answer: Failed) -> bool:
        """Have a task tried again where that may help; whether it is done with."""
        if answer.address:
            self._refuse(answer.address, answer.reason)
        elif self.begun[task] > RETRIES:
            work.failed(task, f"{task.title} on {task.machine}: {answer.reason}")
            del self.begun[task]
            return True
        self.again.append(task)
        return False

    def _now(self) -> str:
        return terminal.line("; ".join(f"{task.machine}: {task.title}" for task in self.running.values()))

    # Machines

    def wait(self) -> None:
        """Return once there are machines, and every worker has said what it is. Raises ClickException."""
        while self.asked or not self.machines:
            self._tend()
            self._require_some()
            time.sleep(TEND_SECONDS / 10)

    def _tend(self) -> None:
        """Ask new workers what they are and send them the project, forget those that are gone."""
        if time.monotonic() - self.tended < TEND_SECONDS:
            return
        self.tended = time.monotonic()
        try:
            alive = self.client.nthreads(callback_timeout=SILENT_SECONDS)
        except (OSError, TimeoutError, CancelledError, ValueError, RuntimeError):
            raise self._gone() from None
        if self.client.scheduler_info()["id"] != self.identity:  # another one at the same address knows no task of ours
            raise self._gone()
        for known in (self.asked, self.machines, self.refused):
            for address in known.keys() - alive.keys():
                del known[address]
        for address in alive.keys() - {*self.asked, *self.machines, *self.refused}:
            self.asked[address] = self._ask(address, remote.hello, self.source), None
        ended = [(address, *known) for address, known in self.asked.items() if known[0].done()]
        fetched = [(*each, self.threads.submit(each[1].result, SILENT_SECONDS)) for each in ended]
        for address, future, facts, answer in fetched:
            self._heard(address, future, facts, answer.result)
        if not self.asked:
            self.packed.clear()
        for machine in self.machines.values():
            self.seen[machine.name] = self.met = self.tended
            self.used = True

    def _ask(self, address: str, function: Any, *arguments: Any) -> Future:
        with warnings.catch_warnings(action="ignore"):
            key = function.__name__, address, f"{self.token} {time.time_ns()}"
            return self.client.submit(function, *arguments, key=key, workers=[address], priority=1)

    def _heard(self, address: str, future: Future, facts: Facts | None, fetch: Callable[[], Any]) -> None:
        """Go on with a worker that has answered: it is sent the project, then it is one of the machines."""
        del self.asked[address]
        if future.status == "cancelled":
            raise self._gone()
        try:
            answer = fetch()
        except Exception as error:
            answer = Failed(f"{type(error).__name__}: {error}")
        future.release()
        if isinstance(answer, Failed):
            self._refuse(address, f"it cannot take the project ({answer.reason}), which needs the client's convbench there")
        elif facts:
            self.machines[address] = facts
        elif reason := self._unfit(answer):
            self._refuse(address, reason)
        else:
            self.asked[address] = self._send(address, answer), answer

    def _unfit(self, facts: Facts) -> str | None:
        ours = remote.versions()
        for name, other in facts.versions.items():
            if other != ours.get(name):
                return f"it has {name} {other} and the client {ours.get(name)}: install the same on both"
        if not facts.places:
            return "it was started without --resources measure=1"
        return None if fnmatch.fnmatchcase(facts.name, self.names) else f"it is called {facts.name}, not {self.names}"

    def _send(self, address: str, facts: Facts) -> Future:
        known = tuple(facts.known)
        if known not in self.packed:
            self.packed[known] = source.packs(self.project, self.source, self.commits, known)
        shallow = source.shallow(self.project)
        labels = [self._label(facts.name), self._label(facts.kind)]
        return self._ask(address, remote.receive, self.source, self.packed[known], self.commits, shallow, labels)

    def _label(self, name: str) -> str:
        """The resource of machines of a name, or kind, that are ready for the tasks of this client and others like it."""
        return f"{name} {self.token}"

    def _refuse(self, address: str, reason: str) -> None:
        """Use a worker no more, and say why."""
        machine = self.machines.pop(address, None)
        self.refused[address] = machine.name if machine else "", reason
        self.console.print(f"{machine.name if machine else address} is not used: {reason}", highlight=False, markup=False)

    def _note_absent(self, work: Work) -> None:
        """Give up the names of which no machine is left. Raises ClickException where none is left at all."""
        if not self.seen:
            self._require_some()
        for name in [name for name, last in self.seen.items() if not self.places(name) and self._is_absent(last, name)]:
            del self.seen[name]
            for future in [future for future, task in self.running.items() if task.machine == name]:
                del self.running[future]
                future.release()
            self.again = [task for task in self.again if task.machine != name]
            work.absent(name, self._why(name))

    def _is_absent(self, since: float, name: str | None = None) -> bool:
        """Whether no machine of a name, or none at all, is to be expected: none came for a while, or none that is used."""
        refused = any(name in (None, other) for other, _ in self.refused.values())
        return not self.asked and (refused or time.monotonic() - since > ABSENT_SECONDS)

    def _require_some(self) -> None:
        if not self.machines and self._is_absent(self.met):
            raise click.ClickException(f"no machine measures: {self._why()}")

    def _why(self, name: str | None = None) -> str:
        reasons = dict.fromkeys(reason for other, reason in self.refused.values() if name in (None, other))
        return "; ".join(reasons) or f"no worker is there; {START}"

    def _gone(self) -> click.ClickException:
        return click.ClickException(f"the scheduler does not answer any more: {KEPT}")


@contextlib.contextmanager
def connect(address: str, project: Project, commits: Sequence[str], names: str, console: Console) -> Iterator[Pool]:
    """The machines of a scheduler. address: that of it, or a file that it wrote. Raises ClickException in one sentence."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)  # each of its errors is told as a sentence
    dask.config.set({"distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s"})
    try:
        client = Client(_address(address), timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as error:
        said = " ".join(str(error).split())
        raise click.ClickException(f"no scheduler answers at {address}: {said}") from None
    try:
        yield Pool(client, project, commits, names, console)
    finally:
        with contextlib.suppress(Exception):  # a scheduler that is gone cannot be left in order
            client.close(timeout=CONNECT_SECONDS)


def _address(words: str) -> str:
    """A scheduler's address, also from its file. Raises ClickException."""
    if "://" in words or not Path(words).is_file():
        return words
    try:
        return json.loads(Path(words).read_text(encoding="utf-8"))["address"]
    except (OSError, ValueError, LookupError, TypeError):
        raise click.ClickException(
            f"{words} is not a scheduler's file, as `dask scheduler --scheduler-file` writes it"
        ) from None
