"""The GPU implementations on a GPU (pytest -m gpu), and the errors without one."""

import contextlib
import importlib
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from cases import case
from gpu_problems import DTYPES, LABELS, SETTINGS, judge, whole_numbers
from gpu_stand_ins import cupy_on_numpy, replaced

import impls
from benchmarks.workloads.problems import Problem
from impls.contract import declaration
from impls.conv2d.devices import require_cupy, require_torch

NAMES = impls.names(device="cuda")
LAYERS = ["n1c64h56w56k64r3s3p1", "n1c512h7w7k512r3s3p1", "n1c3h224w224k64r7s7t2p3", "n1c512h14w14k512r1s1"]
# A launch and more for every tap or pair of channels: a minute for the deepest layers.
LAUNCHING = {"gpu.cupy_ndimage", "gpu.cupy_shift", "gpu.torch_shift"}


@pytest.mark.parametrize("name", NAMES)
def test_unavailable_says_why(name):
    with contextlib.suppress(impls.Unavailable):
        impls.load(name)
        pytest.skip("a device is here")
    with pytest.raises(impls.Unavailable, match=f"{name} .*(pip install|CUDA device)"):
        impls.load(name)


def test_cupy_without_a_device(monkeypatch):
    with replaced(cupy_on_numpy()) as modules:
        runtime = modules["cupy"].cuda.runtime
        assert require_cupy("gpu.mine") is None
        monkeypatch.setattr(runtime, "getDeviceCount", lambda: 0)
        with pytest.raises(impls.Unavailable, match=r"^gpu\.mine needs a CUDA device; CuPy sees none here$"):
            require_cupy("gpu.mine")

        def fails():
            raise runtime.CUDARuntimeError("cudaErrorInsufficientDriver: the driver is too old")

        monkeypatch.setattr(runtime, "getDeviceCount", fails)
        with pytest.raises(impls.Unavailable, match=r"^gpu\.mine needs a CUDA device .*driver; CuPy says cudaErrorIns"):
            require_cupy("gpu.mine")


@pytest.mark.parametrize("error", [RuntimeError("no libnvrtc.so.13"), ImportError("libnvrtc.so.12: cannot open"), None])
def test_cupy_without_a_compiler(error, monkeypatch):
    def version():
        if error:
            raise error
        return 13, 0

    with replaced(cupy_on_numpy()) as modules:
        monkeypatch.setattr(modules["cupy"].cuda, "nvrtc", SimpleNamespace(getVersion=version), raising=False)
        if error is None:
            require_cupy("gpu.mine")
        else:
            with pytest.raises(impls.Unavailable, match=r"^gpu\.mine needs NVRTC, .* pip install cupy-cuda13x\[ctk\]$"):
                require_cupy("gpu.mine")


@pytest.mark.parametrize(
    ("built", "words"),
    [
        (None, r"torch built for CUDA, and a CUDA device; .* pip install torch.* for CUDA$"),
        ("13.0", r"a CUDA device and NVIDIA's driver; torch sees none here$"),
    ],
)
def test_torch_without_a_device(built, words, monkeypatch):
    monkeypatch.setattr("torch.version.cuda", built)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(impls.Unavailable, match=rf"^gpu\.mine needs {words}"):
        require_torch("gpu.mine")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert require_torch("gpu.mine") is None
    monkeypatch.setattr("torch.backends.cudnn.flags", lambda enabled, benchmark, deterministic, allow_tf32: None)
    with pytest.raises(
        impls.Unavailable, match=r"^gpu\.mine needs a torch that can set cuDNN's precision .*: pip install torch.* or later$"
    ):
        require_torch("gpu.mine")


# On a device


def load(name):
    try:
        return impls.load(name)
    except impls.Unavailable as reason:
        pytest.skip(str(reason))


def on_device(function, *arrays, **settings):
    output = function(*(None if array is None else function.to_device(array) for array in arrays), **settings)
    function.synchronize()
    return function.to_numpy(output)


def near(function, output, right):
    return np.allclose(output, right, rtol=1e-5, atol=8 if function.family in ("fp16", "bf16") else 1e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_problems(name):
    function, judged = load(name), 0
    for label, dtype in itertools.product([*LABELS, *LAYERS], DTYPES):
        problem = Problem.parse(label, dtype=dtype)
        if function.unsupported(problem.input_shape, problem.weight_shape, dtype=dtype, **problem.arguments):
            continue
        if name in LAUNCHING and problem.k * problem.taps > 100_000:  # too many launches to wait for
            continue
        # TF32 is of float32: float64 stays what it is.
        family = "library" if (function.family, dtype) == ("tf32", "float64") else function.family
        with case(label, dtype):
            judge(problem, family, lambda *arrays, problem=problem: on_device(function, *arrays, **problem.arguments))
        judged += 1
    assert judged


@pytest.mark.gpu
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_bias(name, settings):
    function = load(name)
    for dtype in DTYPES:
        arrays = whole_numbers(dtype, function.limits)
        if reason := function.unsupported(arrays[0].shape, arrays[1].shape, dtype=dtype, **settings):
            pytest.skip(reason)
        right = impls.load("cpu.loops")(*arrays, **settings)
        output = on_device(function, *arrays, **settings)
        assert output.dtype == dtype
        assert near(function, output, right)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_the_same_mistakes_are_errors(name):
    function = load(name)
    assert {key: getattr(function, key) for key in declaration(name)} == declaration(name)
    input, weight, bias = whole_numbers("float32", function.limits)
    with pytest.raises(
        TypeError,
        match=r"^input must be a (CuPy array|torch tensor on a CUDA device), not ndarray: the impl",
    ):
        function(input, weight)
    with pytest.raises(TypeError, match=r"one dtype, not input .*float32, weight .*float64"):
        on_device(function, input, weight.astype("float64"))
    for settings in ({"stride": 0}, {"padding": "full"}, {"groups": 3}, {"dilation": 9}):
        with pytest.raises(ValueError) as host:  # noqa: PT011, the text is compared
            impls.load("cpu.loops")(input, weight, bias, **settings)
        with pytest.raises(ValueError) as device:  # noqa: PT011
            on_device(function, input, weight, bias, **settings)
        assert str(device.value) == str(host.value)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_memory_in_any_order(name):
    function = load(name)
    input, weight, bias = whole_numbers("float32", function.limits)
    right = impls.load("cpu.loops")(input, weight, bias, padding=1)
    device = [function.to_device(array) for array in (input, weight, bias)]
    image = function.to_device(np.ascontiguousarray(input.transpose(3, 1, 0, 2)))
    turned = image.transpose(2, 1, 3, 0) if function.arrays == "cupy" else image.permute(2, 1, 3, 0)
    output = function.to_numpy(function(turned, *device[1:], padding=1))
    assert near(function, output, right)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_not_a_number_stays_in_its_image(name):
    function = load(name)
    input, weight, bias = whole_numbers("float32", function.limits)
    right = impls.load("cpu.loops")(input, weight, bias, padding=1)
    input[1, -1, 3, 4] = np.nan
    output = on_device(function, input, weight, bias, padding=1)
    assert near(function, output[0], right[0])
    assert np.isnan(output[1]).any()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "label",
    [
        "n3c5h7w7k5r3s3p1g5",
        "n1c7h14w14k7r3s3t2p1g7",
        "n2c9h28w28k9r5s5p2g9",
        "n1c3h33w90k6r7s7p3g3",
        "n1c2h40w1100k2r7s7p3g2",
    ],
)
@pytest.mark.parametrize("busy", [1, 1 << 10])
def test_depthwise_groups_of_several_images(busy, label, dtype, monkeypatch):
    """On a device that few warps keep busy, a warp has many images, the last one fewer; copies are late as nowhere else."""
    function, module = load("gpu.cupy_depthwise"), importlib.import_module("impls.conv2d.gpu.cupy_depthwise")
    monkeypatch.setattr(module, "BUSY", busy)
    module.launch.cache_clear()
    problem = Problem.parse(label, dtype=dtype)
    for _ in range(3):
        judge(problem, function.family, lambda *arrays: on_device(function, *arrays, **problem.arguments))
    module.launch.cache_clear()
