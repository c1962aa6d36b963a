"""Where Numba cannot compile, keep what it compiles or share its threads, loading says so and impls.conv2d does without."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install numba")
# Loads what has loops of Numba, and computes by rule where the kernels in Cython are not there.
SCRIPT = """
import json, sys
BEFORE
import numpy as np, impls
from impls.conv2d import choice

found = {}
for operation, name in [("adam_step", "cpu.numba"), ("conv2d", "cpu.numba_direct"), ("im2col", "cpu.numba")]:
    try:
        found[operation] = impls.load(name, operation).name
    except impls.Unavailable as error:
        found[operation] = str(error)
choice.instruction_set = lambda: None
choice._load = (lambda load: lambda name: "hidden" if "cython" in name or "torch" in name else load(name))(choice._load)
wide = np.ones((1, 8, 30, 30), "float32"), np.ones((24, 8, 3, 3), "float32")
found["picked"] = impls.explain(*wide).implementation.name
assert np.all(impls.conv2d(*wide) == 72)
print(json.dumps(found))
"""
NO_PLACE = "import numba.core.caching as caching; caching.CacheImpl._locator_classes = []"
NO_OPENMP = "sys.modules['numba.np.ufunc.omppool'] = sys.modules['numba.np.ufunc.tbbpool'] = None"
LAUNCHED = """
import numba
numba.config.THREADING_LAYER = "workqueue"
numba.set_num_threads(2)  # which starts them
numba.config.THREADING_LAYER = "default"
"""
# What is set, what runs before, and words of the reason; None where everything loads.
CONDITIONS = {
    "usual": ({}, "", None),
    "nothing compiled": ({"NUMBA_DISABLE_JIT": "1"}, "", "NUMBA_DISABLE_JIT has Numba compile nothing; unset it"),
    "no place to cache": ({}, NO_PLACE, "set NUMBA_CACHE_DIR to a writable folder"),
    "workqueue chosen": ({"NUMBA_THREADING_LAYER": "workqueue"}, "", "two calls at a time would end the process; install"),
    "workqueue left": ({}, NO_OPENMP, "workqueue, and two calls at a time would end the process; install libgomp"),
    "workqueue running": ({}, LAUNCHED, "workqueue, and two calls at a time would end the process"),
    "a layer that is not there": (
        {"NUMBA_THREADING_LAYER": "safe"},
        "sys.modules['numba.np.ufunc.tbbpool'] = None",
        "=safe;",
    ),
    "an unknown layer": ({"NUMBA_THREADING_LAYER": "mine"}, "", "no threads of NUMBA_THREADING_LAYER=mine; install"),
}
USUAL = ("workqueue chosen",)  # every case starts a process that imports Numba


@pytest.mark.parametrize(
    "which", [pytest.param(which, marks=[pytest.mark.slow] * (which not in USUAL)) for which in CONDITIONS]
)
def test_loading_says_what_numba_lacks(which):
    settings, before, words = CONDITIONS[which]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("BEFORE", before)],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if words is None:
        assert found == {
            "adam_step": "cpu.numba",
            "im2col": "cpu.numba",
            "conv2d": "cpu.numba_direct",
            "picked": "cpu.numba_direct",
        }
    else:
        assert all(words in found[operation] for operation in ("adam_step", "conv2d", "im2col")), found
        assert found["picked"] == "im2col.strided"
