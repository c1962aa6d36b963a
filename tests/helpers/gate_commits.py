"""Another project, in commits that a gate must distinguish, and an instant build of them.

`python tests/helpers/gate_commits.py PYTHON ARGUMENTS` is `convbench ARGUMENTS` with that build, in the interpreter PYTHON.
"""

import contextlib
import functools
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import psutil

from convbench.cli.main import main
from convbench.gate import accept, build

# Times are spun rather than computed: they are the same on any machine, and a change of 60 % is one.
CODE = """
import os, signal, sys, time

import numpy as np


def spin(microseconds):
    end = time.perf_counter() + microseconds / 1e6
    while time.perf_counter() < end:
        pass


def filled(n, value=1.0):
    spin(200)
    return np.full(n, value)


def broken():
    return filled(3)


def answer():
    return filled(5)


def missing():
    return filled(4)


def announce():
    pass


def available(n):
    return True


raises = hangs = dies = gone = broken
"""
# What a head may do without failing; and what it may not.
HARMLESS = """

def answer():
    return filled(5, 1.0 + 1e-3)


def missing():
    return filled(4, np.nan)


def newest():
    return filled(2)


def announce(said=[]):
    if not said:
        said.append(True)
        for stream in (sys.stdout, sys.stderr):
            stream.write("x" * 20_000_000 + "\\n")
            stream.flush()
"""
BREAKING = """

def raises():
    raise ValueError("not today")


def hangs():
    while True:
        time.sleep(1)


def dies():
    os.kill(os.getpid(), signal.SIGKILL)


def available(n):
    return n < 20


del gone
"""
SLOWER = CODE.replace("spin(200)", "spin(320)")

KINDS = """
import numpy as np
import sample
from asv_runner.benchmarks.mark import skip_for_params


class Filled:
    params = ([10, 20], ["a", "b|c"])
    param_names = ["n", "kind"]
    sample_time = 0.002

    def setup(self, n, kind):
        if not sample.available(n) or kind == "b|c" and n == 10:
            raise NotImplementedError("not of this kind")
        self.n = n

    def time_filled(self, n, kind):
        return sample.filled(self.n)

    @skip_for_params([(20, "a"), (20, "b|c")])
    def time_skipped(self, n, kind):
        return sample.filled(self.n)

    def track_length(self, n, kind):
        return len(sample.filled(self.n))

    def peakmem_filled(self, n, kind):
        sample.filled(self.n)


class Cached:
    sample_time = 0.002

    def setup_cache(self):
        return {"n": 30}

    def time_cached(self, cache):
        return sample.filled(cache["n"])


class EachCall:
    number = 1
    sample_time = 0.002

    def setup(self):
        self.values = [2, 1]

    def time_sort(self):
        assert self.values == [2, 1]
        sample.spin(200)
        self.values.sort()


def timeraw_spin():
    return "sample.spin(2000)", "import sample"


def time_plain():
    sample.spin(200)


time_plain.sample_time = 0.002
"""
HEALTH = """
import os

import numpy as np
import sample


class Answers:
    sample_time = 0.002

    def setup(self):
        sample.announce()

    def time_filled(self):
        return sample.filled(6)

    def time_answer(self):
        return sample.answer()

    def time_missing(self):
        return sample.missing()

    def time_nan_on_both(self):
        return sample.filled(3, float("nan"))


class Where:
    sample_time = 0.002

    def setup(self):
        small, large = np.empty(100), np.empty(1 << 19)
        if path := os.environ.pop("WHERE", None):  # once in a process
            with open(path, "a") as file:
                print(small.ctypes.data, large.ctypes.data, file=file)

    def time_where(self):
        return sample.filled(7)


class New:
    sample_time = 0.002

    def time_newest(self):
        return sample.newest()
"""
FAULTS = """
import sample


class Faults:
    sample_time = 0.002
    timeout = 1.0

    def time_hangs(self):
        sample.hangs()

    def time_raises(self):
        sample.raises()

    def time_dies(self):
        sample.dies()

    def time_fine(self):
        sample.filled(5)


class Given:
    params = [10, 20]
    param_names = ["n"]
    sample_time = 0.002

    def setup(self, n):
        if not sample.available(n):
            raise NotImplementedError("given up")

    def time_given(self, n):
        sample.filled(n)


class Both:
    def time_both(self):
        raise ValueError("on both sides")
"""
GONE = "from sample import gone\n\n\ndef time_gone():\n    gone()\n"
# Another time in every process: no round settles it.
UNSTEADY = """
import random

import sample

LUCK = random.uniform(50, 1000)


class Unsteady:
    params = list(range(60))
    param_names = ["n"]
    sample_time = 0.002

    def time_unsteady(self, n):
        sample.spin(LUCK)
"""
NEWEST = "from sample import newest\n\n\ndef time_imported():\n    newest()\n"
CELL = "kinds.Filled.time_filled(20, 'a')"


def commit_all(made):
    """Commit what gates compare; the commits by name."""
    suite = {f"benchmarks/{name}.py": text for name, text in {"kinds": KINDS, "health": HEALTH, "faults": FAULTS}.items()}
    suite |= {"benchmarks/gone.py": GONE, "benchmarks/newest.py": NEWEST, "benchmarks/unsteady.py": UNSTEADY}
    made.commits = {"base": made.commit({**suite, "sample/__init__.py": CODE}, "base")}
    kinds = {"harmless": CODE + HARMLESS, "breaking": CODE + BREAKING, "slower": SLOWER}
    kinds["without"] = CODE + "\ndel gone\n"
    entry = f'[[accept]]\ncell = "{CELL}"\nreason = "it is right now"\n'
    files = {"twin": {}} | {name: {"sample/__init__.py": code} for name, code in kinds.items()}
    files |= {"accepting": {"sample/__init__.py": SLOWER, accept.FILE: entry}, "malformed": {accept.FILE: "accept = 3\n"}}
    for name, changed in files.items():
        made.git("checkout", "--quiet", "--detach", made.commits["base"])
        made.commits[name] = made.commit(changed, name)
    made.git("checkout", "--quiet", "main")
    return made


def interpreter(folder):
    """One with NumPy and asv_runner alone: where much more is installed, asv_runner takes three times as long to start."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in ("asv_runner", "numpy"):
        found = Path(importlib.util.find_spec(name).origin).parent
        for package in (found, found.with_name(f"{name}.libs")):  # which a wheel with libraries of its own has beside it
            (packages / package.name).symlink_to(package)
    return folder / "bin" / "python"


def stand_in(python, project, commits, work, wanted):
    """Replace build.build: the package is pure Python, so a checkout is a complete build."""
    for side, commit in commits.items():
        shutil.rmtree(work / side, ignore_errors=True)
        (work / side / "numba").mkdir(parents=True)
        checkout = work / side / "checkout"
        checkout.mkdir()
        tree = subprocess.run(["git", "-C", project.source, "archive", commit], check=True, capture_output=True).stdout
        subprocess.run(["tar", "--extract", "--directory", checkout], input=tree, check=True)
        shutil.copytree(checkout / "sample", work / side / "code" / "sample")
    suites = build.find_suites(project, work, commits)
    return {
        side: build.Built(
            work / side,
            str(python),
            {},
            suites["head"],
            suites[side],
            "stand-in",
            wanted.launch_method == "spawn" or project.conf.launch_method == "spawn",
        )
        for side in commits
    }


def built_by(python):
    """Gates in this process build by stand_in()."""
    return mock.patch.object(build, "build", functools.partial(stand_in, python))


def addresses_can_be_set():
    """Whether a process here may have addresses that are not random."""
    return (
        shutil.which("setarch") and not subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False).returncode
    )


def left_behind(folder):
    """Processes that have the project in their command line."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(str(folder) in word for word in process.cmdline()):
                found.append(process.cmdline())
    return found


def report_of(sample, base, head, run, *arguments):
    """A gate of all cells between commits by name: (what it printed, its JSON). run: calls `convbench` in a folder."""
    file = sample.folder.parent / "report.json"
    file.unlink(missing_ok=True)
    hashes = sample.commits[base], sample.commits[head]
    done = run(sample.folder, "gate", *hashes, "--all", "--json", str(file), *map(str, arguments))
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    assert left_behind(sample.folder) == []
    report = json.loads(file.read_text())
    assert report["exit_status"] == done.returncode, done.stderr
    assert (report["base"], report["head"]) == hashes
    assert report["summary"] in done.stdout
    return done, report


def cells(report):
    """The cells of a report by name without module: {name: cell}."""

    def name(cell):
        words = ", ".join(cell["params"])
        return cell["benchmark"].partition(".")[2] + (f"({words})" if words else "")

    found = {name(cell): cell for cell in report["cells"]}
    assert len(found) == len(report["cells"])
    for cell in found.values():
        if cell["verdict"] in ("same", "regressed", "improved"):
            low, high = cell["interval"]
            assert low <= cell["ratio"] <= high
            assert cell["before"] > 0 < cell["after"]
            assert cell["rounds"] >= report["settings"]["first_rounds"]
    return found


if __name__ == "__main__":
    with built_by(sys.argv[1]):
        main(sys.argv[2:], prog_name="convbench")
