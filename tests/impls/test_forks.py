"""After calls on several threads a forked child computes what its parent does, however it was forked: no call hangs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "helpers" / "forked_calls.py"
FORKS = ("child", "grandchild", "thread", "from a thread with loops", "parent", "pool", "server")
OPENMP = pytest.importorskip("impls.conv2d._cython_arguments", reason="the compiled kernels are not built")


def outcomes(ways, *kinds):
    """The output of each way to fork, with two threads for OpenMP and one for BLAS, which has a pool of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "NUMBA_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, SCRIPT, ",".join(ways), *kinds]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "kinds",
    [
        ("kernels",),
        *(pytest.param(one, marks=pytest.mark.proof) for one in (("numba",), ("torch",), ("opencv",))),
        pytest.param(("kernels", "numba", "torch", "opencv"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_results_are_the_parents(kinds):
    right = {"child": [], "grandchild": [[], []], "thread": [], "from a thread with loops": [[], []], "parent": [[], []]}
    assert outcomes(FORKS, *kinds) == {**right, "pool": [], "server": []}


def test_no_thread_holds_a_lock_while_the_process_forks():
    assert outcomes(["threads at a fork"], "kernels", "opencv") == {"threads at a fork": [[], 1]}


def test_opencv_keeps_its_number_of_threads():
    before, after, children = outcomes(["threads that fork at a time"], "opencv")["threads that fork at a time"]
    assert (after, children) == (before, [before])


@pytest.mark.parametrize("kind", ["kernels", "opencv"])
def test_what_another_library_forked_can_be_forked_again(kind):
    assert outcomes(["unannounced and then announced"], kind) == {"unannounced and then announced": []}


@pytest.mark.slow
def test_in_the_workers_of_torchs_loader():
    assert outcomes(["data loader"], "kernels", "torch") == {"data loader": []}


def test_where_threads_cannot_be_released_one_thread_computes_and_a_warning_says_so():
    for way, (wrong, said, threads) in outcomes(["unannounced", "in a loop"], "kernels").items():
        assert (wrong, threads) == ([], 1), way
        assert len(said) == 1
        assert "its parallel loops run on one thread; fork with os.fork() outside of parallel loops" in said[0]
