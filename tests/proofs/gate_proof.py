"""The accuracy and cost of the gate on this machine: `make gate-proof`, an hour, resumable.

24 gates of 24 cells: 16 of identical commits, 4 in which two of four implementations are 5 % slower, 4 in which they are
10 % slower; after each of the first six, `asv continuous` on the same two commits. Then 10 gates of 10 cells with memory and
other values, of which two have four that are 5 % larger; and 3 gates of 8 cells in three shards each. Every report is kept
in the folder named as the first argument (.convbench/gate-proof), and a second call resumes where the first stopped. Further
arguments are the parts to run: times, values, shards. Prints the tables that docs/gate.md has.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median

from gate_projects import Sample
from tabulate import tabulate

from convbench.asv import machine

REQUIREMENTS = {"numba": "0.68.1", "numpy": "2.4.6", "scipy": "1.17.1"}
KINDS = ["same", "same", "5", "same", "same", "10"] * 4
BESIDE = 6  # of these have asv continuous beside them
SLOWED = ("jitted", "shifted")
KINDS_OF_VALUES = ["same", "same", "5", "same", "same"] * 2
GROWN = ("peakmem_ones", "track_size")  # values that are larger on such a head
KINDS_OF_SHARDED = ["same", "10", "same"]
SHARDS = 3
SMALL = "64, "  # of the sizes, those that are measured in shards
TINY = 10e-6  # seconds below which a slow-down need not be found

# Four implementations of one-channel convolution; `slow` spins for a share of a call's own time, as a worse commit would.
CODE = """
import time

import numba
import numpy as np
import scipy.fft

SHARE = {share}


def slow(function):
    if not SHARE or function.__name__ not in {slowed}:
        return function

    def slowed(image, weight):
        start = time.perf_counter()
        output = function(image, weight)
        end = time.perf_counter()
        end += SHARE * (end - start)
        while time.perf_counter() < end:
            pass
        return output

    return slowed


@numba.njit(cache=True, fastmath=True)
def _loops(image, weight):
    rows, columns = weight.shape
    output = np.zeros((image.shape[0] - rows + 1, image.shape[1] - columns + 1), image.dtype)
    for i in range(output.shape[0]):
        for r in range(rows):
            for s in range(columns):
                for j in range(output.shape[1]):
                    output[i, j] += image[i + r, j + s] * weight[r, s]
    return output


@slow
def jitted(image, weight):
    return _loops(image, weight)


@slow
def windows(image, weight):
    return np.tensordot(np.lib.stride_tricks.sliding_window_view(image, weight.shape), weight, 2)


@slow
def shifted(image, weight):
    height, width = (n - k + 1 for n, k in zip(image.shape, weight.shape))
    output = np.zeros((height, width), image.dtype)
    for r, s in np.ndindex(weight.shape):
        output += image[r : r + height, s : s + width] * weight[r, s]
    return output


@slow
def fft(image, weight):
    shape = [scipy.fft.next_fast_len(n + k - 1, True) for n, k in zip(image.shape, weight.shape)]
    product = scipy.fft.rfft2(image, shape) * scipy.fft.rfft2(weight[::-1, ::-1], shape)
    r, s = weight.shape
    return scipy.fft.irfft2(product, shape)[r - 1 : image.shape[0], s - 1 : image.shape[1]]
"""

SUITE = """
import functools

import numpy as np
import sample


@functools.cache
def arrays(size, kernel):
    generator = np.random.default_rng(0)
    return [generator.random((n, n), np.float32) for n in (size, kernel)]


class Convolution:
    params = (["jitted", "windows", "shifted", "fft"], [64, 256, 1024], [3, 7])
    param_names = ["implementation", "size", "kernel"]

    def time_convolve(self, implementation, size, kernel):
        return getattr(sample, implementation)(*arrays(size, kernel))
"""


# Values that repeat, that are drawn anew in every process, and that follow its hash seed. The size is that of the package.
VALUES = """
import random

import numpy as np
import sample


class Memory:
    params = [64, 256]
    param_names = ["mib"]

    def peakmem_ones(self, mib):
        np.ones(int(mib * (1 + sample.SHARE) * 2**17))


class Numbers:
    params = [1, 2]
    param_names = ["n"]

    def track_size(self, n):
        return 1000 * n * (1 + sample.SHARE)

    def track_drawn(self, n):
        return random.SystemRandom().gauss(100, 3 * n)

    def track_either(self, n):
        return random.SystemRandom().choice([100, 100 + 20 * n])

    def track_hashed(self, n):
        return hash(str(n)) % 1000
"""


def main(folder: Path, parts: list[str]) -> None:
    """Make the projects once, every run that is not there yet, and the tables."""
    if {"times", "shards"} & set(parts):
        sample = Sample(folder / "project", REQUIREMENTS)
        commits = commits_of(sample, folder / "commits.json", {"benchmarks/convolution.py": SUITE}, code)
    if "times" in parts:
        for number, kind in enumerate(KINDS):
            gate(folder, sample, commits, f"gate-{number:02}-{kind}", kind)
            if number < BESIDE:
                continuous(folder, sample, commits, f"asv-{number:02}-{kind}", kind)
        report(folder)
    if "values" in parts:
        of_values = Sample(folder / "values", {"numpy": REQUIREMENTS["numpy"]})
        grown = commits_of(of_values, folder / "commits-values.json", {"benchmarks/values.py": VALUES}, "SHARE = {}\n".format)
        for number, kind in enumerate(KINDS_OF_VALUES):
            gate(folder, of_values, grown, f"values-{number:02}-{kind}", kind)
        report_part(folder, "values", lambda cell: cell["benchmark"].rpartition(".")[2] in GROWN)
    if "shards" in parts:
        for number, kind in enumerate(KINDS_OF_SHARDED):
            sharded(folder, sample, commits, f"shards-{number:02}-{kind}", kind)
        report_part(folder, "shards", lambda cell: named(cell["params"][0]) in SLOWED)


def commits_of(sample: Sample, file: Path, suite: dict[str, str], package: Callable[[float], str]) -> dict[str, str]:
    """The hashes of the base and of a head of each kind, which are made once. package: its code, changed by a share."""
    if not file.is_file():
        commits = {"base": sample.commit({**suite, "sample/__init__.py": package(0.0)}, "base")}
        for kind, share in (("same", 0.0), ("5", 0.05), ("10", 0.10)):
            sample.git("checkout", "--quiet", "-b", f"kind-{kind}", commits["base"])
            commits[kind] = sample.commit({"sample/__init__.py": package(share), "kind.txt": kind}, kind)
        file.write_text(json.dumps(commits), encoding="utf-8")
    return json.loads(file.read_text(encoding="utf-8"))


def code(share: float) -> str:
    """The package, with SLOWED made slower by a share."""
    return CODE.format(share=share, slowed=SLOWED)


def gate(folder: Path, sample: Sample, commits: dict[str, str], name: str, kind: str) -> None:
    """Run one gate, unless its report exists."""
    file = folder / f"{name}.json"
    if not file.is_file():
        measured(file, sample, commits["base"], commits[kind])


def sharded(folder: Path, sample: Sample, commits: dict[str, str], name: str, kind: str) -> None:
    """Run one gate in shards and merge their reports, unless they exist."""
    parts = [folder / f"part-{name}-{place}.json" for place in range(1, SHARDS + 1)]
    for place, part in enumerate(parts, 1):
        if not part.is_file():
            measured(part, sample, commits["base"], commits[kind], "--bench", SMALL, "--shard", f"{place}/{SHARDS}")
    if not (folder / f"{name}.json").is_file():
        measured(folder / f"{name}.json", sample, "--merge", *map(str, parts))


def measured(file: Path, sample: Sample, *arguments: str) -> None:
    """Run a gate and keep its report, with the seconds that all of it took."""
    new, start = file.with_name("new.json"), time.monotonic()
    every = [] if "--merge" in arguments else ["--all"]
    command = [sys.executable, "-m", "convbench", "gate", *arguments, *every, "--json", str(new)]
    done = subprocess.run(command, cwd=sample.folder, check=False, capture_output=True, text=True)
    content = json.loads(new.read_text(encoding="utf-8"))
    # What took the time of a merged report was measured in its shards.
    content["wall"] = content["seconds"] if "--merge" in arguments else round(time.monotonic() - start, 1)
    file.write_text(json.dumps(content), encoding="utf-8")
    new.unlink()
    print(f"{file.stem}: status {done.returncode}, {content['wall']:.0f} s, {content['summary']}", flush=True)


def continuous(folder: Path, sample: Sample, commits: dict[str, str], name: str, kind: str) -> None:
    """Run asv continuous once, unless its result exists."""
    file, start = folder / f"{name}.json", time.monotonic()
    if file.is_file():
        return
    subprocess.run(["asv", "machine", "--yes"], cwd=sample.folder, check=True, capture_output=True)
    command = ["asv", "continuous", "--interleave-rounds", "--factor", "1.05", commits["base"], commits[kind]]
    done = subprocess.run(command, cwd=sample.folder, check=False, capture_output=True, text=True)
    changed = re.findall(r"^\| ([+-]) .*convolution\.Convolution\.time_convolve\((.*?)\)", done.stdout, re.MULTILINE)
    content = {"status": done.returncode, "wall": round(time.monotonic() - start, 1), "changed": changed}
    file.write_text(json.dumps(content), encoding="utf-8")
    print(f"{name}: status {done.returncode}, {content['wall']:.0f} s, {len(changed)} of 24 cells called changed", flush=True)


def report(folder: Path) -> None:
    """The tables of docs/gate.md."""
    runs = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for part in ("gate", "asv")
        for path in sorted(folder.glob(f"{part}-*-*.json"))
    }
    lines = []
    for kind in ("same", "5", "10"):
        gates = [run for name, run in runs.items() if name.startswith("gate-") and name.endswith(f"-{kind}")]
        counted = [count(run, kind) for run in gates]
        alarms, unchanged, found, slowed, small, ambiguous, missed = map(sum, zip(*counted, strict=True))
        walls = sorted(run["wall"] for run in gates)
        lines.append(
            [
                "identical" if kind == "same" else f"half are {kind} % slower",
                len(gates),
                f"{alarms} of {unchanged}",
                f"{found} of {slowed}" if slowed else "",
                missed if slowed else "",
                small if slowed else "",
                ambiguous,
                f"{walls[len(walls) // 2]:.0f} ({walls[0]:.0f} to {walls[-1]:.0f})",
            ]
        )
    print(f"\n{machine.name()}, by `make gate-proof`\n")
    headings = ["commits", "gates", "false alarms", "found", "called same", "under 10 us", "ambiguous", "seconds (range)"]
    print(tabulate(lines, headings, tablefmt="github"))
    beside = []
    for number, kind in enumerate(KINDS[:BESIDE]):
        asv, ours = runs[f"asv-{number:02}-{kind}"], runs[f"gate-{number:02}-{kind}"]
        slowed = SLOWED if kind != "same" else ()
        worse = [name for sign, name in asv["changed"] if sign == "+" and named(name) in slowed]
        wrong = len(asv["changed"]) - len(worse)
        alarms, unchanged, found, of, *_ = count(ours, kind)
        beside.append([kind, f"{asv['wall']:.0f}", wrong, len(worse), f"{ours['wall']:.0f}", alarms, found, of, unchanged])
    headings = ["slower by %", "asv s", "asv false", "asv found", "gate s", "gate false", "gate found", "of", "unchanged"]
    print("\n" + tabulate(beside, headings, tablefmt="github"))


def report_part(folder: Path, part: str, is_changed: Callable[[dict], bool]) -> None:
    """The row of docs/gate.md for values, or for shards. is_changed: whether the heads of other kinds change a cell."""
    gates = [(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob(f"{part}-*-*.json"))]
    changed, unchanged, walls = Counter(), Counter(), [run["wall"] for _, run in gates]
    for name, run in gates:
        for cell in run["cells"]:
            is_one = is_changed(cell) and not name.endswith("-same")
            (changed if is_one else unchanged)[cell["verdict"]] += 1
    alarms = unchanged["regressed"] + unchanged["improved"]
    found = f"{changed['regressed']} of {changed.total()}"
    ambiguous = changed["ambiguous"] + unchanged["ambiguous"]
    row = [part, len(gates), f"{alarms} of {unchanged.total()}", found, changed["same"], ambiguous]
    headings = [machine.name(), "gates", "false alarms", "found", "called same", "ambiguous", "seconds (range)"]
    print(tabulate([[*row, f"{median(walls):.0f} ({min(walls):.0f} to {max(walls):.0f})"]], headings, tablefmt="github"))


def named(params: str) -> str:
    """The implementation in a cell's parameters."""
    return params.split(",")[0].strip("' ")


def count(run: dict, kind: str) -> tuple[int, ...]:
    """False alarms, unchanged cells; found, slowed cells of TINY and up; slowed ones below; ambiguous; called the same."""
    slowed = [cell for cell in run["cells"] if kind != "same" and named(cell["params"][0]) in SLOWED]
    unchanged = [cell for cell in run["cells"] if cell not in slowed]
    large = [cell for cell in slowed if (cell["before"] or 0) >= TINY]
    alarms = [cell for cell in unchanged if cell["verdict"] in ("regressed", "improved")]
    found = [cell for cell in large if cell["verdict"] == "regressed"]
    missed = [cell for cell in large if cell["verdict"] == "same"]
    ambiguous = [cell for cell in run["cells"] if cell["verdict"] == "ambiguous"]
    return len(alarms), len(unchanged), len(found), len(large), len(slowed) - len(large), len(ambiguous), len(missed)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ".convbench/gate-proof").resolve()
    target.mkdir(parents=True, exist_ok=True)
    main(target, sys.argv[2:] or ["times", "values", "shards"])
