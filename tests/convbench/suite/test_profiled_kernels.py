"""Kernels built for profilers, which see Cython's functions and lines; measured kernels are never built so."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from profiles import need

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / "build" / "profiled" / "bin" / "python"


def test_nothing_that_is_measured_is_built_for_profilers():
    assert re.search(r"option\('profile', type: 'boolean', value: false", (ROOT / "meson.options").read_text())
    named = ["Makefile", "pyproject.toml", "asv.conf.json", "asv.gpu.conf.json", ".ci/run"]
    files = [ROOT / name for name in named]
    files += [path for path in (ROOT / ".github").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    files += [path for room in ("convbench", "benchmarks") for path in (ROOT / room).rglob("*.py")]
    uses = [path.name for path in files for _ in re.finditer("Dprofile=", path.read_text(encoding="utf-8"))]
    assert uses == ["Makefile"]


@pytest.fixture(scope="module")
def profiled():
    """Runs convbench profile with kernels that are compiled for it."""
    subprocess.run(["make", "profiled"], cwd=ROOT, check=True)
    environment = {**os.environ, "PATH": os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ["PATH"]])}

    def run(*arguments):
        command = [PYTHON, "-m", "convbench", "profile", *map(str, arguments)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "function", "file"),
    [
        ("im2col.cython", "patches", "impls/conv2d/im2col/_cython.pyx"),
        ("cpu.cython_typed", "loops", "impls/conv2d/cpu/_cython_typed.pyx"),
        ("cpu.cython_untyped", "conv2d", "_cython_untyped.pyx"),
    ],
)
def test_the_tree_and_the_graph_show_cython(profiled, tmp_path, name, function, file):
    need("graph")
    problem, graph = "n1c4h16w16k4r3s3", tmp_path / "a.svg"
    tree = profiled(name, problem, "--calls=3")
    assert re.search(rf"^ +[36] .* {function} \({re.escape(file)}:\d+\)$", tree, re.MULTILINE)
    profiled(name, problem, "--calls=3", "--graph", graph)
    assert re.search(rf"{Path(file).stem}:\d+:{function}\b", graph.read_text())


@pytest.mark.proof
def test_the_flame_graph_shows_lines_of_cython(profiled, tmp_path):
    """Of a function that runs without the GIL, which no event profiler sees."""
    need("native")
    profiled("im2col.cython", "n1c64h56w56k64r3s3p1", "--native", tmp_path / "a.svg", "--seconds=2")
    assert re.search(r"_row \(_cython\.pyx:\d+\)", (tmp_path / "a.svg").read_text())
