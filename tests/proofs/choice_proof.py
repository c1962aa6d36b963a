"""How good the picks of impls.conv2d are on this machine as if it were unknown, and after impls.tune.

python tests/proofs/choice_proof.py SEED THREADS [COUNT] times torch and all candidates in turn on the named problems and
COUNT random ones (200 unless given), and resumes where it stopped. The measurements of this processor that come with the
package are left out. Problems on which a pick is slow beside torch are measured in two more processes; the best counts.
"""

from __future__ import annotations

import functools
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
import warnings
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[2]))  # for the suite, which is not installed

import impls
from benchmarks.timing import memory, threads
from benchmarks.workloads import random_problems
from benchmarks.workloads.problems import Problem, load_set
from impls.conv2d import arguments, choice, measurements, tuning, wisdom

SETTINGS = tomllib.loads((Path(__file__).parents[2] / "benchmarks" / "commands" / "tune.toml").read_text(encoding="utf-8"))
SECONDS, ROUNDS, BLOCK = 0.25, 5, 2e-3
TUNING_SECONDS = 0.2
LIMITS = {"shipped": 0.9, "rules": 0.9, "tuned": 0.97}


def main(seed, count, several=200):
    named = [problem.label for name in SETTINGS["sets"] for problem in load_set(name).values()]
    named = list(dict.fromkeys(named))
    labels = list(dict.fromkeys([*named, *(problem.label for problem in random_problems.generate(several, seed))]))
    found = [process(seed, count, 1, labels)]
    close = [label for label in labels if any(ratio(found[0][label], way) < least for way, least in LIMITS.items())]
    found += [process(seed, count, number, close) for number in (2, 3)]
    print(f"{len(labels)} problems, seed {seed}, {count} thread(s), without the times of {measurements.processor()}")
    for way, least in LIMITS.items():
        ratios = {label: max(ratio(each[label], way) for each in found if label in each) for label in labels}
        behind = {label: found[0][label][way] / found[0][label]["fastest"] for label in labels}
        means = [math.exp(statistics.fmean(math.log(ratios[label]) for label in some)) for some in (labels, named)]
        near = statistics.fmean(late <= 1.1 for late in behind.values())
        print(f"{way}: {means[0]:.2f}x torch, named {means[1]:.2f}x; within 10 % of the fastest {near:.1%}")
        slow = sorted(label for label in labels if ratios[label] < least)
        print(f"  under {least}x in three processes: {len(slow)}", *(f"{label} {ratios[label]:.3f}x" for label in slow))
        for label in sorted(labels, key=behind.__getitem__)[:-9:-1]:
            names = found[0][label]["names"]
            print(f"  {label}: {names[way]} takes {behind[label]:.2f} times as long as {names['fastest']}")


def ratio(found, way):
    return found["torch"] / found[way]


def process(seed, count, number, labels):
    """What a process of its own measured of some problems; what is missing is measured now."""
    file = Path(".convbench", "choice", f"{seed}-{count}-{number}.jsonl")
    file.parent.mkdir(parents=True, exist_ok=True)
    known = dict(map(json.loads, file.read_text().splitlines())) if file.is_file() else {}
    if missing := [label for label in labels if label not in known]:
        subprocess.run([sys.executable, __file__, "measure", str(file), str(count), *missing], check=True)
        return process(seed, count, number, labels)
    return {label: known[label] for label in labels}


def measure(file, count, *labels):
    """Of each problem the seconds of torch, of the fastest, and of each way's pick."""
    memory.keep_freed_memory()
    for name in SETTINGS["candidates"]:
        impls.load(name)  # with its pools of threads
    threads.set_pools(int(count))
    measurements.processor = lambda: "another"
    tuning.SECONDS = TUNING_SECONDS
    with tempfile.TemporaryDirectory() as folder:
        wisdom._path = functools.cache(lambda _: Path(folder) / "impls" / "wisdom" / "one.json")
        warnings.simplefilter("ignore")
        for label in labels:
            found = one_problem(Problem.parse(label))
            with Path(file).open("a") as lines:
                print(json.dumps([label, found]), file=lines)


def one_problem(problem):
    import torch

    rng = np.random.default_rng(0)
    arrays = [rng.random(shape, np.float32) for shape in (problem.input_shape, problem.weight_shape)]
    asked = measurements.problem(problem.input_shape, problem.weight_shape, **problem.arguments)
    settings = problem.stride, problem.padding, problem.dilation, problem.groups
    calls = {"torch": functools.partial(torch.nn.functional.conv2d, *map(torch.from_numpy, arrays), None, *settings)}
    picks = {
        way: choice.choose(asked, arguments.thread_count(), source=way).implementation.name for way in ("shipped", "rules")
    }
    picks["tuned"] = impls.tune(*arrays, **problem.arguments).implementation.name
    for name in {*SETTINGS["candidates"], *picks.values()}:
        if choice.computes(name, asked, False):
            calls[name] = functools.partial(impls.load(name), *arrays, **problem.arguments)
    seconds = in_turn(calls, {"torch", *picks.values()})
    fastest = min(seconds, key=seconds.__getitem__)
    names = {**picks, "fastest": fastest}
    return {"torch": seconds["torch"], "names": names, **{way: seconds[name] for way, name in names.items()}}


def in_turn(calls, kept):
    """The median seconds of each call; what takes over twice as long as the fastest is not timed on."""
    for call in calls.values():
        call()
    first = {name: clock(call, 1) for name, call in calls.items()}
    samples = {name: [] for name in calls if name in kept or first[name] < 2 * min(first.values())}
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or min(map(len, samples.values())) < ROUNDS:
        for name, each in samples.items():
            each.append(clock(calls[name], max(1, round(BLOCK / first[name]))))
    return {name: statistics.median(each) for name, each in samples.items()}


def clock(call, count):
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        measure(*sys.argv[2:])
    else:
        main(*map(int, sys.argv[1:]))
