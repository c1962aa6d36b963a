"""Projects that `convbench run` measures in tests, and the command as a process."""

import json
import os
import subprocess
import sys
import time

import psutil
from repositories import commit, git

SUITE = """
import time
class Fast:
    params = ["1", "2"]
    rounds, repeat, number, warmup_time = 1, 2, 1, 0
    def time_it(self, n): time.sleep(0.001)
class Slow(Fast):
    def time_it(self, n): time.sleep(float(open("{pace}").read()))
class Unwell(Fast):
    def time_it(self, n):
        if n == "2": raise ValueError("unwell")
"""

# An environment over the libraries that the tests run with: it is made in a second, and nothing is installed.
PREINSTALLED = {"environment_type": "preinstalled", "plugins": [".convbench.asv.preinstalled"]}
VIRTUALENV = {"environment_type": "virtualenv", "matrix": {"pip+asv_runner": ["0.3.2"]}}
CONFIGURATION = {
    "version": 1,
    "project": "other",
    "repo": ".",
    "branches": ["main"],
    "env_dir": "env",
    "launch_method": "forkserver",
    "build_command": [],
    "install_command": [],
    "uninstall_command": [],
}


def suite_project(folder, suite, environment=PREINSTALLED):
    """A project of one commit whose suite brings its code along."""
    folder.mkdir(exist_ok=True)
    (folder / "asv.conf.json").write_text(json.dumps(CONFIGURATION | environment))
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "__init__.py").write_text("")
    (folder / "benchmarks" / "speed.py").write_text(suite)
    (folder / ".gitignore").write_text("env\nresults*\nhome\npace\nmood\nhtml\n.convbench\n__pycache__\n")
    (folder / "home").mkdir()
    git(folder, "init", "--quiet")
    commit(folder, "a suite")
    return folder


def use_preinstalled(sample):
    """Have a Sample measured over the libraries that the tests run with; returns the text of its configuration."""
    conf = json.loads((sample.folder / "asv.conf.json").read_text())
    del conf["matrix"]
    return json.dumps(conf | PREINSTALLED)


def start(folder, *arguments):
    command = [sys.executable, "-m", "convbench", *arguments]
    environment = {**os.environ, "HOME": str(folder / "home")}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def convbench(folder, *arguments):
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def wait_for_line(process, words):
    """Read what a process prints up to the line with these words."""
    for line in process.stdout:
        if words in line:
            return
    raise AssertionError(f"it ended without {words!r}: {process.stderr.read()}")


def wait_until(condition, seconds=120):
    """Return once a condition holds; it is a failure where it does not within so many seconds."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "it did not happen in time"
        time.sleep(0.05)


def results(folder):
    """Values of every benchmark that is stored, by name."""
    files = [path for path in folder.glob("results/*/*.json") if path.name != "machine.json"]
    return {name: row[0] for path in files for name, row in json.loads(path.read_text())["results"].items()}


def left_running(folder):
    """The processes that name a folder and do not end within seconds."""
    give_up = time.monotonic() + 3
    while (found := _running(folder)) and time.monotonic() < give_up:
        time.sleep(0.05)
    return found


def _running(folder):
    return [p.info["cmdline"] for p in psutil.process_iter(["cmdline"]) if p.pid != os.getpid() and _names(p, folder)]


def _names(process, folder):
    return any(str(folder) in word for word in process.info["cmdline"] or [])
