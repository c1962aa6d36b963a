"""`convbench gate` on a project that is not ours: real commits, real processes, and what goes wrong with them."""

import contextlib
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest
from gate_projects import Sample

from convbench.common import interrupts
from convbench.gate import accept, judge, workers

SIGNALS = [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
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
NO_BUILD = "# does not build\n"

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
BUDGET = ("--budget", "0.5")
ENOUGH = ("--budget", "2")  # for every round that a cell can need, on a busy machine
FILLED = ("--bench", r"Filled\.time_filled\(20, 'a'\)$")
UNSETTLED = ("--bench", r"Unsteady.*\([1-9]\)$", "--budget", "4")
CELL = "kinds.Filled.time_filled(20, 'a')"


@pytest.fixture(scope="module")
def sample(tmp_path_factory, package_index):
    """One project and one environment for all; the commits by name."""
    made = Sample(tmp_path_factory.mktemp("gate") / "project", {"numpy": "2.4.6"}, tmp_path_factory.mktemp("environments"))
    suite = {f"benchmarks/{name}.py": text for name, text in {"kinds": KINDS, "health": HEALTH, "faults": FAULTS}.items()}
    suite |= {"benchmarks/gone.py": GONE, "benchmarks/newest.py": NEWEST, "benchmarks/unsteady.py": UNSTEADY}
    made.commits = {"base": made.commit({**suite, "sample/__init__.py": CODE}, "base")}
    kinds = {"harmless": CODE + HARMLESS, "breaking": CODE + BREAKING, "slower": SLOWER, "no build": NO_BUILD}
    kinds["without"] = CODE + "\ndel gone\n"
    for name, code in kinds.items():
        made.git("checkout", "--quiet", "--detach", made.commits["base"])
        made.commits[name] = made.commit({"sample/__init__.py": code}, name)
    made.git("checkout", "--quiet", "--detach", made.commits["slower"])
    entry = f'[[accept]]\ncell = "{CELL}"\nreason = "it is right now"\n'
    made.commits["accepting"] = made.commit({accept.FILE: entry}, "accepted")
    made.git("checkout", "--quiet", "main")
    return made


def command(*arguments):
    return [sys.executable, "-m", "convbench", "gate", *map(str, arguments)]


def call(folder, *arguments, **options):
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return subprocess.run(
        command(*arguments), cwd=folder, env=environment, capture_output=True, text=True, timeout=280, check=False, **options
    )


def left_behind(folder):
    """Processes that have the project in their command line."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(str(folder) in word for word in process.cmdline()):
                found.append(process.cmdline())
    return found


def gate(sample, base, head, *arguments, **options):
    """A gate between commits by name: (what it printed, its JSON)."""
    file = sample.folder.parent / "report.json"
    file.unlink(missing_ok=True)
    done = call(sample.folder, sample.commits[base], sample.commits[head], "--json", file, *arguments, **options)
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    assert left_behind(sample.folder) == []
    report = json.loads(file.read_text())
    assert report["exit_status"] == done.returncode, done.stderr
    assert (report["base"], report["head"]) == (sample.commits[base], sample.commits[head])
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
            assert cell["rounds"] >= judge.FIRST
    return found


# Gates


@pytest.fixture(scope="module")
def identical(sample):
    return gate(sample, "base", "base", "--bench", "^kinds", *BUDGET)[1]


def test_identical_commits_pass(identical):
    assert identical["exit_status"] == 0, identical["summary"]
    assert identical["error"] is None
    assert not {cell["verdict"] for cell in identical["cells"]} & {"regressed", "broken"}


def test_every_kind_of_benchmark_is_timed_or_named(identical):
    found = cells(identical)
    timed = {name for name, cell in found.items() if cell["rounds"]}
    assert timed == {
        "Filled.time_filled(10, 'a')",
        "Filled.time_filled(20, 'a')",
        "Filled.time_filled(20, 'b|c')",
        "Filled.time_skipped(10, 'a')",
        "Cached.time_cached",
        "EachCall.time_sort",
        "timeraw_spin",
        "time_plain",
    }
    skipped = {name for name, cell in found.items() if cell["verdict"] == "skipped"}
    assert skipped == found.keys() - timed
    assert len(skipped) == 4
    unread = "benchmarks.newest"
    not_timed = {entry["benchmark"] for entry in identical["not_timed"]}
    assert not_timed == {"kinds.Filled.track_length", "kinds.Filled.peakmem_filled", unread}


def test_times_are_those_of_a_call(identical):
    for name, cell in cells(identical).items():
        expected = 2e-3 if name == "timeraw_spin" else 200e-6
        if cell["rounds"]:
            # Each side's is this one split by the ratio, and in few rounds on a busy machine the ratio may be off.
            assert expected * 0.99 < math.sqrt(cell["before"] * cell["after"]) < expected * 3, name


def test_arrays_are_compared(identical):
    answers = {name: cell["answer"] for name, cell in cells(identical).items() if cell["rounds"]}
    assert {name for name, answer in answers.items() if answer == "same"} == {
        name for name in answers if name.startswith(("Filled", "Cached"))
    }


@pytest.fixture(scope="module")
def harmless(sample):
    return gate(sample, "base", "harmless", "--bench", "^(health|newest)", *BUDGET)


def test_what_a_head_may_do(harmless):
    """Print 20 MB, return NaN, change an answer, add benchmarks."""
    _, report = harmless
    assert report["exit_status"] == 0, report
    assert cells(report)["Answers.time_filled"]["rounds"] >= judge.FIRST
    assert cells(report)["Answers.time_filled"]["answer"] == "same"


def test_answers_stand_beside_the_times(harmless):
    done, report = harmless
    found = cells(report)
    assert found["Answers.time_answer"]["answer"].startswith("changed: by at most 1.0e-03")
    assert found["Answers.time_missing"]["answer"].startswith("changed: NaN")
    assert found["Answers.time_nan_on_both"]["answer"] == "same"
    assert "its answer has changed: by at most 1.0e-03 of the largest value" in done.stdout


@pytest.mark.skipif(
    not shutil.which("setarch") or subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode,
    reason="this machine does not let a process have addresses that are not random",
)
def test_memory_lies_alike_on_both_sides_and_elsewhere_in_every_round(sample, tmp_path, monkeypatch):
    monkeypatch.setenv("WHERE", str(tmp_path / "where"))
    gate(sample, "base", "base", "--bench", "Where", "--budget", "0.1")
    lines = (tmp_path / "where").read_text().splitlines()
    assert len(lines) >= 2 * judge.FIRST
    assert lines[::2] == lines[1::2]
    for places in zip(*map(str.split, lines[::2]), strict=True):
        assert len(set(places)) >= 3


def test_what_the_base_lacks_is_new(harmless):
    done, report = harmless
    newest = cells(report)["New.time_newest"]
    assert newest["verdict"] == "new"
    assert "newest" in newest["reason"]
    assert [entry["benchmark"] for entry in report["not_timed"]] == ["newest.time_imported"]
    assert "newest.time_imported is new" in done.stdout


@pytest.fixture(scope="module")
def breaking(sample):
    return gate(sample, "base", "breaking", "--bench", r"^faults\.(Faults|Given)|^gone", *BUDGET)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("Faults.time_raises", "ValueError: not today"),
        ("Faults.time_hangs", "gave no answer within 6 seconds"),
        ("Faults.time_dies", "killed by SIGKILL"),
        ("Given.time_given(20)", "it is skipped, and on the base it is not"),
        ("time_gone", "cannot be imported any more"),
    ],
)
def test_what_a_head_breaks(breaking, cell, words):
    done, report = breaking
    assert report["exit_status"] == 3
    found = cells(report)
    assert found[cell]["verdict"] == "broken"
    assert words in found[cell]["reason"]
    assert words in done.stdout


def test_what_works_beside_it_is_measured(breaking):
    found = cells(breaking[1])
    for name in ("Faults.time_fine", "Given.time_given(10)"):
        assert found[name]["verdict"] not in ("broken", "not measured"), name
        assert found[name]["rounds"] >= judge.FIRST


def test_a_benchmark_file_that_cannot_be_imported(sample):
    """One that the head alone cannot import fails where nothing was asked for by name; one that neither side can is told."""
    done, report = gate(sample, "base", "without", "--budget", "0.01")
    assert report["exit_status"] == 3
    assert report["error"].startswith("benchmarks.gone cannot be imported with the code of the head: ImportError: ")
    assert report["error"] in done.stdout
    reasons = {entry["benchmark"]: entry["reason"] for entry in report["not_timed"]}
    assert reasons["benchmarks.newest"].startswith("cannot be imported with the code of either side: ImportError: ")


def test_what_fails_on_both_sides(sample):
    done, report = gate(sample, "base", "base", "--bench", "time_both|Faults.time_fine", *BUDGET)
    assert report["exit_status"] == 4
    both = cells(report)["Both.time_both"]
    assert both["verdict"] == "not measured"
    assert both["reason"] == "fails on both sides: ValueError: on both sides"
    assert both["reason"] in done.stdout
    assert cells(report)["Faults.time_fine"]["rounds"] >= judge.FIRST


@pytest.mark.parametrize(
    ("base", "head", "side", "status"), [("base", "no build", "head", 3), ("no build", "base", "base", 4)]
)
def test_a_side_that_does_not_build(sample, base, head, side, status):
    done, report = gate(sample, base, head, *FILLED, *BUDGET)
    assert done.returncode == status
    assert report["error"].startswith(f"the {side} does not build: ")
    assert "the compiler says no" in report["error"]
    assert done.stdout.count(f"the {side} does not build: ") == 1
    assert done.stdout.endswith(f"the {side} does not build.\n")


def test_a_slower_function(sample):
    markdown = sample.folder.parent / "report.md"
    done, report = gate(sample, "base", "slower", *FILLED, *ENOUGH, "--markdown", markdown)
    assert done.returncode == 1
    (cell,) = report["cells"]
    assert (cell["benchmark"], cell["params"], cell["verdict"]) == ("kinds.Filled.time_filled", ["20", "'a'"], "regressed")
    assert 1.3 < cell["interval"][0] < cell["ratio"] < cell["interval"][1] < 2
    assert cell["again"] in done.stdout
    assert cell["again"] in markdown.read_text()
    assert "regressed" in markdown.read_text()


@pytest.mark.parametrize(
    ("head", "options", "by"),
    [
        pytest.param(
            *("slower", ["--accept", "*time_filled*", "--reason", "it is right now"], "--accept"), marks=pytest.mark.slow
        ),
        ("accepting", [], accept.FILE),
    ],
    ids=["a glob", "a file"],
)
def test_what_is_accepted_passes_and_is_told(sample, head, options, by):
    done, report = gate(sample, "base", head, *FILLED, *ENOUGH, *options)
    assert done.returncode == 0
    (cell,) = report["cells"]
    assert cell["verdict"] == "regressed"
    assert cell["accepted"] == f"accepted by {by}: it is right now"
    assert cell["accepted"] in done.stdout
    assert report["summary"].startswith("1 accepted")


def test_with_an_accept_file_the_heads_own_only_proposes(sample, tmp_path):
    """The file need not be there."""
    _, report = gate(sample, "base", "accepting", *FILLED, *ENOUGH, "--accept-file", tmp_path / "none.toml")
    assert report["exit_status"] == 1
    (cell,) = report["cells"]
    assert (cell["verdict"], cell["accepted"]) == ("regressed", None)
    assert report["proposed"] == [{"cell": CELL, "reason": "it is right now"}]


# Stopped


@pytest.fixture
def running(sample, tmp_path):
    """A gate that has written its first report: (process, file). Beside it runs nobody else."""
    file = tmp_path / "report.json"
    arguments = [sample.commits["base"], sample.commits["base"], *UNSETTLED, "--json", file]
    with (tmp_path / "out").open("w") as out:
        process = subprocess.Popen(
            command(*arguments), cwd=sample.folder, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            until = time.monotonic() + 120
            while not file.exists() and process.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            assert process.poll() is None, (tmp_path / "out").read_text()
            yield process, file
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_stopped(sample, running, tmp_path, number):
    process, file = running
    assert json.loads(file.read_text())["rounds"] >= 1
    process.send_signal(number)
    assert process.wait(60) == 4
    said = (tmp_path / "out").read_text()
    assert "Traceback" not in said
    assert said.count("interrupted: ") == 1
    report = json.loads(file.read_text())
    assert report["exit_status"] == 4
    assert report["error"].startswith("interrupted")
    assert any(cell["rounds"] for cell in report["cells"])
    assert left_behind(sample.folder) == []
    assert list(tmp_path.glob(".*.new")) == []


def test_two_at_once(sample, running):
    process, _ = running
    done = call(sample.folder, sample.commits["base"], sample.commits["base"])
    assert done.returncode == 4
    assert "measuring here; two at once would disturb each other" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert process.poll() is None


@pytest.mark.parametrize(
    ("size", "words"),
    [(2000, "the environment does not build: |the base does not build: "), (26_000, "report.json cannot be written: ")],
)
def test_the_disk_fills(sample, tmp_path, size, words):
    """While it builds, or when it writes its report: files may not grow beyond so many bytes."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    hashes = [sample.commits["base"]] * 2
    report = ["--json", tmp_path / "report.json"]
    done = call(sample.folder, *hashes, "--bench", "Unsteady", "--budget", "0.2", *report, preexec_fn=limit)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert len(re.findall(words, done.stdout)) == 1, done.stdout
    assert left_behind(sample.folder) == []
    assert list(tmp_path.glob(".*.new")) == []
    if size == 26_000:
        assert "60 not measured" in done.stdout


def test_what_was_half_built_is_built_anew(sample):
    gate(sample, "base", "base", *FILLED, "--budget", "0.1")


# Mistakes


@pytest.fixture
def project(tmp_path):
    made = Sample(tmp_path / "project")
    made.commit({"benchmarks/b.py": "def time_nothing():\n    pass\n", "sample/__init__.py": ""})
    return made


def mistake(folder, *arguments):
    """The sentence of a call that is refused."""
    done = call(folder, *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / ".asv").exists()  # nothing was built
    return lines[0]


def test_a_dirty_tree(project):
    project.write({"sample/__init__.py": "changed = True\n"})
    said = mistake(project.folder)
    assert said.startswith("Error: sample/__init__.py has uncommitted changes")
    assert "name the head" in said


def test_results_that_a_run_wrote_are_no_dirt(project):
    """They change nothing that is measured: the base is looked for, as from a clean tree."""
    project.commit({"results/benchmarks.json": "{}"})
    project.write({"results/benchmarks.json": "{ }"})
    assert "git knows no commit 'nonsense'" in mistake(project.folder, "nonsense")


def test_results_may_lie_outside_of_the_repository(project):
    conf = json.loads((project.folder / "asv.conf.json").read_text())
    project.commit({"asv.conf.json": json.dumps({**conf, "results_dir": "../kept"})})
    assert "git knows no commit 'nonsense'" in mistake(project.folder, "nonsense")


def test_a_dirty_tree_and_a_head_that_is_named(sample):
    sample.write({"sample/__init__.py": SLOWER})
    try:
        done = call(sample.folder, "main", "main", *FILLED, *BUDGET)
    finally:
        sample.git("checkout", "--quiet", "--", ".")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("arguments", [["nonsense"], ["HEAD~7"], ["main", "nonsense"], ["asv.conf.json"]])
def test_a_revision_that_nobody_knows(project, arguments):
    assert f"git knows no commit {arguments[-1]!r}" in mistake(project.folder, *arguments)


def test_no_configuration(tmp_path):
    assert "no asv.conf.json in" in mistake(tmp_path)


def test_no_repository(tmp_path):
    (tmp_path / "asv.conf.json").write_text('{"version": 1, "project": "x", "repo": "."}')
    assert "not a git repository" in mistake(tmp_path)


def test_a_first_branch_that_is_not_here(project):
    conf = json.loads((project.folder / "asv.conf.json").read_text())
    project.commit({"asv.conf.json": json.dumps(conf | {"branches": ["trunk"]})})
    said = mistake(project.folder)
    assert "trunk" in said
    assert "name the base" in said


@pytest.mark.parametrize("options", [["--accept", "x"], ["--reason", "x"]])
def test_accepted_without_a_reason(project, options):
    assert "--accept and --reason belong together" in mistake(project.folder, *options)


def test_a_malformed_accept_file(project):
    project.write({".asv.toml": "accept = 3"})
    said = mistake(project.folder, "HEAD", "HEAD", "--accept-file", project.folder / ".asv.toml")
    assert said == "Error: .asv.toml may hold [[accept]] tables alone"


@pytest.mark.parametrize("option", ["--json", "--markdown"])
def test_a_report_in_no_folder(project, option):
    said = mistake(project.folder, option, project.folder / "nowhere" / "report")
    assert "cannot be written" in said
    assert "nowhere is no folder" in said


@pytest.mark.parametrize("options", [["--budget", "0"], ["--budget", "-1"], ["--budget", "x"], ["--bench", "("], ["--jsn"]])
def test_mistyped(project, options):
    mistake(project.folder, *options)


def test_no_benchmark_of_that_name(sample):
    done, report = gate(sample, "base", "base", "--bench", "nothing")
    assert done.returncode == 4
    assert report["error"] == "there is no benchmark of that name that both sides could be timed on"
    assert done.stdout.splitlines().count(report["error"]) == 1


def test_a_malformed_file_of_acceptances(sample):
    sample.git("checkout", "--quiet", "--detach", "main")
    sample.commits["malformed"] = sample.commit({accept.FILE: "accept = 3\n"}, "malformed")
    sample.git("checkout", "--quiet", "main")
    done = call(sample.folder, sample.commits["base"], sample.commits["malformed"], *FILLED)
    assert done.returncode == 2
    assert done.stderr == f"Error: {accept.FILE} may hold [[accept]] tables alone\n"


# The self-test


@pytest.mark.slow  # four gates
def test_the_self_test(sample):
    done = call(sample.folder, "--self-test", "--bench", "time_filled|time_plain", "--budget", "0.3")
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines = done.stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("slow-down"))
    assert [line.split()[0] for line in lines[start + 1 :]] == ["none", "none", "5%", "none", "10%", "none", "25%"]
    assert "found " in done.stdout
    assert "false alarms in" in done.stdout
    assert left_behind(sample.folder) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_side_that_is_starting_when_the_gate_is_stopped_is_ended_too(monkeypatch, number):
    running = []

    class Side:
        def __init__(self, *_):
            running.append(self)
            signal.raise_signal(number)

        def close(self):
            running.remove(self)

    monkeypatch.setattr(workers, "Side", Side)
    sides = dict.fromkeys(workers.SIDES)
    stopped = pytest.raises((KeyboardInterrupt, interrupts.Interrupted))
    with stopped, interrupts.termination(), workers.Pair(sides, (0,), random.Random(0)) as both:
        both.start()
    assert running == []


def test_a_self_test_that_is_stopped(sample, tmp_path):
    arguments = command("--self-test", "--bench", r"time_plain|Unsteady.*\([1-9]\)$", "--budget", "0.1")
    with (
        (tmp_path / "out").open("w+") as out,
        subprocess.Popen(
            arguments, cwd=sample.folder, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        ) as process,
    ):
        until = time.monotonic() + 120
        while "false alarms in" not in (tmp_path / "out").read_text() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 4
    said = (tmp_path / "out").read_text()
    assert said.count("Error: interrupted: the rates of 1 of 4 gates stand above\n") == 1, said
    assert "Traceback" not in said
    assert left_behind(sample.folder) == []


def test_a_self_test_that_cannot_build(sample):
    sample.git("checkout", "--quiet", "--detach", sample.commits["no build"])
    try:
        done = call(sample.folder, "--self-test")
    finally:
        sample.git("checkout", "--quiet", "main")
    assert done.returncode == 4
    assert "Error: the base does not build: " in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
