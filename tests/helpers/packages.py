"""The package `impls` as files, and scripts that import a copy of it."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import impls

PACKAGE = Path(impls.__file__).parent


# An editable install would find `impls` before PYTHONPATH does.
FIRST = """
import json, sys
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "MesonpyMetaFinder"]
"""


def python(code, path):
    """Run code in a fresh interpreter whose PYTHONPATH is `path`; return the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", FIRST + textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(path)},
        cwd=path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


EINSUM = '''
"""Sliding windows and einsum."""

import numpy as np

from impls.contract import implementation
from impls.conv2d import geometry


@implementation(device="cpu", family="windows", summary="NumPy: sliding windows and einsum", limits={"groups": 1})
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate."""
    windows = geometry.windows(geometry.pad(input, padding), weight.shape[2:], stride, dilation)
    return geometry.add_bias(np.einsum("ncpqrs,kcrs->nkpq", windows, weight), bias)
'''
