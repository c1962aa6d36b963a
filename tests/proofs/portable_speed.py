"""Times impls.conv2d of two installations in turn, over the named sets: python portable_speed.py NATIVE PORTABLE [SECONDS].

NATIVE, PORTABLE: folders that impls was installed into, by pip install --target. Prints a line for each problem, its time by
each and their ratio, over 1 where the portable one is faster; at last the geometric mean and the slowest. SECONDS: for a
problem, 2 unless given. One thread; IMPLS_CPU holds for the portable one.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
SETS = ("deepbench", "filters", "mnist", "mobilenet", "resnet50", "unet", "vgg16")
MIN_BLOCK_SECONDS = 0.01
MIN_ROUNDS = 7


def worker() -> None:
    """Answers each line of standard input, a problem and a number of calls, with the seconds that a call took."""
    import numpy as np

    import impls
    from benchmarks.workloads.problems import Problem

    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # both sides on one core, since cores differ by their neighbours
    label, x, w, problem = "", None, None, None
    for line in sys.stdin:
        asked, calls = json.loads(line)
        if asked != label:
            label, problem, generator = asked, Problem.parse(asked), np.random.default_rng(0)
            x, w = (generator.standard_normal(shape, np.float32) for shape in (problem.input_shape, problem.weight_shape))
            impls.conv2d(x, w, **problem.arguments)
        begin = time.perf_counter()
        for _ in range(calls):
            impls.conv2d(x, w, **problem.arguments)
        print((time.perf_counter() - begin) / calls, flush=True)


def start(folder: str, **environment: str) -> subprocess.Popen[str]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    site = next(path for path in sys.path if path.endswith("site-packages"))
    search = {"PYTHONPATH": os.pathsep.join([folder, site, str(ROOT)])}
    command = [sys.executable, "-S", "-P", __file__, "worker"]  # without the site module, no editable impls is found first
    return subprocess.Popen(
        command,
        env={**os.environ, **threads, **search, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(process: subprocess.Popen[str], label: str, calls: int) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps([label, calls]), file=process.stdin, flush=True)
    return float(process.stdout.readline())


def compare(both: list[subprocess.Popen[str]], label: str, seconds: float) -> float:
    """The ratio of a problem's median times; prints its line."""
    once = min(ask(both[0], label, 1) for _ in range(3))
    calls = max(1, math.ceil(MIN_BLOCK_SECONDS / once))
    rounds = max(MIN_ROUNDS, round(seconds / (2 * calls * once)))
    times: list[list[float]] = [[], []]
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 else (1, 0):
            times[which].append(ask(both[which], label, calls))
    native, portable = map(statistics.median, times)
    print(f"{label:40} {native * 1e6:10.1f} us {portable * 1e6:10.1f} us {native / portable:6.3f}", flush=True)
    return native / portable


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from benchmarks.workloads.problems import load_set

    native, portable, *rest = sys.argv[1:]
    seconds = float(rest[0]) if rest else 2.0
    labels = list(dict.fromkeys(problem.label for name in SETS for problem in load_set(name).values()))
    ratios = in_two_processes(native, portable, labels, seconds)
    # Others again, since a process keeps the memory that it has: what was off by chance is not so twice.
    slow = [label for label, ratio in ratios.items() if ratio < 0.95]
    again = in_two_processes(native, portable, slow, 3 * seconds)
    ratios |= {label: max(ratios[label], again[label]) for label in slow}
    worst = min(ratios, key=ratios.__getitem__)
    mean = statistics.geometric_mean(ratios.values())
    print(f"{len(ratios)} problems: {mean:.3f} in the mean, at worst {ratios[worst]:.3f} ({worst})")


def in_two_processes(native: str, portable: str, labels: list[str], seconds: float) -> dict[str, float]:
    """The ratio of each problem."""
    both = [start(native, IMPLS_CPU=""), start(portable)]
    ratios = {label: compare(both, label, seconds) for label in labels}
    for process in both:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
    return ratios


if __name__ == "__main__":
    worker() if sys.argv[1:] == ["worker"] else main()
