"""What several files of tests share."""

import json
import os
import subprocess
import sys
import time

import psutil

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


CONFIGURATION = {
    "version": 1,
    "project": "other",
    "repo": ".",
    "branches": ["main"],
    "environment_type": "virtualenv",
    "env_dir": "env",
    "matrix": {"pip+asv_runner": ["0.3.2"]},
    "launch_method": "forkserver",
    "build_command": [],
    "install_command": [],
    "uninstall_command": [],
}


def start(folder, *arguments):
    command = [sys.executable, "-m", "convbench", *arguments]
    environment = {**os.environ, "HOME": str(folder / "home")}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def convbench(folder, *arguments):
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def results(folder):
    """Values of every benchmark that is stored, by name."""
    files = [path for path in folder.glob("results/*/*.json") if path.name != "machine.json"]
    return {name: row[0] for path in files for name, row in json.loads(path.read_text())["results"].items()}


def left_running(folder):
    time.sleep(0.5)
    return [p.cmdline() for p in psutil.process_iter() if p.pid != os.getpid() and _inside(p, folder)]


def _inside(process, folder):
    try:
        return any(str(folder) in word for word in process.cmdline())
    except psutil.Error:
        return False
