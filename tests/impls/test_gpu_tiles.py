"""The raw kernels that are compiled for each problem: any problem, in tiles of any size, nothing outside of the arrays."""

import importlib
import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from gpu_sanitized import LABELS
from gpu_stand_ins import cupy_on_numpy, on_numpy, replaced
from hypothesis import given, settings
from hypothesis import strategies as st

import impls
from benchmarks.workloads import oracle

HELPERS = Path(__file__).parents[1] / "helpers"
# By file, what decides how large its tiles or parts are: large ones, some, and those of so small a problem on a device.
SIZES = {"gpu.cupy_direct": ("BUSY", 1, 64, 1 << 16), "gpu.cupy_depthwise": ("BUSY", 1, 8, 512)}
SIZES["gpu.cupy_winograd"] = ("WORK", 1, 1 << 14, 1 << 25)


def pairs(low, high):
    return st.tuples(st.integers(low, high), st.integers(low, high))


@st.composite
def problems(draw, limits):
    """A call within the limits."""
    groups, channels = draw(st.integers(1, 3)), limits.get("C/groups") or draw(st.integers(1, 5))
    outputs = draw(st.sampled_from([1, 2, 3, 4, 8]))
    taps = limits.get("kernel") or draw(pairs(1, 5) | st.sampled_from([(3, 3), (7, 7), (1, 9), (11, 2), (12, 12)]))
    only = [limits.get(word, {1, 2, 3}) for word in ("stride", "dilation")]
    stride, dilation = (draw(pairs(1, max(steps) if isinstance(steps, set) else steps)) for steps in only)
    padding, longest = draw(pairs(0, 4)), draw(st.sampled_from([(9, 9), (20, 36), (3, 150)]))
    sides = [
        max(d * (count - 1) + 1 - 2 * around, 0) + draw(st.integers(1, most))
        for d, count, around, most in zip(dilation, taps, padding, longest, strict=True)
    ]
    return SimpleNamespace(
        input=(draw(st.integers(1, 3)), groups * channels, *sides),
        weight=(groups * outputs, channels, *taps),
        arguments={"stride": stride, "padding": padding, "dilation": dilation, "groups": groups},
        dtype=draw(st.sampled_from(["float32", "float64"])),
        bias=draw(st.booleans()),
        shifted=draw(st.integers(0, 3)),  # elements from where 128 bits may be read to where the input begins
    )


def data(what):
    """Input, weight and bias (or None) in small whole numbers."""
    random = np.random.default_rng(0)
    input, weight, bias = (
        random.integers(-8, 9, np.prod(shape) + what.shifted).astype(what.dtype)[what.shifted :].reshape(shape)
        for shape in (what.input, what.weight, what.weight[:1])
    )
    return input, weight, bias if what.bias else None


@pytest.mark.slow
@pytest.mark.parametrize("count", [10, pytest.param(100, marks=pytest.mark.proof)])
@pytest.mark.parametrize("name", SIZES)
def test_any_problem_in_tiles_of_any_size(name, count, monkeypatch):
    with replaced(cupy_on_numpy()):
        function, module = impls.load(name), importlib.import_module(f"impls.conv2d.{name}")
    what_decides, *sizes = SIZES[name]

    @settings(max_examples=count, deadline=None)
    @given(what=problems(function.limits), size=st.sampled_from(sizes))
    def agrees(what, size):
        monkeypatch.setattr(module, what_decides, size)
        module.launch.cache_clear()
        arrays = data(what)
        output = on_numpy(function, *arrays, **what.arguments)
        expected = impls.load("cpu.shift")(*arrays, **what.arguments)
        assert output.dtype == what.dtype
        units, largest = oracle.bounds(SimpleNamespace(dtype=what.dtype), "winograd", 9)[1], 64 * np.prod(what.weight[1:])
        rounding = units * oracle.UNIT[what.dtype] * largest if function.family == "winograd" else 0
        assert np.allclose(output, expected, rtol=0, atol=rounding)

    agrees()


def test_images_larger_than_32_bits_can_count():
    with replaced(cupy_on_numpy()):
        direct, depthwise = (impls.load(f"gpu.cupy_{name}") for name in ("direct", "depthwise"))
    input, weight = (np.arange(size, dtype="float32").reshape(1, 1, 1, size) for size in (9, 3))
    far = {"stride": (1 << 30, 1), "padding": (1 << 30, 1)}
    for function, dilation in itertools.product((direct, depthwise), (1, (1 << 30, 1))):
        output = on_numpy(function, input, weight, **far, dilation=dilation)
        assert output.shape == (1, 1, 3, 9)
        assert np.array_equal(output[0, 0, 1], np.correlate(np.pad(input[0, 0, 0], 1), weight[0, 0, 0]))
        assert not output[0, 0, ::2].any()


@pytest.mark.slow
@pytest.mark.parametrize("sizes", ["in turn", pytest.param("every", marks=pytest.mark.proof)])
def test_nothing_outside_of_the_arrays(sizes):
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    if not Path(library).is_absolute():
        pytest.skip("GCC's address sanitizer is not installed")
    done = subprocess.run(
        [sys.executable, "-P", str(HELPERS / "gpu_sanitized.py"), sizes],
        env={
            **os.environ,
            "PYTHONPATH": f"{HELPERS}{os.pathsep}{HELPERS.parents[1]}",
            "LD_PRELOAD": library,
            "PYTHONMALLOC": "malloc",
            "ASAN_OPTIONS": "detect_leaks=0",
        },
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > {"in turn": 1.5, "every": 3}[sizes] * len(LABELS)
