"""What a simple prediction between measured problems costs: each machine's problems predicted by those of the four others.

python tests/proofs/between_problems.py prints the shares of docs/auto.md, of held-out problems on which the pick is within
10 % of the fastest. It reads the times of `convbench tune` in results/. A problem that is predicted is left out of every
machine's, and an implementation that could not compute it at a machine's commit is unknown there.

nearest: the mean of the 16 nearest problems, weighted by their distance to the power of -3, as impls/conv2d/choice.py has it.
regression: the Gaussian process that was used before, with its thirteen fitted weights. itself: the times of the same problem
on the other machines, which neither can know. rules: impls/conv2d/rules.py alone. own: by the machine's own
other problems.
"""

import math
import sys
import tomllib
from pathlib import Path

import numpy as np
from tabulate import tabulate

sys.path.append(str(Path(__file__).parents[2]))  # for the suite, which is not installed

from benchmarks.workloads.problems import Problem
from convbench.speed import goals, times_file, tuning
from impls.conv2d import measurements, rules

ROOT = Path(__file__).parents[2]
SETTINGS = ROOT / "benchmarks" / "commands" / "tune.toml"
MACHINES = {one["processor"]: one["times"] for one in tomllib.loads(SETTINGS.read_text(encoding="utf-8"))["machine"]}
NAMES = [f"cpu.{name}" for name in ("torch", "cython_direct", "cython_packed", "cython_winograd")]
NAMES += [f"cpu.{name}" for name in ("numba_direct", "numba_winograd", "opencv")]
LATE = 3.0  # times the fastest: what counts for whatever took longer
NEAREST, POWER, MIN_DISTANCE = 16, 3, 0.2
# Of the regression: a unit of each feature, the variance of a measurement, and of what unfilled blocks change everywhere.
FITTED = (0.10, 0.29, 0.04, 0.085, 0.03, 0.09, 0.20, 0.28, 0.19, 0.25, 0.15, 0.015, 0.045)
NOISE_VARIANCE, TREND_VARIANCE = 0.10, 0.1


def main():
    times = {name: read(ROOT / "results" / path) for name, path in MACHINES.items()}
    problems = [Problem.parse(label) for label in sorted({label for each in times.values() for label, _ in each})]
    logs = {name: np.array([row(each, problem.label) for problem in problems]) for name, each in times.items()}
    plain = distances([plain_place(problem) for problem in problems])
    fitted = [fitted_place(problem) for problem in problems]
    unfilled = np.array([fillings(problem) for problem in problems])
    covariance = np.exp(-distances(fitted)) + TREND_VARIANCE * unfilled @ unfilled.T
    ruled = np.array([by_rule(problem) for problem in problems])
    shares = []
    for name, own in logs.items():
        rest = [each for other, each in logs.items() if other != name]
        four, itself = mean_of(np.concatenate(rest, axis=1)), mean_of(own)
        ways = [nearest(four, plain), regression(four, covariance), four, ruled]
        ways += [nearest(itself, plain), regression(itself, covariance)]
        shares.append([name, *(near(own, expected) for expected in ways)])
    mean = np.mean([each[1:] for each in shares], axis=0)
    rows = [[name, *(f"{share:.1%}" for share in each)] for name, *each in [*shares, ["mean", *mean]]]
    print(
        tabulate(rows, ["", "nearest", "regression", "itself", "rules", "own, nearest", "own, regression"], tablefmt="github")
    )


def read(path):
    """The seconds of each problem and number of threads, and which implementations did not support it."""
    lines = times_file.read(path)
    if not lines:
        sys.exit(f"{path} has no times")
    labels = list(dict.fromkeys(label for label, _ in lines))
    seconds = tuning._times(lines, goals.THREADS, labels)
    return {(label, threads): (seconds[threads][label], unsupported(lines[label, threads][0])) for label, threads in lines}


def unsupported(line):
    return {cell["name"] for cell in line["cells"] if cell.get("reason", "").startswith(("unsupported", "unavailable"))}


def row(times, label):
    """With each number of threads, by the logarithms of times over the fastest's; NaN if unknown."""
    found = [times.get((label, threads), ({}, NAMES)) for threads in goals.THREADS]
    return [[late(name, seconds, without) for name in NAMES] for seconds, without in found]


def late(name, seconds, without):
    return math.nan if name in without else math.log(min(LATE, seconds.get(name, math.inf) / min(seconds.values())))


def mean_of(logs):
    """The mean of what is known of each problem and name."""
    known = (~np.isnan(logs)).sum(axis=1)
    return np.where(known, np.nan_to_num(logs).sum(axis=1) / np.maximum(known, 1), np.nan)


def by_rule(problem):
    """Logarithms in the order that the rules try implementations in."""
    found = rules.rule(measurements.problem(problem.input_shape, problem.weight_shape, **problem.arguments))
    order = list(dict.fromkeys([*found.names, *rules.REST]))
    return [order.index(name) if name in order else len(order) for name in NAMES]


def distances(places):
    places = np.array(places, float)
    return abs(places[:, None] - places).sum(axis=2)


def nearest(known, distance):
    """Each problem's by the nearest others."""
    there = np.flatnonzero(~np.isnan(known).all(axis=1))
    apart = np.where(np.equal.outer(np.arange(len(known)), there), np.inf, distance[:, there])
    order = apart.argsort(axis=1, kind="stable")[:, :NEAREST]
    weights = 1 / (np.take_along_axis(apart, order, axis=1) + MIN_DISTANCE) ** POWER
    found = known[there][order]
    shares = weights[:, :, None] * ~np.isnan(found)
    return (shares * np.nan_to_num(found)).sum(axis=1) / np.maximum(shares.sum(axis=1), 1e-9)


def regression(known, covariance):
    """Each problem's by all others (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, equation 5.12)."""
    there = np.flatnonzero(~np.isnan(known).all(axis=1))
    taken = np.nan_to_num(known[there], nan=math.log(LATE))
    inverse = np.linalg.inv(covariance[np.ix_(there, there)] + NOISE_VARIANCE * np.eye(len(there)))
    mean = taken.mean(axis=0)
    drawn = inverse @ (taken - mean)
    found = mean + covariance[:, there] @ drawn
    found[there] = taken - drawn / inverse.diagonal()[:, None]
    return found


def near(own, expected):
    """On what share of a machine's measurements the pick is within 10 % of the fastest."""
    good = []
    for times, wanted in zip(own, expected, strict=True):
        for each in times:
            if not np.isnan(each).all():
                good.append(each[np.where(np.isnan(each) | np.isnan(wanted), np.inf, wanted).argmin()] <= math.log(1.1))
    return np.mean(good)


def plain_place(problem):
    n, _, rows, columns = problem.output_shape
    outputs, channels, *kernel = problem.weight_shape
    places = channels, outputs / problem.groups, max(1, n) * rows * columns, columns, math.prod(kernel)
    return [*map(math.log2, (*places, problem.stride**2, problem.dilation**2)), 3 * transformed(problem)]


def fitted_place(problem):
    n, _, rows, columns = problem.output_shape
    outputs, channels, *kernel = problem.weight_shape
    pieced = transformed(problem) and kernel != [3, 3]
    logs = channels, outputs / problem.groups, problem.groups, max(1, n) * rows * columns, columns, math.prod(kernel)
    features = [*map(math.log2, (*logs, problem.stride**2, problem.dilation**2)), transformed(problem)]
    features += [pieced and max(0, math.log2(channels * math.prod(kernel) / 4000)), kernel == [1, 1], channels % 8 != 0]
    return np.multiply(FITTED, [*features, channels == outputs // problem.groups == 1])


def fillings(problem):
    """log2 of the size of whole blocks over what is needed of them: lanes along a row and along outputs, Winograd's tiles."""
    *_, rows, columns = problem.output_shape
    side = 4 * max(1, round(problem.dilation / problem.stride))
    lanes = spare(columns, 16), spare(problem.k // problem.groups, 16)
    return [*lanes, spare(rows, side) + spare(columns, side)]


def spare(count, block):
    return math.log2(-(-count // block) * block / count)


def transformed(problem):
    """Whether cpu.cython_winograd computes it with far fewer products."""
    kernel, ratio = {problem.r, problem.s}, problem.dilation / problem.stride
    if min(kernel) < 3 or max(kernel) > 11 or ratio not in (0.5, 1, 2, 3, 4):
        return False
    return kernel != {3} or ratio >= 1


if __name__ == "__main__":
    main()
