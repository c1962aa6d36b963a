"""The torch implementations without a GPU: their code on CPU tensors, and the settings under which they call torch."""

import itertools

import numpy as np
import pytest
import torch
from cases import case
from gpu_problems import DTYPES, LABELS, SETTINGS, judge, lying_anyhow, outside, whole_numbers
from gpu_stand_ins import on_the_cpu, torch_on_the_cpu

import impls
from benchmarks.workloads import inputs
from benchmarks.workloads.problems import Problem
from impls.contract import declaration

HALVES = ("gpu.torch_fp16", "gpu.torch_bf16")
NAMES = [name for name in impls.names(device="cuda") if declaration(name)["arrays"] == "torch" and "triton" not in name]
# Whether TF32 is on.
CUDNN = dict.fromkeys(("gpu.torch", "gpu.torch_channels_last", *HALVES), False) | {"gpu.torch_tf32": True}
BACKENDS = torch.backends


@pytest.fixture(scope="module")
def load():
    """impls.load as if there were a device: every file once; on one thread, since threads that share cores wait."""
    with torch_on_the_cpu():
        loaded = {name: impls.load(name) for name in NAMES}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield loaded.__getitem__
    torch.set_num_threads(threads)


def test_the_names():
    assert set(NAMES) == {*CUDNN, "gpu.torch_shift", "gpu.torch_shift_matmul"}


@pytest.mark.parametrize("name", NAMES)
def test_problems(name, load):
    family = load(name).family if name in HALVES else "direct"
    problems = [Problem.parse(label, dtype=dtype) for label, dtype in itertools.product(LABELS, DTYPES)]
    within = [problem for problem in problems if not outside(declaration(name), problem)]
    assert within
    for problem in within:
        with case(problem.label, problem.dtype):
            judge(problem, family, lambda *arrays, problem=problem: on_the_cpu(load(name), *arrays, **problem.arguments))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_bias_and_memory_in_any_order(name, settings, dtype, load):
    if name in HALVES and dtype == "float64":
        pytest.skip("outside its limits")
    input, weight, bias = whole_numbers(dtype)
    for start in (bias, None):
        expected = impls.load("cpu.loops")(input, weight, start, **settings)
        for turned, taps in itertools.product(lying_anyhow(input), lying_anyhow(weight)):
            output = on_the_cpu(load(name), turned, taps, start, **settings)
            assert output.dtype == dtype
            assert np.allclose(output, expected, rtol=0, atol=8 if name in HALVES else 0)
    assert all(map(np.array_equal, (input, weight, bias), whole_numbers(dtype)))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CUDNN])
def test_numbers_that_are_not_finite_stay_where_they_belong(name, load):
    input, weight, bias = whole_numbers("float32")
    weight[2] = 0
    input[1, 2, 3, 4] = np.inf
    with np.errstate(invalid="ignore"):
        expected = impls.load("cpu.loops")(input, weight, bias, padding=1)
    assert np.array_equal(on_the_cpu(load(name), input, weight, bias, padding=1), expected, equal_nan=True)


# Settings, whatever they were before


def cudnn():
    """Of cuDNN: whether it is used, whether it tries algorithms, how it multiplies float32."""
    return BACKENDS.cudnn.enabled, BACKENDS.cudnn.benchmark, BACKENDS.cudnn.conv.fp32_precision


def set_precision(backend, precision):
    backend.fp32_precision = precision


BEFORE = {
    "as torch has it": lambda: None,
    "benchmark": lambda: setattr(BACKENDS.cudnn, "benchmark", True),
    "no cudnn": lambda: setattr(BACKENDS.cudnn, "enabled", False),
    "TF32 off": lambda: setattr(BACKENDS.cudnn, "allow_tf32", False),
    "TF32 everywhere": lambda: set_precision(BACKENDS, "tf32"),
    "TF32 for products": lambda: torch.set_float32_matmul_precision("medium"),
}


@pytest.fixture
def settings():
    """Restore all settings after a test."""
    enabled, benchmark = BACKENDS.cudnn.enabled, BACKENDS.cudnn.benchmark
    yield
    set_precision(BACKENDS, "none")
    set_precision(BACKENDS.cudnn, "none")
    torch.set_float32_matmul_precision("highest")
    BACKENDS.cudnn.allow_tf32 = True
    BACKENDS.cudnn.enabled, BACKENDS.cudnn.benchmark = enabled, benchmark


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", CUDNN)
@pytest.mark.usefixtures("settings")
def test_cudnn_is_set_for_the_call_alone(name, before, load, monkeypatch):
    BEFORE[before]()
    around, within, convolve = cudnn(), [], torch.nn.functional.conv2d
    monkeypatch.setattr("torch.nn.functional.conv2d", lambda *arguments: within.append(cudnn()) or convolve(*arguments))
    on_the_cpu(load(name), *whole_numbers("float32"))
    ((enabled, benchmark, precision),) = within
    assert (enabled, benchmark) == (True, False)
    assert (precision == "tf32") is CUDNN[name]
    assert cudnn() == around


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("operation", ["conv_transpose2d", "conv2d_backward"])
@pytest.mark.usefixtures("settings")
def test_in_the_other_direction_cudnn_is_set_for_the_call_alone(operation, before, monkeypatch):
    BEFORE[before]()
    around, within = (*cudnn(), BACKENDS.cudnn.deterministic), []
    with torch_on_the_cpu():
        function = impls.load("gpu.torch", operation)

    def spy(*arguments):
        within.append((*cudnn(), BACKENDS.cudnn.deterministic))
        return real(*arguments)

    problem = Problem.parse("n2c4h7w7k6r3s3p1g2")
    arrays = [torch.from_numpy(array) for array in inputs.make(problem, operation)]
    if operation == "conv_transpose2d":
        real = torch.nn.functional.conv_transpose2d
        monkeypatch.setattr("torch.nn.functional.conv_transpose2d", spy)
        function.unchecked(*arrays, None, (1, 1), (1, 1), (0, 0), 2, (1, 1))
    else:
        real = torch.ops.aten.convolution_backward
        monkeypatch.setattr(torch.ops.aten, "convolution_backward", spy)
        function.unchecked(*arrays, (1, 1), ((1, 1), (1, 1)), (1, 1), 2)
    ((enabled, benchmark, precision, deterministic),) = within
    assert (enabled, benchmark, deterministic) == (True, False, True)
    assert precision != "tf32"
    assert (*cudnn(), BACKENDS.cudnn.deterministic) == around


@pytest.mark.parametrize("before", [word for word in BEFORE if word != "TF32 everywhere"])
@pytest.mark.usefixtures("settings")
def test_products_are_set_for_the_call_alone(before, load, monkeypatch):
    BEFORE[before]()
    around, within, multiply = torch.get_float32_matmul_precision(), [], torch.Tensor.__matmul__

    def spy(*factors):
        within.append((BACKENDS.cuda.matmul.allow_tf32, BACKENDS.cuda.matmul.fp32_precision))
        return multiply(*factors)

    monkeypatch.setattr(torch.Tensor, "__matmul__", spy)
    on_the_cpu(load("gpu.torch_shift_matmul"), *whole_numbers("float32"))
    assert set(within) == {(False, "ieee")}
    assert torch.get_float32_matmul_precision() == around


@pytest.mark.usefixtures("settings")
def test_products_are_set_back_after_an_error(load):
    torch.set_float32_matmul_precision("high")
    input, weight, _ = whole_numbers("float32")
    with pytest.raises(RuntimeError):
        on_the_cpu(load("gpu.torch_shift_matmul"), input, weight.astype("float64"))
    assert torch.get_float32_matmul_precision() == "high"
