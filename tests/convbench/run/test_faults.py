"""What may befall a run, with real processes and real signals: one sentence, and no class lost that was finished."""

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import click
import pytest
from published import Published, benchmark
from repositories import commit
from rich.console import Console
from runs import CONFIGURATION, convbench, left_running, results, start

from convbench.asv import project
from convbench.common import atomic_write
from convbench.run import classes
from convbench.stored import results as reading

pytestmark = pytest.mark.timeout(900)

SUITE = """
import os, signal, subprocess, sys, time
MOOD = os.path.join({folder!r}, "mood")

def mood():
    return open(MOOD).read()

class Cells:
    params = ["fine", "hangs", "killed", "prints"]
    rounds, repeat, number, warmup_time, timeout = 1, 2, 1, 0, 1
    def time_it(self, kind):
        if kind == "hangs":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            subprocess.run([sys.executable, "-c", "import time; time.sleep(600)", MOOD])
        if kind == "killed":
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does where memory ends
        if kind == "prints":
            sys.stdout.write("x" * 4_000_000)
            sys.stderr.write("y" * 4_000_000)

class Parent:
    rounds, repeat, number, warmup_time = 1, 2, 1, 0
    def time_it(self):
        if mood() == "kill the parent":
            os.kill(os.getppid(), signal.SIGKILL)

class Samples:
    params = list(range(10))
    rounds, repeat, number, warmup_time = 1, 3000, 1, 0  # 60 kilobytes of samples, ten times
    def time_it(self, n):
        pass
"""
QUICK = """
class _Fast:
    params = ["1", "2"]
    rounds, repeat, number, warmup_time = 1, 2, 1, 0
    def time_it(self, n): pass

for i in range({count}):
    globals()[f"Fast{{i}}"] = type(f"Fast{{i}}", (_Fast,), {{}})
del i
"""


def made(folder, suite):
    """A project whose suite brings its code along; it has environments of its own."""
    (folder / "asv.conf.json").write_text(json.dumps(CONFIGURATION))
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "__init__.py").write_text("")
    (folder / "benchmarks" / "speed.py").write_text(suite)
    (folder / ".gitignore").write_text("env\nresults*\nhome\nmood\nhtml\n.convbench\n__pycache__\n")
    (folder / "home").mkdir()
    subprocess.run(["git", "init", "--quiet", "--initial-branch", "main"], cwd=folder, check=True)
    commit(folder, "a suite")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory, package_index):
    folder = tmp_path_factory.mktemp("faults")
    (folder / "mood").write_text("quiet")
    return made(folder, SUITE.format(folder=str(folder)) + QUICK.format(count=4))


def sentence(err):
    """The one sentence of a run that failed."""
    (line,) = err.strip().splitlines()
    assert line.startswith("Error: ")
    return line


# Cells


def test_cells_that_hang_or_are_killed_have_no_time_and_those_that_print_megabytes_have(folder):
    status, out, err = convbench(folder, "run", "--busy", "--bench", "Cells")
    assert status == 1, out
    assert sentence(err) == "Error: 2 of the cells failed and have no time; `convbench table` names them and says why"
    fine, hangs, killed, prints = results(folder)["speed.Cells.time_it"]
    assert (hangs, killed) == (None, None)
    assert fine > 0
    assert prints > 0
    assert left_running(folder) == []  # not even what the cell that hung had started
    assert max(len(out), *(path.stat().st_size for path in folder.glob("results/*/*"))) < 10_000


def test_a_run_whose_fork_server_is_killed_keeps_what_was_finished(folder):
    before = results(folder)
    (folder / "mood").write_text("kill the parent")
    status, _, err = convbench(folder, "run", "--busy", "--bench", "Parent")
    (folder / "mood").write_text("quiet")
    assert status == 1
    assert sentence(err).startswith("Error: the process that starts the cells was killed, for want of memory most likely; ")
    assert results(folder) == before
    assert left_running(folder) == []
    status, out, err = convbench(folder, "run", "--busy", "--bench", "Parent")
    assert (status, err) == (0, ""), out
    assert results(folder)["speed.Parent.time_it"][0] > 0


# Disks and files


def limited(folder, limit, *arguments):
    """A run in which no file may grow beyond so many bytes."""
    command = [sys.executable, "-m", "convbench", *arguments]
    limit_size = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))  # noqa: E731
    environment = {**os.environ, "HOME": str(folder / "home")}
    return subprocess.run(
        command, cwd=folder, env=environment, preexec_fn=limit_size, capture_output=True, text=True, timeout=240, check=False
    )


def test_a_disk_that_is_full_loses_the_class_in_flight_alone(folder):
    before = results(folder)
    done = limited(folder, 100_000, "run", "--busy", "--bench", "Samples")
    assert done.returncode == 1, done.stdout
    assert sentence(done.stderr).startswith("Error: no file may grow as large here as one of asv's has to; asv ended with")
    assert results(folder) == before
    assert not list(folder.glob("results/*/.*"))
    assert left_running(folder) == []
    status, out, err = convbench(folder, "run", "--busy", "--bench", "Samples")
    assert status == 0, out + err


def test_a_full_disk_is_told_from_a_limit(folder, monkeypatch, tmp_path):
    """On a full disk asv's log has no room for the reason."""
    (tmp_path / "asv.conf.json").write_text(json.dumps(CONFIGURATION))
    place = classes.Place(project.load(tmp_path / "asv.conf.json"), "box", tmp_path, Console())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(click.ClickException) as caught:
        list(classes._running(place, ["no.such.module"], tmp_path / "asv.log"))
    assert caught.value.message.startswith("the disk is full; asv ended with status 1")


@pytest.mark.parametrize("there", [b"what was there", None])
def test_a_file_that_cannot_be_put_into_place_leaves_the_old_one(tmp_path, there):
    finished, target = tmp_path / "finished", tmp_path / "results" / "file.json"
    finished.write_bytes(bytes(10_000))
    target.parent.mkdir()
    if there:
        target.write_bytes(there)
    code = f"""
import resource
from pathlib import Path
import click
from convbench.common import atomic_write as store
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    store.publish(Path({str(finished)!r}), Path({str(target)!r}))
except click.ClickException as error:
    print(error.message)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == f"cannot write to {target}: File too large\n"
    assert [path.read_bytes() for path in target.parent.iterdir()] == ([there] if there else [])


def test_results_that_cannot_be_written_are_told_before_anything_is_measured(folder):
    """/sys takes nobody's files, not even root's, whom a folder's permissions do not stop."""
    (folder / "results").rename(folder / "results.aside")
    (folder / "results").symlink_to("/sys/kernel")
    try:
        status, out, err = convbench(folder, "run", "--busy", "--bench", "fine")
    finally:
        (folder / "results").unlink()
        (folder / "results.aside").rename(folder / "results")
    assert status == 1
    assert re.search(r"cannot write to \S+/results/\S+: ", sentence(err))
    assert "classes" not in out


def test_a_half_written_file_of_this_commit_is_named_and_once_moved_away_measured_anew(folder):
    """So is a machine's file that is missing; asv's own, which others may have cut short, is not needed."""
    convbench(folder, "run", "--busy", "--bench", "fine")
    (path,) = folder.glob("results/*/*-*.json")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    status, _, err = convbench(folder, "run", "--busy", "--bench", "fine")
    assert status == 1
    assert f"{path.name} is unreadable: " in sentence(err)
    assert "move it away and the commit is measured anew" in sentence(err)
    facts = path.with_name("machine.json").read_text()
    for broken in (path, path.with_name("machine.json")):
        broken.unlink()
    (folder / "home" / ".asv-machine.json").write_text("{")
    status, out, err = convbench(folder, "run", "--busy", "--bench", "fine")
    (folder / "home" / ".asv-machine.json").unlink()
    assert (status, err) == (0, ""), out
    assert results(folder)["speed.Cells.time_it"][0] > 0
    assert path.with_name("machine.json").read_text() == facts


def test_a_line_that_was_cut_short_takes_no_other_with_it(tmp_path):
    target, lines = tmp_path / "x.cells.jsonl", tmp_path / "lines"
    target.write_text('{"benchmark": "a", "params": [], "status": "ok"}\n{"bench')
    lines.write_text('{"benchmark": "b", "params": [], "status": "ok"}\n')
    atomic_write.append(lines, target)
    with target.open("ab") as file:
        file.write(b"\xff\xfe")
    assert [name for name, _ in reading.side_lines(target)] == ["a", "b"]


# Publishing

SIZE = benchmark("conv2d.Size.time_conv2d", ["cpu.a", "cpu.b"])
BROKEN = {
    "half a file": lambda text: text[: len(text) // 2].encode(),
    "empty": lambda text: b"",
    "not text": lambda text: b"\xff\xfe" + text.encode("utf-16"),
    "a list": lambda text: b"[]",
    "no commit": lambda text: text.replace("commit_hash", "commit").encode(),
    "results of another kind": lambda text: json.dumps({**json.loads(text), "results": [1]}).encode(),
}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    made = Published(tmp_path_factory.mktemp("bad") / "project", {SIZE["name"]: SIZE}, [".convbench.asv.tolerant_results"])
    made.add({SIZE["name"]: [1.0, 2.0]})
    made.good, made.text = made.path, made.path.read_text()
    made.add({SIZE["name"]: [3.0, 4.0]})
    return made


@pytest.mark.parametrize("case", BROKEN)
def test_publishing_passes_over_a_bad_file_by_name(published, case):
    published.path.write_bytes(BROKEN[case](published.text))
    assert published.path.name in published.publish()
    index = json.loads((published.html / "index.json").read_text())
    assert [commit[:8] for commit in index["revision_to_hash"].values()] == [published.good.name[:8]]


def test_publishing_names_a_machine_that_lacks_its_file(published):
    path = published.results / "box" / "machine.json"
    text = path.read_text()
    path.unlink()
    try:
        said = published.publish()
    finally:
        path.write_text(text)
    assert "Skipping results: could not load" in said
    assert "box/machine.json" in said.replace("\n", "")


# Killed at any moment


def test_kills_at_random_moments_lose_nothing_that_was_finished(folder):
    kept = killed(folder, 3, ["run", "--busy", "--bench", "Fast"])
    assert sum("Fast" in name for _, name in kept) == 4


@pytest.mark.slow
def test_many_kills_of_a_range_from_the_making_of_its_environment_on(tmp_path, package_index):
    folder = made(tmp_path, QUICK.format(count=8))
    for i in range(2):
        (folder / "note").write_text(str(i))
        commit(folder, f"commit {i}")
    assert len(killed(folder, 20, ["run", "ALL", "--busy"])) == 3 * 8


def killed(folder, kills, run):
    """What is stored after so many kills and a whole run; every class that was reported or stored once stays as it is."""
    generator, finished = random.Random(kills), {}
    for _ in range(kills):
        process = start(folder, *run)
        said = [process.stdout.readline() for _ in range(generator.randrange(4))]
        time.sleep(generator.uniform(0, 3))
        process.send_signal(signal.SIGKILL)
        rest, err = process.communicate(timeout=60)
        assert err == ""
        assert left_running(folder) == []
        kept = stored(folder)  # every file is whole
        assert finished.items() <= kept.items()
        built = ""
        for line in [*said, *rest.splitlines()]:
            if found := re.search(r"building commit (\w{8})", line):
                built = found[1]
            if found := re.match(r"\[\d/\d\] (\S+): 2 times, ", line):
                assert (built, f"{found[1]}.time_it") in kept
        finished = kept
    assert finished
    status, out, err = convbench(folder, *run)
    assert (status, err) == (0, ""), out
    last = stored(folder)
    assert finished.items() <= last.items()
    assert not list(folder.glob("results/**/.*"))
    return last


def stored(folder):
    """What is stored, by the commit's first characters and the benchmark: every value, as text."""
    found = {}
    for path in folder.glob("results/*/*-*.json"):
        for name, row in json.loads(path.read_text())["results"].items():
            found[path.name[:8], name] = json.dumps(row)
    return found
