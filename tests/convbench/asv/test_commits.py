"""Real asv on real commits: each is measured as itself, by the newest suite."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkouts import copied, tried
from repositories import commit, git

from convbench.asv import project

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.first, pytest.mark.timeout(900)]
SOME = ("cpu.einsum", "cpu.loops", "cpu.shift", "cpu.sliced_loops", "cpu.torch", "cpu.windows", "im2col.naive")
NEEDED = ("numpy", "asv_runner")  # of the libraries in asv.conf.json: every other one is a wait
SLEEP = 0.02  # seconds that one commit's cpu.shift sleeps: far more than it takes for one channel of 28x28


@pytest.fixture(scope="module")
def measured(tmp_path_factory, package_index):
    """Two commits that differ in impls alone, measured in one environment with few libraries: {commit: {cell: seconds}}."""
    folder = copied(tmp_path_factory.mktemp("project"))
    (folder / "asv.conf.json").write_text(json.dumps(configuration(folder)))
    git(folder, "init", "--quiet")
    name, text = newcomer()
    (folder / name).write_text(text)
    shift = folder / "impls" / "conv2d" / "cpu" / "shift.py"
    commits = {"plain": commit(folder, "plain")}
    text = shift.read_text()
    shift.write_text(text.replace("    image = pad(", f"    __import__('time').sleep({SLEEP})\n    image = pad(", 1))
    lost = folder / "impls" / "conv2d" / "cpu" / "sliced_loops.py"
    lost.unlink()  # in the middle of the list of names
    commits["changed"] = commit(folder, "a slower cpu.shift, and no cpu.sliced_loops")
    shift.write_text(text)
    shutil.copy2(ROOT / lost.relative_to(folder), lost)
    commit(folder, "as it was")
    (folder / "hashes").write_text("\n".join(commits.values()))
    environment = {**os.environ, "HOME": str(folder / "home"), "CONVBENCH_CELLS": str(folder / "cells.jsonl")}
    (folder / "home").mkdir()
    asv = [sys.executable, "-m", "asv"]
    machine = ["--machine", "test", "--os", "Linux", "--arch", "any", "--cpu", "any", "--num_cpu", "1", "--ram", "1"]
    subprocess.run([*asv, "machine", *machine], cwd=folder, env=environment, check=True, capture_output=True)
    cells = rf"Channels.*'({'|'.join(SOME)})', 1\)"
    run = [*asv, "run", "HASHFILE:hashes", "--machine", "test", "--bench", cells, "--show-stderr", "--record-samples"]
    done = subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode in (0, 2), done.stdout[-3000:] + done.stderr[-3000:]
    return {name: times(folder, hash) for name, hash in commits.items()}


def configuration(folder):
    """The project's own configuration with few libraries, and without the compiled kernels, which take most of a build."""
    conf = project.load(folder / "asv.conf.json").conf
    matrix = {name: versions for name, versions in conf.matrix["req"].items() if name.endswith(NEEDED)}
    build = [f"{command} -Csetup-args=-Dkernels=false" for command in conf.build_command]
    return {
        **{key: getattr(conf, key) for key in ("project", "repo", "branches", "environment_type", "launch_method")},
        "version": 1,
        "matrix": {"req": {**matrix, "threadpoolctl": [""]}},  # which comes with scikit-learn otherwise
        "build_command": build,
        "install_command": [f"{command} --no-compile" for command in conf.install_command if "{wheel_file}" in command],
    }


def newcomer():
    """The file that the README adds: its name and text."""
    readme = (ROOT / "README.md").read_text()
    return re.search(r"`(impls/conv2d/cpu/einsum\.py)`:\s+```python\n(.*?)```", readme, re.DOTALL).groups()


def command():
    """The README's command on the uncommitted file, as words."""
    return re.search(r"`convbench (try .* cpu\.einsum .*?)`", (ROOT / "README.md").read_text())[1].split()


def times(folder, hash):
    """The shortest sample by implementation, None where the cell failed, NaN where it was skipped.

    Whatever else runs on this machine only adds to a sample.
    """
    (path,) = (folder / "results" / "test").glob(f"{hash[:8]}-*.json")
    content = json.loads(path.read_text())
    row = dict(zip(content["result_columns"], content["results"]["conv2d.Channels.time_conv2d"], strict=False))
    found = {}
    for i, (name, channels) in enumerate(itertools.product(*row["params"])):
        if channels == "1":
            found[name.strip("'")] = min(row["samples"][i]) if row["samples"][i] else row["result"][i]
    return found


@pytest.mark.proof
def test_a_newcomers_file_is_tried_at_once(tmp_path):
    folder = copied(tmp_path / "project")
    git(folder, "init", "--quiet")
    commit(folder, "before")
    name, text = newcomer()
    assert text.count("\n") < 30
    (folder / name).write_text(text)
    assert tried(folder, command()) == {"cpu.einsum": "ok", "cpu.torch": "ok"}


@pytest.mark.proof
def test_a_newcomers_file_is_measured_once_committed(measured):
    assert all(0 < measured[name]["cpu.einsum"] < SLEEP for name in ("plain", "changed"))


@pytest.mark.proof
def test_commits_that_differ_in_impls_alone_are_measured_as_themselves(measured):
    assert measured["plain"]["cpu.shift"] < SLEEP
    assert measured["changed"]["cpu.shift"] > SLEEP


@pytest.mark.proof
def test_a_commit_that_lacks_a_name_leaves_every_other_column_right(measured):
    assert measured["plain"]["cpu.sliced_loops"] > 0
    assert measured["changed"]["cpu.sliced_loops"] != measured["changed"]["cpu.sliced_loops"]  # NaN: skipped, not failed
    slowest = max((seconds, name) for name, seconds in measured["plain"].items() if seconds == seconds)[1]
    for name, seconds in measured["plain"].items():
        other = measured["changed"][name]
        if name in ("cpu.shift", "cpu.sliced_loops"):
            continue
        assert (other == other) == (seconds == seconds), name
        if seconds == seconds:
            # A column shifted by one name would be wrong by far more: neighbours differ by factors of 10 to 100.
            assert 1 / 4 < other / seconds < 4, name
    assert slowest in ("im2col.naive", "cpu.loops")


@pytest.mark.proof
def test_libraries_that_are_not_there_are_left_out_and_not_failed(measured):
    assert all(seconds is not None for row in measured.values() for seconds in row.values())
    assert measured["plain"]["cpu.torch"] != measured["plain"]["cpu.torch"]
    assert measured["plain"]["cpu.windows"] < SLEEP
