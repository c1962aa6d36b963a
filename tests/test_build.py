"""Only the kernels that need missing headers are left out of a build."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MESON = shutil.which("meson", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
JPEG = "_cython_jpeg"


def kernels(folder, **environment):
    """The names of the kernels that would be compiled."""
    if MESON is None:
        pytest.skip("meson is not installed: pip install meson ninja")
    path = os.pathsep.join([str(Path(MESON).parent), os.environ["PATH"]])
    command = [MESON, "setup", "--reconfigure", folder, ROOT]
    done = subprocess.run(
        command, env={**os.environ, "PATH": path, **environment}, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stdout
    listed = subprocess.check_output([MESON, "introspect", "--targets", folder], text=True)
    return {target["name"].partition(".")[0] for target in json.loads(listed)}


@pytest.mark.proof
def test_without_libjpegs_headers_the_rest_is_built(tmp_path):
    found = kernels(tmp_path / "found")
    hidden = kernels(tmp_path / "hidden", PKG_CONFIG_LIBDIR=str(tmp_path), CMAKE_PREFIX_PATH=str(tmp_path))
    assert {"_cython_direct", "_cython_preprocess", "_ufunc_normalise"} <= hidden
    assert JPEG not in hidden
    assert found - hidden <= {JPEG}
    if Path("/usr/include/jpeglib.h").exists():
        assert JPEG in found
