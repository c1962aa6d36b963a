"""An implementation on a device that returns its last answer again is detected, as on the CPU; with stand-ins."""

import dataclasses
import functools
from types import SimpleNamespace

import numpy as np
import pytest
from gpu_stand_ins import cupy_on_numpy, replaced

import impls
from benchmarks.errors import WrongAnswer
from benchmarks.harness import cell
from benchmarks.timing import cuda_clock
from benchmarks.workloads.problems import Problem

PROBLEM = Problem.parse("n2c4h7w7k4r3s3p1g2")
OPERATIONS = ["conv2d", "conv2d_backward", "conv_transpose2d"]


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(cuda_clock, "of", lambda arrays: None)


def remembers(function, copied=lambda output: output):
    """Compute once and return that ever after: right until the input changes."""
    answers = []

    def again(*arrays, **settings):
        if not answers:
            answers.append(function(*arrays, **settings))
        return copied(answers[0])

    return again


def verified(function, operation="conv2d"):
    made = cell.task(operation, PROBLEM).check(function, {})
    assert made.on_device
    return made.verify(made.call())


def on_torch(operation, changed):
    """An implementation whose device is torch on the CPU."""
    torch = pytest.importorskip("torch")
    right = impls.load("cpu.torch", operation)

    @changed
    def compute(*tensors, **settings):
        found = right(*(tensor.numpy() for tensor in tensors), **settings)
        return tuple(map(torch.from_numpy, found)) if isinstance(found, tuple) else torch.from_numpy(found)

    class OnDevice(SimpleNamespace):
        def __call__(self, *tensors, **settings):
            return compute(*tensors, **settings)

    return OnDevice(
        device="cuda",
        arrays="torch",
        family="direct",
        synchronize=lambda: None,
        to_device=lambda array: torch.from_numpy(array.copy()),
        to_numpy=lambda found: tuple(part.numpy() for part in found) if isinstance(found, tuple) else found.numpy(),
    )


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_remembered_tensor_is_found_out(operation):
    assert verified(on_torch(operation, lambda function: function), operation)["called"] > 0
    with pytest.raises(WrongAnswer, match=r"^with the input negated, "):
        verified(on_torch(operation, remembers), operation)


@pytest.mark.parametrize("name", ["gpu.cupy_shift", "gpu.cupy_direct"])
def test_a_remembered_cupy_array_is_found_out(name):
    with replaced(cupy_on_numpy()):
        function = impls.load(name)
        assert verified(function)["relative_l2"] < 1e-5
        for copied in (lambda output: output, lambda output: output.copy()):
            with pytest.raises(WrongAnswer, match=r"^with the input negated, "):
                verified(dataclasses.replace(function, function=remembers(function.function, copied)))


def test_the_input_is_put_back():
    """On the device, where the next block reads it, and on the host, where the next implementation does."""
    seen = []

    def looking(function):
        @functools.wraps(function)
        def looked(input, weight, **settings):
            seen.append(input.numpy().copy())
            return function(input, weight, **settings)

        return looked

    task = cell.task("conv2d", PROBLEM)
    before = task.arrays[0].copy()
    made = task.check(on_torch("conv2d", looking), {})
    made.verify(made.call())
    made.call()
    assert np.array_equal(task.arrays[0], before)
    assert [np.array_equal(each, before) for each in seen] == [True, True, False, True]
    assert np.array_equal(seen[2], -before)
