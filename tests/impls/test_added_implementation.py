"""The two implementations that docs/add-an-implementation.md adds: copied from the page, built, and checked."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkouts import ROOT, copied, tried
from packages import python
from repositories import commit, git

PAGE = (ROOT / "docs" / "add-an-implementation.md").read_text(encoding="utf-8")
# What stands in the page, by the file that it belongs to.
TEXTS = dict(re.findall(r"^`([\w/.]+)`:\n\n```\w+\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
COMPARED = """
import numpy as np, impls
random = np.random.default_rng(1)
cases = [
    ((2, 3, 9, 11), (4, 3, 3, 5), {"padding": (1, 2)}),
    ((1, 6, 8, 7), (4, 3, 2, 3), {"stride": (2, 1), "dilation": (1, 2), "groups": 2}),
    ((0, 2, 5, 5), (3, 2, 3, 3), {}),
]
same = []
for shape, taps, settings in cases:
    for dtype in ("float32", "float64"):
        arrays = [random.integers(-8, 9, one).astype(dtype) for one in (shape, taps, taps[:1])]
        outputs = [impls.load(name)(*arrays, **settings) for name in ("cpu.my_cython", "cpu.loops")]
        same.append(outputs[0].dtype == dtype and np.array_equal(*outputs))
print(json.dumps(same))
"""


def added(folder, *paths):
    """A copy of the checkout with these files of the page."""
    copied(folder)
    for path in paths:
        (folder / path).write_text(TEXTS[path], encoding="utf-8")
    return folder


def test_the_page_has_the_files():
    files = {f"impls/conv2d/cpu/{name}" for name in ("my_numba.py", "my_cython.py", "_my_cython.pyx")}
    assert set(TEXTS) == {*files, "meson.build"}


@pytest.mark.slow
def test_the_numba_one_is_tried_at_once(tmp_path):
    pytest.importorskip("numba", reason="the implementation is Numba's: pip install numba")
    folder = added(tmp_path / "project", "impls/conv2d/cpu/my_numba.py")
    git(folder, "init", "--quiet")
    commit(folder, "before")
    command = re.search(r"^convbench (try .* cpu\.my_numba .*)$", PAGE, re.MULTILINE)[1].split()
    assert tried(folder, command) == {"cpu.my_numba": "ok", "cpu.torch": "ok"}


@pytest.mark.slow
def test_the_cython_one_is_built_by_its_line_and_right(tmp_path):
    meson, ninja = (shutil.which(name, path=PATH) for name in ("meson", "ninja"))
    if not (meson and ninja):
        pytest.skip("meson or ninja is not installed: pip install meson ninja")
    folder = added(tmp_path / "project", "impls/conv2d/cpu/my_cython.py", "impls/conv2d/cpu/_my_cython.pyx")
    build = folder / "meson.build"
    before, beginning, after = build.read_text(encoding="utf-8").partition("kernels = [\n")
    assert beginning
    build.write_text(before + beginning + TEXTS["meson.build"] + after, encoding="utf-8")
    environment = {**os.environ, "PATH": PATH}

    def run(*command):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    objects = tmp_path / "objects"
    run(meson, "setup", objects, folder)
    targets = json.loads(run(meson, "introspect", "--targets", objects))
    modules = [target for target in targets if target["type"] == "shared module"]
    made = {target["name"].partition(".")[0]: target["filename"][0] for target in modules}
    for name, place in (("_my_cython", "conv2d/cpu"), ("_cython_shared", ".")):
        run(ninja, "-C", objects, os.path.relpath(made[name], objects))
        shutil.copy2(made[name], folder / "impls" / place)
    assert python(COMPARED, folder) == [True] * 6
