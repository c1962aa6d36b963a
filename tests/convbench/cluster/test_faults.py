"""Faults of a cluster, by real signals: nothing finished is lost, nothing hangs, each ends in a result or one sentence."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from clusters import client, cluster, copy
from command_line import inside, sentence
from distributed import KilledWorker
from repositories import commit
from runs import start, suite_project, wait_until

from convbench.cluster import pool, ranges
from convbench.cluster.pool import Task
from convbench.common import lock

pytestmark = [pytest.mark.first, pytest.mark.timeout(600)]

# Each measurement leaves a line, so that a test sees what was measured twice.
SUITE = """
import os
import time

import psutil

FOLDER = {folder!r}


class _Noted:
    timeout = 300

    def track_it(self):
        commit, name = os.environ["ASV_COMMIT"][:8], type(self).__name__
        with open(FOLDER + "/ran", "a") as file:
            file.write(f"{{commit}} {{name}}\\n")
        if commit in open(FOLDER + "/poison").read():
            for parent in psutil.Process().parents():
                if "worker" in parent.cmdline():
                    parent.kill()
        time.sleep(float(open(FOLDER + "/pace").read()))
        return 1
"""
CLASS = """

class {name}(_Noted):
    pass
"""


class Project:
    """A project of so many commits and classes below a folder. pace: seconds of a class."""

    def __init__(self, folder, commits=1, classes=("One", "Two"), pace=0.0):
        self.folder, self.top = folder / "project", folder
        for name, text in {"ran": "", "poison": "", "pace": str(pace)}.items():
            (folder / name).write_text(text)
        suite = SUITE.format(folder=str(folder)) + "".join(CLASS.format(name=name) for name in classes)
        suite_project(self.folder, suite)
        for i in range(commits - 1):
            (self.folder / "note").write_text(str(i))
            commit(self.folder, f"commit {i}")
        self.cells = commits * len(classes)

    @property
    def ran(self):
        """How often each class of each commit was measured."""
        return Counter((self.top / "ran").read_text().splitlines())

    @property
    def stored(self):
        """The values of each commit's benchmarks, by machine."""
        found = {}
        for path in self.folder.glob("results/*/*-*.json"):
            for name, row in json.loads(path.read_text())["results"].items():
                found[path.parent.name, path.name[:8], name.split(".")[1]] = row[0]
        return found

    def begun(self, count=1):
        """Wait until so many measurements have begun."""
        wait_until(lambda: self.ran.total() >= count)

    def start(self, machines):
        return start(self.folder, "run", "ALL", "--busy", "--cluster", machines.address)

    def attempt(self, machines):
        """The command in this process."""
        return inside(self.folder, "run", "ALL", "--busy", "--cluster", machines.address)

    def run(self, machines):
        """The command in this process, all of whose measurements succeed."""
        done = self.attempt(machines)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + machines.logs()


def ended(process):
    out, err = process.communicate(timeout=240)
    assert "Traceback" not in out + err
    return process.returncode, out, err


def succeeds(process, machines):
    status, out, err = ended(process)
    assert (status, err) == (0, ""), out + machines.logs()[-5000:]


@pytest.mark.parametrize(
    "stop", [pytest.param(signal.SIGKILL, marks=pytest.mark.slow), pytest.param(signal.SIGSTOP, marks=pytest.mark.proof)]
)
def test_a_worker_that_is_killed_or_cut_off_is_replaced_and_its_class_alone_is_repeated(tmp_path, stop):
    project = Project(tmp_path, pace=1.5)
    with cluster(tmp_path / "cluster", "box-a") as machines:
        process = project.start(machines)
        project.begun(2)  # the first class is done
        machines.workers["box-a"][0].send_signal(stop)
        machines.add("box-a")
        succeeds(process, machines)
    assert sorted(project.ran.values()) == [1, 2]
    assert len(project.stored) == 2


@pytest.mark.proof
def test_without_a_machine_of_a_name_its_series_ends_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "ABSENT_SECONDS", 5.0)
    project = Project(tmp_path, commits=2, pace=1)
    with cluster(tmp_path / "cluster", "box-a", "box-b") as machines:

        def cut_off():
            wait_until(lambda: [name for name, *_ in project.stored].count("box-b"))
            machines.workers["box-b"][0].send_signal(signal.SIGSTOP)

        threading.Thread(target=cut_off).start()
        done = project.attempt(machines)
    assert "left for box-b, where no machine measures: no worker is there; start one with" in sentence(done)
    assert [name for name, *_ in project.stored].count("box-a") == 4


@pytest.mark.proof
def test_a_machine_without_disk_space_is_left_out_and_another_measures(tmp_path):
    project = Project(tmp_path)
    disk = tmp_path / "cluster" / "homes" / "full"
    disk.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", disk]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted")
    try:
        with cluster(tmp_path / "cluster", "full") as machines:
            done = inside(project.folder, "run", "--busy", "--cluster", machines.address)
            assert "no space left on device" in sentence(done).lower()
            assert project.ran.total() == 0
            machines.add("full", XDG_CACHE_HOME=str(tmp_path / "elsewhere"))
            project.run(machines)
        assert set(project.ran.values()) == {1}
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.proof
def test_a_measurement_that_stops_is_given_up_and_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(ranges, "BUILD_SECONDS", 20.0)
    monkeypatch.setattr(ranges, "EXTRA_SECONDS", -600.0)
    project = Project(tmp_path, classes=("One",), pace=3)
    with cluster(tmp_path / "cluster", "box-a") as machines:

        def stop():
            project.begun()
            found = subprocess.run(["pgrep", "-f", "convbench.cluster.job"], capture_output=True, text=True).stdout.split()
            for number in found:
                if str(tmp_path) in Path(f"/proc/{number}/cmdline").read_text():
                    os.kill(int(number), signal.SIGSTOP)

        threading.Thread(target=stop).start()
        project.run(machines)
    assert set(project.ran.values()) == {2}


@pytest.mark.proof
def test_a_slow_machine_takes_less_of_the_work(tmp_path):
    project = Project(tmp_path, commits=4)
    slow = "import time; from convbench.cluster import remote\n"  # dask runs it twice
    slow += "remote._wait = lambda *arguments, wait=remote._wait: (wait(*arguments), time.sleep(4))"
    with cluster(tmp_path / "cluster", "box-a") as machines:
        machines.add("box-a", preload=slow)
        project.run(machines)
    assert len(project.stored) == 8
    assert set(project.ran.values()) == {1}


@pytest.mark.proof
def test_a_disturbed_machine_is_waited_for_and_then_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "PATIENCE_SECONDS", 1.0)
    project = Project(tmp_path)
    with cluster(tmp_path / "cluster", "box-a") as machines:
        monkeypatch.setenv(lock.OVERRIDE, str(tmp_path / "cluster" / "homes" / "box-a" / "lock"))
        with lock.lock(tmp_path / "work", tmp_path / "work"):  # by somebody else, in another clone
            done = inside(project.folder, "run", "--busy", "--cluster", machines.address)
        assert "box-a is not used: another `convbench` command is measuring on this machine; two at once" in done.stdout
        assert "where no machine measures: another `convbench` command is measuring" in sentence(done)
        assert project.ran.total() == 0
        spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        try:
            done = inside(project.folder, "run", "ALL", "--cluster", machines.address)
        finally:
            for process in spinning:
                process.kill()
                process.wait()
    assert "this machine is too busy to measure on" in sentence(done)
    assert project.ran.total() == 0


@pytest.mark.slow
def test_workers_with_other_versions_or_without_a_place_are_refused(tmp_path):
    project = Project(tmp_path)
    false = "from convbench.cluster import remote; true = remote.versions(); remote.versions = lambda: true | {words}"
    with cluster(tmp_path / "cluster") as machines:
        machines.add("box-a", preload=false.format(words={"convbench": "0.1.0"}))
        machines.add("box-b", preload=false.format(words={"Python": "3.99"}))
        machines.add("box-c", measures=False)
        wait_until(lambda: machines.logs().count("Register worker") == 3)
        done = project.attempt(machines)
        ours = f"{sys.version_info.major}.{sys.version_info.minor}"
        for words in (
            "it has convbench 0.1.0 and the client 0.2.0: install the same on both",
            f"it has Python 3.99 and the client {ours}: install the same on both",
            "it was started without --resources measure=1",
        ):
            assert words in done.stdout
            assert words in sentence(done)
    assert project.ran.total() == 0


@pytest.mark.proof
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGSTOP])
def test_a_scheduler_that_is_gone_ends_the_run_and_the_next_one_resumes(tmp_path, stop, monkeypatch):
    monkeypatch.setattr(pool, "SILENT_SECONDS", 3.0)
    project = Project(tmp_path, pace=1)
    with cluster(tmp_path / "cluster", "box-a") as machines:

        def end():
            wait_until(lambda: project.stored)
            machines.scheduler.send_signal(stop)

        threading.Thread(target=end).start()
        done = project.attempt(machines)
        words = "the scheduler does not answer any more: what was finished is kept, and the same command resumes"
        assert sentence(done) == f"Error: {words}"
        assert len(project.stored) == 1
        machines.scheduler.kill()
        machines.restart().add("box-a")
        (project.top / "pace").write_text("0")
        project.run(machines)
    assert sorted(project.ran.values()) == [1, 2]
    assert len(project.stored) == 2


@pytest.mark.proof
def test_a_client_that_is_killed_and_started_again_takes_what_ran_meanwhile(tmp_path):
    project = Project(tmp_path, pace=6)
    with cluster(tmp_path / "cluster", "box-a") as machines:
        process = project.start(machines)
        project.begun(2)
        process.kill()
        process.wait()
        project.run(machines)
    assert set(project.ran.values()) == {1}
    assert len(project.stored) == 2


@pytest.mark.proof
def test_an_interrupted_client_says_what_is_kept(tmp_path):
    project = Project(tmp_path, pace=3)
    with cluster(tmp_path / "cluster", "box-a") as machines:
        process = project.start(machines)
        project.begun(2)
        process.send_signal(signal.SIGINT)
        status, _, err = ended(process)
    assert status == 1
    assert err == "Error: interrupted: 2 tasks done: what was finished is kept, and the same command resumes\n"


@pytest.mark.proof
def test_two_clients_share_what_both_measure(tmp_path):
    project = Project(tmp_path, pace=2)
    other = copy(project.folder, tmp_path / "other")
    with cluster(tmp_path / "cluster", "box-a") as machines:
        processes = [
            start(folder, "run", "ALL", "--busy", "--cluster", machines.address) for folder in (project.folder, other)
        ]
        for process in processes:
            succeeds(process, machines)
        project.begun()
        refused = project.start(machines)  # in the same clone, of two at once one is refused
        same = project.attempt(machines)
        assert sorted([ended(refused)[0], same.returncode]) in ([0, 0], [0, 1])
    assert set(project.ran.values()) == {1}
    assert len(list(other.glob("results/box-a/*-*.json"))) == len(list(project.folder.glob("results/box-a/*-*.json"))) == 1


@pytest.mark.proof
def test_a_poisoned_commit_is_given_up_after_three_workers(tmp_path):
    project = Project(tmp_path, commits=3, classes=("One",))
    newest = subprocess.run(["git", "rev-parse", "HEAD"], cwd=project.folder, capture_output=True, text=True).stdout[:8]
    (project.top / "poison").write_text(newest)
    with cluster(tmp_path / "cluster") as machines:
        workers = [machines.add("box-a") for _ in range(4)]
        done = project.attempt(machines)
        left = [worker for worker in workers if worker.poll() is None]
    assert f"speed.One of {newest} is given up: 3 workers were killed while they ran it" in sentence(done)
    assert len(left) == 1
    assert project.ran[f"{newest} One"] == 3
    assert len(project.stored) == 2


@pytest.mark.proof
def test_twenty_kills_of_random_workers_lose_nothing_and_repeat_only_what_ran(tmp_path):
    """Chance kills three workers of one class, which dask is told here, or it would count as what kills them."""
    project = Project(tmp_path, commits=8, pace=4)  # enough for twenty kills where nothing else runs
    generator, kills = random.Random(1), 0
    with cluster(tmp_path / "cluster", "box-a", "box-b", failures=20) as machines:
        for machine in ("box-a", "box-b"):
            machines.add(machine)
        process = project.start(machines)
        project.begun()
        finished = {}
        while kills < 20:
            time.sleep(generator.uniform(3, 7))
            if process.poll() is not None:
                break
            machine = generator.choice(["box-a", "box-b"])
            machines.workers[machine].pop(0).kill()
            machines.add(machine)
            kills += 1
            now = project.stored
            assert finished.items() <= now.items()
            finished = now
        succeeds(process, machines)
    print(f"{kills} kills, {project.ran.total()} measurements of {2 * project.cells}")
    assert kills == 20
    assert len(project.stored) == 2 * project.cells
    assert project.ran.total() <= 2 * project.cells + 20


@pytest.mark.parametrize(("running", "tries"), [("this", 1), ("another", 2)])
def test_a_killed_workers_task_is_tried_again_if_another_one_ran_there(running, tries):
    task = Task("speed.One of 01234567", "box-a", None)
    killed = KilledWorker("this", SimpleNamespace(executing={running: 1.0}), 2)
    made, said, future = object.__new__(pool.Pool), [], mock.Mock(key="this")
    made.begun, made.again = {task: 1}, []
    work = SimpleNamespace(failed=lambda task, reason: said.append(reason))
    for _ in range(tries - 1):
        assert not made._take(work, future, task, mock.Mock(side_effect=killed))
        assert made.again.pop() is task
        made.begun[task] += 1
    assert made._take(work, future, task, mock.Mock(side_effect=killed))
    assert future.release.call_count == tries
    (reason,) = said
    assert "3 workers were killed while they ran it" in reason


def test_a_scheduler_that_is_not_there_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "CONNECT_SECONDS", 1)
    project = Project(tmp_path)
    with client():
        said = sentence(inside(project.folder, "run", "--busy", "--cluster", "tls://127.0.0.1:1"))
        assert said.startswith("Error: no scheduler answers at tls://127.0.0.1:1: ")
        file = tmp_path / "scheduler.json"
        for text in ("{", "[]", "{}"):
            file.write_text(text)
            said = sentence(inside(project.folder, "run", "--busy", "--cluster", str(file)))
            assert said == f"Error: {file} is not a scheduler's file, as `dask scheduler --scheduler-file` writes it"


def test_without_dask_it_says_what_to_install(tmp_path, monkeypatch):
    from convbench.common import extras

    project = Project(tmp_path)
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
    said = sentence(inside(project.folder, "run", "--busy", "--cluster", "tls://127.0.0.1:1"))
    assert said == "Error: --cluster needs distributed: pip install 'convbench[cluster]'"
