"""Commits built over what is installed: no network, the same name everywhere, and each commit measured as itself."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import compressed
import pytest
from command_line import inside
from gate_projects import Sample
from runs import use_preinstalled

pytestmark = pytest.mark.timeout(600)

CODE = """
import time


def work():
    time.sleep({seconds})
"""
SUITE = """
import sys

import asv_runner  # which the environment has from the interpreter below it
import sample


class Work:
    rounds, repeat, number, warmup_time = 1, 3, 1, 0

    def time_work(self):
        sample.work()

    def track_where(self):
        return float(sys.prefix in sample.__file__)
"""
NAME = f"preinstalled-py{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Two commits measured by a configuration of their own, without a package index, the second one 0.1 s slower."""
    folder = tmp_path_factory.mktemp("ran") / "project"
    made = Sample(folder)
    made.write({"asv.gpu.conf.json": use_preinstalled(made), "benchmarks/speed.py": SUITE})
    made.commits = [made.commit({"sample/__init__.py": CODE.format(seconds=seconds)}) for seconds in (0.1, 0.2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_NO_INDEX", "1")
        made.done = inside(folder, "run", "ALL", "--busy", "--config", "asv.gpu.conf.json")
    return made


@pytest.mark.slow
def test_every_commit_is_measured_as_itself(ran):
    assert ran.done.returncode == 0, ran.done
    files = {path.name[:8]: path for path in ran.folder.glob("results/*/*-*.json")}
    assert [files[commit[:8]].name for commit in ran.commits] == [f"{commit[:8]}-{NAME}.json" for commit in ran.commits]
    for commit, seconds in zip(ran.commits, (0.1, 0.2), strict=True):
        content = json.loads(files[commit[:8]].read_text())
        time, where = (content["results"][f"speed.Work.{name}"][0][0] for name in ("time_work", "track_where"))
        assert seconds <= time < seconds + 0.09
        assert where == 1.0  # the commit's own, not whatever is installed below


@pytest.mark.slow
def test_what_is_built_is_not_built_again_to_be_measured(ran):
    log = (ran.folder / ".convbench/run/asv.log").read_text()
    assert "Benchmarking" in log
    assert not any(word in log for word in ("Building", "Installing"))


@pytest.mark.slow
def test_no_path_is_in_the_results(ran):
    for path in ran.folder.glob("results/**/*.json*"):
        text = compressed.read_text(path) if path.suffix == ".gz" else path.read_text()
        assert str(ran.folder) not in text
        assert sys.prefix not in text


# What is carried to a machine without a network

ROOT = Path(__file__).parents[3]
THERE = {"numba", "numpy", "torch"}  # dependencies that are expected there and not carried along
UNUSED = {"virtualenv"}  # asv asks for it when it makes environments of that kind


def named(text):
    return text.lower().replace("_", "-")


def test_nothing_that_is_carried_needs_what_is_not():
    """A wheelhouse is fetched without dependencies, so they must be listed too."""
    requirement = pytest.importorskip("packaging.requirements").Requirement
    lines = (line.partition("#")[0] for line in (ROOT / "wheelhouse.txt").read_text().splitlines())
    listed = {named(requirement(line).name) for line in lines if line}
    known = 0
    for name in listed:
        try:
            needed = map(requirement, metadata.requires(name) or ())
        except metadata.PackageNotFoundError:
            continue
        known += 1
        there = {"extra": "", "python_version": "3.12", "python_full_version": "3.12.3"}
        names = {named(one.name) for one in needed if one.marker is None or one.marker.evaluate(there)}
        assert names - listed - THERE - UNUSED == set(), name
    assert known > len(listed) / 2


def test_an_environment_over_another_sees_what_is_installed_there(tmp_path):
    """`make bench-gpu` where python3 is itself of a virtual environment: the recipe's lines, but those that install."""
    text = (ROOT / "Makefile").read_text()
    below = re.search(r"^define BELOW\n.*?^export BELOW\n", text, re.DOTALL | re.MULTILINE)[0]
    made = re.search(r"^\$\(GPU_VENV\)/installed:.*?\n((?:\t.*\n)+)", text, re.MULTILINE)[1]
    recipe = [line for line in made.splitlines() if "pip install" not in line and "wheelhouse" not in line]
    names = [f"PYTHON := {sys.executable}", f"GPU_VENV := {tmp_path}/nested", f"GPU_BIN := {tmp_path}/nested/bin"]
    (tmp_path / "Makefile").write_text("\n".join([*names, below, "$(GPU_VENV)/installed:", *recipe, ""]))
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MAKEFLAGS")}
    subprocess.run(["make", "--directory", tmp_path], env=environment, check=True, capture_output=True)
    script = "import numpy, pip, sys; print(sys.prefix, numpy.__file__, sep='\\n')"
    seen = subprocess.check_output([tmp_path / "nested/bin/python", "-c", script], env=environment, text=True).splitlines()
    assert seen == [str(tmp_path / "nested"), str(metadata.distribution("numpy").locate_file("numpy/__init__.py"))]


@pytest.mark.parametrize("target", ["bench-gpu", "bench-gpu-full"])
def test_without_a_device_nothing_is_installed_or_stored(tmp_path, target):
    """An empty run, kept under the processor's name, would be the newest of its results."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    command = ["make", "--no-print-directory", "--directory", tmp_path, target, f"PYTHON={sys.executable}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    said, *rest = done.stderr.splitlines()
    assert (done.returncode, done.stdout, len(rest)) == (2, "", 1)
    assert said.startswith("make bench-gpu measures a CUDA device, ")
    assert sys.executable in said
    assert [path.name for path in tmp_path.iterdir()] == ["Makefile"]
