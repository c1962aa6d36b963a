"""Faults of a run, with real processes and signals: each is one sentence, and no finished class is lost."""

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
from command_line import inside, sentence
from published import Published, benchmark
from repositories import commit
from runs import CONFIGURATION, PREINSTALLED, VIRTUALENV, convbench, left_running, results, start, suite_project

from convbench.asv import project
from convbench.run import asv_process
from convbench.run.workspace import Workspace

pytestmark = [pytest.mark.first, pytest.mark.timeout(900)]

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A project without results."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "mood").write_text("quiet")
    return suite_project(folder, SUITE.format(folder=str(folder)) + QUICK.format(count=2))


@pytest.fixture(scope="module")
def first(folder):
    """The first run, of cells that hang, are killed and print megabytes: its status, output and errors."""
    told = convbench(folder, "run", "--busy", "--bench", "Cells")
    return SimpleNamespace(folder=folder, told=told, left=left_running(folder))


# Cells


@pytest.mark.slow
def test_cells_that_hang_or_are_killed_have_no_time_and_those_that_print_megabytes_have(first):
    folder, (status, out, err) = first.folder, first.told
    assert status == 1, out
    assert err.strip() == "Error: 2 cells failed; `convbench table --bench . --why` shows the reasons"
    fine, hangs, killed, prints = results(folder)["speed.Cells.time_it"]
    assert (hangs, killed) == (None, None)
    assert fine > 0
    assert prints > 0
    assert first.left == []  # not even what the cell that hung had started
    assert max(len(out), *(path.stat().st_size for path in folder.glob("results/*/*"))) < 10_000


@pytest.mark.slow
def test_a_run_whose_fork_server_is_killed_keeps_what_was_finished(first):
    folder = first.folder
    before = results(folder)
    (folder / "mood").write_text("kill the parent")
    done = inside(folder, "run", "--busy", "--bench", "Parent")
    (folder / "mood").write_text("quiet")
    assert sentence(done).startswith("Error: the process that starts the cells was killed, probably out of memory; ")
    assert results(folder) == before
    assert left_running(folder) == []


# Disks and files


def limited(folder, limit, *arguments):
    """A run with a limit on the size of files."""
    command = [sys.executable, "-m", "convbench", *arguments]
    limit_size = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))  # noqa: E731
    environment = {**os.environ, "HOME": str(folder / "home")}
    return subprocess.run(
        command, cwd=folder, env=environment, preexec_fn=limit_size, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.mark.slow
def test_a_disk_that_is_full_loses_the_class_in_flight_alone(first):
    """The next run measures it, and what another failed run lacks."""
    folder = first.folder
    before = results(folder)
    done = limited(folder, 100_000, "run", "--busy", "--bench", "Samples")
    assert sentence(done).startswith("Error: the limit on file sizes (ulimit -f) is too low for asv's files; asv ended with")
    assert results(folder) == before
    assert not list(folder.glob("results/*/.*"))
    assert left_running(folder) == []
    done = inside(folder, "run", "--busy", "--bench", "Samples|Parent")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert {"speed.Parent.time_it", "speed.Samples.time_it"} <= results(folder).keys()


def test_a_full_disk_is_told_from_a_limit(monkeypatch, tmp_path):
    """On a full disk asv's log cannot hold the reason."""
    (tmp_path / "asv.conf.json").write_text(json.dumps(CONFIGURATION | PREINSTALLED))
    workspace = Workspace(project.load(tmp_path / "asv.conf.json"), "box", tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(click.ClickException) as caught:
        list(asv_process.run(workspace, ["no.such.module"], tmp_path / "asv.log"))
    assert caught.value.message.startswith("the disk is full; asv ended with status 1")


def test_a_file_that_cannot_be_put_into_place_leaves_the_old_one(tmp_path):
    finished, target, new = tmp_path / "finished", tmp_path / "results" / "file.json", tmp_path / "new" / "file.json"
    finished.write_bytes(bytes(10_000))
    target.parent.mkdir()
    target.write_bytes(b"what was there")
    code = f"""
import resource
from pathlib import Path
import click
from convbench.common import atomic_write
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
for target in {[str(target), str(new)]!r}:
    try:
        atomic_write.publish(Path({str(finished)!r}), Path(target))
    except click.ClickException as error:
        print(error.message)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [f"cannot write to {path}: File too large" for path in (target, new)]
    assert [path.read_bytes() for path in target.parent.iterdir()] == [b"what was there"]
    assert list(new.parent.iterdir()) == []


def test_results_that_cannot_be_written_are_told_before_anything_is_measured(first):
    """/sys accepts no files, not even from root, which ignores a folder's permissions."""
    folder = first.folder
    (folder / "results").rename(folder / "results.aside")
    (folder / "results").symlink_to("/sys/kernel")
    try:
        done = inside(folder, "run", "--busy", "--bench", "fine")
    finally:
        (folder / "results").unlink()
        (folder / "results.aside").rename(folder / "results")
    assert re.search(r"cannot write to \S+/results/\S+: ", sentence(done))
    assert "classes" not in done.stdout


@pytest.mark.slow
def test_a_half_written_file_of_this_commit_is_named_and_once_moved_away_measured_anew(first):
    """So is a machine's file that is missing; asv's own, which others may have cut short, is not needed."""
    folder = first.folder
    (path,) = folder.glob("results/*/*-*.json")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    said = sentence(inside(folder, "run", "--busy", "--bench", "fine"))
    assert f"{path.name} is unreadable: " in said
    assert "move it away to measure the commit again" in said
    facts = path.with_name("machine.json").read_text()
    for broken in (path, path.with_name("machine.json")):
        broken.unlink()
    (folder / "home" / ".asv-machine.json").write_text("{")
    status, out, err = convbench(folder, "run", "--busy", "--bench", "fine")
    (folder / "home" / ".asv-machine.json").unlink()
    assert (status, err) == (0, ""), out
    assert results(folder)["speed.Cells.time_it"][0] > 0
    assert path.with_name("machine.json").read_text() == facts


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
    """A good file, one that is bad in each way, and a machine without its file: what asv says when it publishes them."""
    made = Published(tmp_path_factory.mktemp("bad") / "project", {SIZE["name"]: SIZE}, [".convbench.asv.tolerant_results"])
    made.add({SIZE["name"]: [1.0, 2.0]})
    made.good, made.text, made.bad = made.path, made.path.read_text(), {}
    for case, damage in BROKEN.items():
        made.add({SIZE["name"]: [3.0, 4.0]})
        made.path.write_bytes(damage(made.text))
        made.bad[case] = made.path
    other = made.results / "den"
    other.mkdir()
    shutil.copy(made.good, other)
    made.said = made.publish()
    return made


def test_publishing_passes_over_bad_files_by_name(published):
    assert [case for case, path in published.bad.items() if path.name not in published.said] == []
    index = json.loads((published.html / "index.json").read_text())
    assert [commit[:8] for commit in index["revision_to_hash"].values()] == [published.good.name[:8]]


def test_publishing_names_a_machine_that_lacks_its_file(published):
    assert "Skipping results: could not load" in published.said
    assert "den/machine.json" in published.said.replace("\n", "")


# Killed at any moment


@pytest.mark.proof
def test_kills_at_random_moments_lose_nothing_that_was_finished(first):
    kept = killed(first.folder, 2, ["run", "--busy", "--bench", "Fast"], seconds=1.5)
    assert sum("Fast" in name for _, name in kept) == 2


@pytest.mark.proof
def test_many_kills_of_a_range_from_the_making_of_its_environment_on(tmp_path, package_index):
    folder = suite_project(tmp_path, QUICK.format(count=8), VIRTUALENV)
    for i in range(2):
        (folder / "note").write_text(str(i))
        commit(folder, f"commit {i}")
    assert len(killed(folder, 20, ["run", "ALL", "--busy"], seconds=3)) == 3 * 8


def killed(folder, kills, run, seconds):
    """The stored results after several kills and a complete run; a class that was reported or stored once does not change.

    seconds: between a line that the run prints and its kill, at most.
    """
    generator, finished = random.Random(kills), {}
    for _ in range(kills):
        process = start(folder, *run)
        said = [process.stdout.readline() for _ in range(generator.randrange(4))]
        time.sleep(generator.uniform(0, seconds))
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
            if found := re.match(r"\[\d/\d\] (\S+): 2 timed, ", line):
                assert (built, f"{found[1]}.time_it") in kept
        finished = kept
    assert finished
    done = inside(folder, *run)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
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
