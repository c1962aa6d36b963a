"""Gates on two workers pinned to a core each: `python tests/proofs/cluster_gate_proof.py [GATES]`, ten minutes.

24 cells as in gate_proof.py, of identical commits five times, then of one in which half are 10 % slower, with the libraries
that are installed. Prints false alarms, found slow-downs and seconds, beside a gate on one worker.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HELPERS = Path(__file__).parents[1] / "helpers"
sys.path[:0] = [str(HELPERS), str(Path(__file__).parent)]

import clusters  # noqa: E402
import gate_proof  # noqa: E402
from gate_projects import Sample  # noqa: E402
from runs import use_preinstalled  # noqa: E402


def main(folder: Path, count: int) -> None:
    """Make the project, and gate it on one worker and on two."""
    sample = Sample(folder / "project")
    sample.write({"asv.conf.json": use_preinstalled(sample)})
    suite = {"benchmarks/convolution.py": gate_proof.SUITE}
    commits = gate_proof.commits_of(sample, folder / "commits.json", suite, gate_proof.code)
    for cores, kinds in (((0, 1), ["same"] * count + ["10"]), ((0,), ["same"])):
        with clusters.cluster(folder / f"on-{len(cores)}") as machines:
            for core in cores:
                worker = machines.add(f"core-{core}")
                subprocess.run(["taskset", "--all-tasks", "--cpu-list", "--pid", str(core), str(worker.pid)], check=True)
            clusters.wait_until(lambda: machines.logs().count("Register worker addr") == len(cores))  # noqa: B023
            for kind in kinds:
                gate(sample, commits, kind, machines)


def gate(sample: Sample, commits: dict[str, str], kind: str, machines: clusters.Cluster) -> None:
    """Run one gate and print what it found."""
    file, start = machines.folder / "report.json", time.monotonic()
    sides = commits["base"], commits[kind]
    command = [sys.executable, "-m", "convbench", "gate", *sides, "--all", "--json", str(file), "--cluster", machines.address]
    done = subprocess.run(command, cwd=sample.folder, check=False, capture_output=True, text=True)
    content = json.loads(file.read_text(encoding="utf-8"))
    alarms, unchanged, found, slowed, _, ambiguous, _ = gate_proof.count(content, kind)
    wall = time.monotonic() - start
    said = f"{alarms} of {unchanged} false, {found} of {slowed} found, {ambiguous} ambiguous, {wall:.0f} s"
    print(f"{content['machine']['machine']}, {kind}: status {done.returncode}, {said}; {content['summary']}", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name), int(sys.argv[1]) if sys.argv[1:] else 5)
