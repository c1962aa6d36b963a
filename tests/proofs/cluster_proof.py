"""How well a cluster is used: `python tests/proofs/cluster_proof.py [COMMITS SECONDS]`, five minutes.

The real client and scheduler with stand-in measurements: 2,000 commits on 40 machines of four kinds, each with a series of
all commits; one task in fifty fails and is tried again. Prints the time against the lower bound (the work of a kind over its
machines), the scheduler's share of a core, and the client's memory in each fifth of the work.
"""

from __future__ import annotations

import itertools
import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

HELPERS = Path(__file__).parents[1] / "helpers"
sys.path[:0] = [str(HELPERS), str(HELPERS.parents[1])]

import clusters  # noqa: E402
import psutil  # noqa: E402
import stand_in_workers as stand_in  # noqa: E402
from gate_projects import Sample  # noqa: E402

from convbench.asv import project  # noqa: E402
from convbench.cluster import ranges, remote  # noqa: E402
from convbench.common.selection import Selection  # noqa: E402
from convbench.common.terminal import SafeConsole  # noqa: E402
from convbench.run import session  # noqa: E402


def simulate(folder: Path, commits: int, pace: float) -> dict[str, float]:
    """The figures of one range of so many commits, of which a class takes `pace` seconds in the mean."""
    sample = Sample(folder / "project")
    sample.write({"benchmarks/b.py": "", "sample/__init__.py": ""})
    sample.commit({}, "first")
    lines = "".join(
        f"commit refs/heads/main\ncommitter A <a@b> {1_700_000_000 + i} +0000\ndata 1\n{'x'}\n"
        + (f"from {sample.git('rev-parse', 'HEAD')}\n" if not i else "")
        for i in range(commits - 1)
    )
    subprocess.run(["git", "-C", sample.folder, "fast-import", "--quiet"], input=lines, text=True, check=True)
    sample.git("reset", "--quiet", "--hard")
    memory: list[tuple[float, int]] = []
    published, count = ranges.Range._publish, itertools.count(1)

    def watched(work, *arguments):
        published(work, *arguments)
        if (done := next(count)) % 20 == 0:
            memory.append((done, psutil.Process().memory_info().rss))

    stand_ins = {name: getattr(stand_in, name) for name in ("hello", "receive", "perform")}
    os.environ["PYTHONPATH"] = str(HELPERS)  # the scheduler reads the tasks, too
    with clusters.cluster(folder / "cluster") as machines, mock.patch.multiple(remote, **stand_ins):
        environment = os.environ | clusters.settings()
        command = [sys.executable, stand_in.__file__, machines.address, str(pace)]
        with (folder / "workers.log").open("w") as log:
            workers = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
        try:
            scheduler = psutil.Process(machines.scheduler.pid)
            clusters.wait_until(lambda: machines.logs().count("Register worker") >= stand_in.MACHINES)
            before, start = sum(scheduler.cpu_times()[:2]), time.monotonic()
            own = sum(psutil.Process().cpu_times()[:2])
            request = session.Request(Selection(), "ALL", busy=True)
            with mock.patch.object(ranges.Range, "_publish", watched), (folder / "said").open("w") as said:
                ranges.run(
                    project.find(sample.folder / "asv.conf.json"), request, machines.address, "*", SafeConsole(file=said)
                )
            wall = time.monotonic() - start
            used = sum(scheduler.cpu_times()[:2]) - before
            own = sum(psutil.Process().cpu_times()[:2]) - own
        finally:
            workers.kill()
            workers.wait()
    hashes = sample.git("rev-list", "main").split()
    bounds = []
    for name in (f"kind-{kind}" for kind in range(stand_in.KINDS)):
        work = [
            stand_in.seconds(what, commit, name, pace) * (1 + stand_in.fails(what, commit, name))
            for what in ("build", "measure")
            for commit in hashes
        ]
        bounds.append(sum(work) / (stand_in.MACHINES / stand_in.KINDS))
    fifths = [max(size for done, size in memory if done <= memory[-1][0] * (i + 1) / 5) for i in range(5)]
    stored = len(list(sample.folder.glob("results/*/*-env.json")))
    return {
        "commits": len(hashes),
        "stored": stored,
        "seconds": wall,
        "bound": max(bounds),
        "scheduler": used / wall,
        "client": own / wall,
        **{f"MiB {i + 1}/5": size / 2**20 for i, size in enumerate(fifths)},
    }


if __name__ == "__main__":
    logging.disable()
    count, pace = sys.argv[1:] or ("2000", "1.4")
    with tempfile.TemporaryDirectory() as name:
        for what, value in simulate(Path(name), int(count), float(pace)).items():
            print(f"{what}: {value:.4g}")
