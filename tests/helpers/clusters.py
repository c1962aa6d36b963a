"""A dask cluster in processes of its own, whose workers count as different machines; TLS is on."""

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import dask
from runs import wait_until

SCHEDULER = {"worker-ttl": "4s"}


@functools.cache
def certificate():
    """The path of a key with its certificate, which all sides of a cluster have."""
    folder = Path(tempfile.mkdtemp(prefix="convbench-tls-"))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=convbench", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
    subprocess.run(command, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return both


def settings():
    """dask's settings as variables, for its programs and for the client."""
    tls = str(certificate())
    known = {f"SCHEDULER__{key.replace('-', '_').upper()}": str(value) for key, value in SCHEDULER.items()}
    known |= {f"COMM__TLS__{role}__{what}": tls for role in ("SCHEDULER", "WORKER", "CLIENT") for what in ("KEY", "CERT")}
    known |= {"COMM__TLS__CA_FILE": tls, "COMM__REQUIRE_ENCRYPTION": "True", "WORKER__PROFILE__ENABLED": "False"}
    return {f"DASK_DISTRIBUTED__{name}": value for name, value in known.items()}


class Cluster:
    """A scheduler and workers below a folder. workers: their processes, by the names of their machines.

    failures: how many workers may be killed while they have the same task.
    """

    def __init__(self, folder, failures):
        self.folder, self.workers, self.count = folder, {}, 0
        self.allowed = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(failures)}
        self.file = folder / "scheduler.json"
        self.restart()

    def restart(self, port=0):
        """Start a scheduler."""
        self.file.unlink(missing_ok=True)
        address = ["--protocol", "tls", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
        self.scheduler = self._start("scheduler", "scheduler", *address, "--scheduler-file", str(self.file), **self.allowed)
        wait_until(lambda: self.file.is_file() and self.file.read_text().endswith("}"))
        self.address = json.loads(self.file.read_text())["address"]
        return self

    def _start(self, log, *command, **variables):
        with (self.folder / f"{log}.log").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *command],
                cwd=self.folder,
                env={**os.environ, **settings(), **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def add(self, machine, preload="", measures=True, **variables):
        """Start a worker on a machine of this name. preload: Python that it runs first."""
        place = self.folder / f"{machine}-{self.count}"
        self.count += 1
        home = self.folder / "homes" / machine
        home.mkdir(parents=True, exist_ok=True)
        known = {"CONVBENCH_MACHINE": machine, "CONVBENCH_LOCK": str(home / "lock"), "XDG_CACHE_HOME": str(home)}
        known |= {"HOME": str(home)}
        command = ["worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0"]
        command += ["--local-directory", str(place), "--name", place.name]
        command += ["--resources", "measure=1"] if measures else []
        if preload:
            file = self.folder / f"{place.name}.py"
            file.write_text(preload)
            command += ["--preload", str(file)]
        process = self._start(machine, *command, **{**known, **variables})
        self.workers.setdefault(machine, []).append(process)
        return process

    def close(self):
        """End everything."""
        processes = [self.scheduler, *(process for several in self.workers.values() for process in several)]
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGCONT)
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        time.sleep(0.1)

    def logs(self):
        """What all of its programs have printed."""
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("*.log")))


@contextlib.contextmanager
def client():
    """dask's settings for clients, in this process and in those that it starts."""
    with mock.patch.dict(os.environ, settings()):
        dask.config.refresh()
        yield
    dask.config.refresh()


@contextlib.contextmanager
def cluster(folder, *machines, failures=2):
    """A scheduler with a worker on each of these machines."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Cluster(folder, failures)
    try:
        for machine in machines:
            made.add(machine)
        with client():
            yield made
    finally:
        made.close()


def copy(project, folder):
    """Another clone of a project, with its results."""
    return Path(shutil.copytree(project, folder, symlinks=True, ignore=shutil.ignore_patterns("env", ".convbench")))
