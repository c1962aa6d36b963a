"""The suite gives no time for a wrong answer, and the same list of cells whatever is installed."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cases import case

import impls
from benchmarks import conv2d, im2col
from benchmarks.harness import cell
from benchmarks.workloads.operations import OPERATIONS
from benchmarks.workloads.problems import Problem

pytestmark = pytest.mark.first
ROOT = Path(__file__).parents[2]
CPU = {operation: impls.names(operation, "cpu") for operation in OPERATIONS}
# The first implementation of each family: a family has bounds of its own by which it is judged.
JUDGED = {
    operation: [*{impls.contract.declaration(name, operation)["family"]: name for name in reversed(names)}.values()]
    for operation, names in CPU.items()
}


def python(code, *arguments, **options):
    """Run code in a fresh interpreter at the root of the checkout."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False, **options)


@pytest.fixture(
    scope="module",
    params=[pytest.param(JUDGED, id="of each family"), pytest.param(CPU, id="every", marks=pytest.mark.proof)],
)
def verdicts(request):
    """The verdict on each fault in each implementation: {operation: {name: {fault: (status, reason, whether stored)}}}."""
    script = [sys.executable, ROOT / "tests" / "helpers" / "broken_cells.py", json.dumps(request.param)]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def judged(verdicts, fault):
    """The verdicts on one fault: (operation, name, status, reason, whether a time was stored)."""
    return [(operation, name, *found[fault]) for operation in OPERATIONS for name, found in verdicts[operation].items()]


SAID = {
    "remembered": "with the input negated",
    "changes_its_input": "it changed what it was given",
    "changes_its_weight": "it changed what it was given",
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["tap_off_by_one", "border_row", "wrong_group", "nan", "wrong_later", *SAID])
def test_a_broken_implementation_fails_and_has_no_time(verdicts, fault):
    for operation, name, status, reason, stored in judged(verdicts, fault):
        nan = "the output is nan at n=0, k=1, p=3, q=4" if operation == "conv2d" else "input is nan at n=0, c=1, y=3, x=4"
        with case(operation, name):
            assert (status, stored) == ("failed", False)
            assert reason.startswith("WrongAnswer: ")
            assert (nan if fault == "nan" else SAID.get(fault, "relative L2 error")) in reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("tap_of_the_weight", "relative L2 error .* worst at k=., c=., r=2, s=2: 0, not "),
        ("nan_in_the_weight", "the result like the weight is nan at k=3, c=1, r=2, s=0$"),
        ("value_of_the_bias", "relative L2 error .* worst at k=3: 0, not "),
        ("no_bias", "it returned 2 arrays, not 3$"),
    ],
)
def test_every_gradient_is_judged(verdicts, fault, said):
    for name, found in verdicts["conv2d_backward"].items():
        status, reason, stored = found[fault]
        with case(name):
            assert (status, stored) == ("failed", False)
            assert re.match(f"WrongAnswer: {said}", reason)


@pytest.mark.slow
def test_the_same_cell_unbroken_has_a_time(verdicts):
    for operation, name, status, remark, stored in judged(verdicts, "unbroken"):
        with case(operation, name):
            assert (status, stored) == ("ok", True)
            assert remark is None or remark.startswith("the host took ")  # a busy host is no fault of the cell


LIST = """
import sys
sys.path.append(".")
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split():
            raise ImportError(f"{name} is hidden", name=name)
sys.meta_path.insert(0, Hide())
from asv_runner.discovery import list_benchmarks
list_benchmarks("benchmarks", sys.stdout)
"""


def test_the_list_of_cells_does_not_depend_on_what_is_installed():
    everything = python(LIST, "nothing")
    bare = python(LIST, "torch cupy numba scipy sklearn PIL threadpoolctl impls")
    assert everything.returncode == 0, everything.stderr
    assert bare.returncode == 0, bare.stderr
    assert bare.stdout == everything.stdout
    found = {entry["name"]: entry for entry in json.load(io.StringIO(everything.stdout))}
    for name, entry in found.items():
        compiled = {
            "adam_step": {"'cpu.cython_fused'", "'cpu.torch_fused'"},
            "decode_jpeg": {"'cpu.libjpeg_region'", "'cpu.opencv'"},
            "im2col": {"'cpu.numba'", "'cpu.torch_unfold'"},
            "preprocess": {"'cpu.cython_fused'", "'cpu.opencv'"},
            "read_batch": {"'cpu.rasterio'", "'cpu.raw_numba'"},
            "train_step": {"'cpu.auto'", "'cpu.torch'"},
            "train_tiles": {"'cpu.rasterio'", "'cpu.raw_numba'"},
        }
        if entry["param_names"][0] == "implementation":
            assert compiled.get(name.partition(".")[0], {"'cpu.cython_direct'", "'cpu.torch'"}) < set(entry["params"][0])
    assert {name.rpartition(".")[0] for name in found if not name.startswith("conv2d.")} == {
        *("ceilings.Ceilings", "conv_transpose2d.Layers", "conv2d_backward.Layers"),
        *("adam_step.Parameters", "adam_step.Networks", "adam_step.Threads", "read_batch.Warm", "read_batch.Cold"),
        *("train_step.Networks", "train_step.Threads", "preprocess.Batch", "preprocess.Region", "preprocess.Threads"),
        *("decode_jpeg.Scale", "decode_jpeg.Region", "decode_jpeg.Batch"),
        *("device_ceilings.DeviceCeilings", "transfers.Transfers"),
        *("im2col.ImageSize", "im2col.Rank", "im2col.Threads", "train_tiles.Readers"),
    }
    assert {name.split(".")[1] for name in found if name.startswith("conv2d.")} == {
        *(
            "ImageSize",
            "KernelSize",
            "Batch",
            "Channels",
            "Threads",
            "Layers",
            "ColdCache",
            "Device",
            "Launches",
            "Memory",
            "Startup",
        )
    }


def test_every_cell_knows_its_problem():
    for entry in json.loads(python(LIST, "nothing").stdout):
        if "axis" not in entry:
            assert "implementation" not in entry["param_names"]
            continue
        values = entry["params"][entry["param_names"].index(entry["axis"])]
        assert list(entry["problems"]) == values
        assert set(entry["quick"]) <= set(values)
        assert all(problem["label"] for problem in entry["problems"].values())
        module, _, function = entry["name"].split(".")
        if function == f"time_{module}":  # the others are not the time of one call: no rate is made of them
            assert all(problem["flops"] > 0 and problem["bytes"] > 0 for problem in entry["problems"].values())
        else:
            assert not any("flops" in problem for problem in entry["problems"].values())
        assert entry["param_names"][0] == "implementation"


def test_slow_implementations_have_the_larger_images_that_are_named():
    """Beyond their cutoff of work; each is a problem of the suite, and one that is as large but not named stays left out."""
    problems = {
        "conv2d": {problem.label: problem for problem in conv2d.ImageSize.problems.values()},
        "im2col": {each.label: each for kind in (im2col.ImageSize, im2col.Rank) for each in kind.problems.values()},
    }
    larger = {key: entry["also"] for key, entry in cell._all_cutoffs().items() if "also" in entry}
    assert {"cpu.loops", "im2col.naive", "im2col/cpu.naive"} < set(larger)
    for key, labels in larger.items():
        operation, _, name = key.rpartition("/")
        operation = operation or "conv2d"
        assert name in impls.names(operation)
        for label in labels:
            with case(key, label):
                assert cell.too_slow(name, cell.task(operation, problems[operation][label])) is None
    assert cell.too_slow("cpu.loops", cell.task("conv2d", Problem.parse("n1c1h255w256k1r3s3p1"))).startswith("1.2e+06 FLOPs")


def test_names_are_the_files_of_the_checkout():
    for operation in cell.TASKS:
        assert cell.implementations(operation) == impls.names(operation)
        assert {name: found["device"] for name, found in cell.declarations(operation).items()} == {
            name: impls.contract.declaration(name, operation)["device"] for name in impls.names(operation)
        }


ARRAYS = """
import sys
sys.path.append(".")
import numpy as np, impls
image = np.ones((1, 8, 64, 64), np.float32)
weight = np.ones((8, 8, 3, 3), np.float32)
"""

POOLS = (
    """
import ctypes, os, signal, sys, time
sys.path.append(".")
sys.argv.append("run_server")  # as asv's fork server is started: the suite then imports every library in the parent
import benchmarks
assert {"torch", "numba", "scipy"} <= set(sys.modules), "the parent imported nothing"
import numba, torch
from benchmarks.timing import threads
"""
    + ARRAYS
    + """
work = {
    "BLAS": lambda: np.ones((512, 512)) @ np.ones((512, 512)),
    "torch": lambda: impls.load("cpu.torch")(image, weight),
    "numba": lambda: impls.load("cpu.numba_direct")(image, weight),
    "OpenMP": lambda: impls.load("cpu.cython_direct")(image, weight),
}
for pool, call in work.items():
    started = time.monotonic()
    child = os.fork()
    if not child:
        signal.alarm(int(sys.argv[1]))
        threads.set_pools(2 if len(threads.cores()) > 1 else 1)
        call()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(pool, status, round(time.monotonic() - started, 2))
    assert status == 0, f"{pool} did not run in a forked child: status {status}"
"""
)


@pytest.mark.alone
def test_after_the_preimport_a_forked_child_runs_each_thread_pool_within_five_seconds():
    # The first call with these shapes compiles Numba's kernel for them, which the five seconds are not about.
    compiled = python(ARRAYS + "impls.load('cpu.numba_direct')(image, weight)")
    assert compiled.returncode == 0, compiled.stderr
    done = python(POOLS, "5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["BLAS", "torch", "numba", "OpenMP"]


@pytest.mark.parametrize("pool", ["numba", "torch", "cv2"])
def test_a_pool_that_does_not_follow_fails_the_cell(pool, monkeypatch):
    code = f"""
import sys, types
sys.path.append(".")
from benchmarks.timing import threads
stubborn = types.SimpleNamespace(
    set_num_threads=lambda n: None, get_num_threads=lambda: 7, setNumThreads=lambda n: None, getNumThreads=lambda: 7,
    config=types.SimpleNamespace(NUMBA_NUM_THREADS=8),
)
sys.modules[{pool!r}] = stubborn
try:
    threads.set_pools(1)
except threads.PoolError as error:
    print(error)
"""
    name = {"cv2": "opencv"}.get(pool, pool)
    assert python(code).stdout.strip() == f"1 threads were set, but {name} has 7"


def test_threads_are_set_and_read_back_everywhere():
    code = """
import sys
sys.path.append(".")
import json, numba, torch, impls
impls.load("cpu.cython_direct")
from benchmarks.timing import threads
threads.confine(1)
print(json.dumps([threads.set_pools(1), threads.cores()]))
"""
    pools, cores = json.loads(python(code).stdout)
    assert set(pools.values()) == {1}
    assert {"numba", "torch"} < set(pools)
    assert any("openmp" in pool for pool in pools)
    assert any("blas" in pool for pool in pools)
    assert len(cores) == 1


def test_no_cell_changes_its_meaning_unnoticed():
    """Additions are free; a changed problem needs its class's version raised, or old times would be taken for new ones.

    UPDATE_GOLDEN=1 writes down what the cells mean now.
    """
    golden = ROOT / "tests" / "golden" / "problems.json"
    code = """
import json, sys
sys.path.append(".")
from benchmarks import adam_step, ceilings, conv2d, conv2d_backward, conv_transpose2d, preprocess, read_batch, train_step
from benchmarks import decode_jpeg, im2col, train_tiles
from benchmarks.timing import limits
new = decode_jpeg, im2col, train_tiles
modules = conv2d, conv2d_backward, conv_transpose2d, adam_step, read_batch, preprocess, train_step, *new
classes = [c for m in modules for c in vars(m).values() if hasattr(c, "problems") and c.__name__[0] != "_"]
names = {c: f"{c.operation}.{c.__name__}" for c in classes}
cells = {names[c]: {"version": c.version, **{str(v): repr(p) for v, p in c.problems.items()}} for c in classes}
cells["Ceilings"] = {"version": ceilings.Ceilings.version, **{k: repr(v) for k, v in limits.LIMITS.items()}}
print(json.dumps(cells, indent=1))
"""
    now = json.loads(python(code).stdout)
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(json.dumps(now, indent=1) + "\n")
    for name, cells in json.loads(golden.read_text()).items():
        if now[name]["version"] == cells["version"]:
            assert {value: now[name].get(value) for value in cells} == cells, f"raise the version of {name}"


def test_what_cannot_be_measured_after_the_preparation_is_left_out_and_not_failed(tmp_path):
    code = """
import json, os, sys
sys.path.append(".")
from asv_runner.run import _run
from benchmarks import conv2d
from benchmarks.timing import memory
def unreadable(field):
    raise OSError("no such mark")
memory._resident = unreadable
cell = conv2d.Memory.params[0].index("cpu.shift") * len(conv2d.Memory.problems)
_run(("benchmarks", f"conv2d.Memory.track_peak_extra_bytes-{cell}", "{}", "None", sys.argv[1]))
"""
    stored, side = tmp_path / "result.json", tmp_path / "cells.jsonl"
    done = python(code, str(stored), env={**os.environ, "CONVBENCH_CELLS": str(side)})
    assert done.returncode == 0, done.stderr
    assert stored.read_text() == "NaN"
    (line,) = map(json.loads, side.read_text().splitlines())
    assert line["status"] == "skipped"
    assert line["reason"].startswith("unavailable: this system cannot reset")
