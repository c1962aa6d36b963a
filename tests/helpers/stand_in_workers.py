"""Workers whose measurements are sleeps: `python stand_in_workers.py ADDRESS SECONDS` starts forty, of four machine kinds.

SECONDS: of a class, in the mean. A cluster's client uses the functions below in place of convbench.cluster.remote's.
"""

import asyncio
import hashlib
import json
import sys
import time

from distributed import Worker, get_worker
from distributed.utils import sync
from measured_suites import content

from convbench.cluster import remote
from convbench.cluster.measuring import Build, Measured
from convbench.cluster.remote import Facts, Failed

KINDS, MACHINES = 4, 40
ONE_IN = 50  # tasks fails when it is first tried
BUILD_SHARE = 0.25  # of a class's time, for a build
NAME = "b.T.time_x"
KNOWN = {
    NAME: {
        "name": NAME,
        "param_names": ["implementation"],
        "params": [["'cpu.a'", "'cpu.b'"]],
        "type": "time",
        "unit": "seconds",
        "version": "1",
    }
}
ENVIRONMENT = [{"env_name": "env", "versions": {"python": "3.12.0"}}]


def draw(*words):
    """A number from 0 to 1 that follows from words."""
    return int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:4]) / 2**32


def seconds(what, commit, name, pace):
    """How long a task takes; a build belongs to a kind, and each kind has one name here."""
    return pace * (0.5 + draw(what, commit, name)) * (BUILD_SHARE if what == "build" else 1.0)


def fails(what, commit, name):
    return draw("fails", what, commit, name) < 1 / ONE_IN


def hello(project):
    worker = get_worker()
    name, pace = worker.name.split()[:2]
    worker.pace = float(pace)
    return Facts(remote.versions(), worker.name, name, f"kind of {name}", False, 1, [], {})


def receive(project, packed, commits, shallow, labels):
    worker = get_worker()
    worker.tried = set()
    sync(worker.loop, worker.set_resources, **dict.fromkeys(labels, 1.0))


def perform(job, token, *needed):
    worker = get_worker()
    name, what, commit = worker.name.split()[0], job.function.__name__, job.arguments[0]
    time.sleep(seconds(what, commit, name, worker.pace))
    key = worker.get_current_task()
    if fails(what, commit, name) and key[-1].endswith(" 1"):
        return Failed("a stand-in's failure")
    if what == "build":
        return Build(commit, ENVIRONMENT, known=KNOWN, listing=json.dumps(KNOWN | {"version": 2}).encode())
    files = {f"{commit[:8]}-env.json": json.dumps(content(commit)).encode()}
    return Measured(files, b"", json.dumps({"machine": name, "version": 1}).encode(), ENVIRONMENT, 1.0)


async def serve(address, pace):
    names = [f"kind-{number % KINDS} {pace} {number}" for number in range(MACHINES)]
    await asyncio.gather(
        *(Worker(address, nthreads=1, resources={"measure": 1}, name=name, dashboard=False) for name in names)
    )
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], float(sys.argv[2])))
