"""The GPU implementations of conv_transpose2d and conv2d_backward, on stand-ins for a device, and on a device."""

import contextlib
import importlib

import numpy as np
import pytest
from gpu_stand_ins import cupy_on_numpy, on_numpy, replaced, torch_on_the_cpu
from gradients import ANYHOW, BACKWARD, CASES, PLAIN, TRANSPOSE, by_definition, check, data, problems, results
from hypothesis import given, settings
from hypothesis import strategies as st

import impls
from impls.conv2d.tensors import tensor

OPERATIONS = (TRANSPOSE, BACKWARD)
EVERY = [(operation, name) for operation in OPERATIONS for name in impls.names(operation, "cuda")]
each = pytest.mark.parametrize(("operation", "name"), EVERY, ids=map(" ".join, EVERY))


class OnTheCpu:
    """An implementation on its stand-in, called with NumPy arrays."""

    on_device = False

    def __init__(self, operation, name):
        with replaced(cupy_on_numpy()) if "cupy" in name else torch_on_the_cpu():
            self.function = impls.load(name, operation)
        self.family, self.arrays = self.function.family, self.function.arrays
        self.arguments = importlib.import_module(f"impls.{operation}.arguments")

    def __call__(self, *arrays, **settings):
        if self.arrays == "cupy":
            return on_numpy(self.function, *arrays, **settings)
        # Its own checks would refuse tensors that are not on a CUDA device.
        checked = self.arguments.checker("numpy", {})(*arrays, **settings)
        output = self.function.unchecked(*(tensor(a) if isinstance(a, np.ndarray) else a for a in checked))
        return tuple(part.numpy() for part in output) if isinstance(output, tuple) else output.numpy()


class OnTheDevice(OnTheCpu):
    """An implementation on the device, called with NumPy arrays. Skips the test where it cannot run."""

    on_device = True

    def __init__(self, operation, name):
        try:
            self.function = impls.load(name, operation)
        except impls.Unavailable as reason:
            pytest.skip(str(reason))
        self.family = self.function.family

    def __call__(self, *arrays, **settings):
        output = self.function(*(None if array is None else self.function.to_device(array) for array in arrays), **settings)
        return self.function.to_numpy(output)


@pytest.fixture(scope="module", params=[OnTheCpu, pytest.param(OnTheDevice, marks=pytest.mark.gpu)])
def load(request):
    """Every implementation once."""
    loaded = {}

    def once(operation, name):
        if (operation, name) not in loaded:
            loaded[operation, name] = request.param(operation, name)
        return loaded[operation, name]

    return once


@each
def test_named_cases(operation, name, load):
    for what in CASES.values():
        if what.operation == operation:
            for what.dtype in ("float32", "float64"):
                for whole in (True, False):
                    check(load(operation, name), what, data(what, whole), whole)


@each
def test_generated_cases(operation, name, load):
    function = load(operation, name)

    @settings(max_examples=60, deadline=None)
    @given(what=problems(operation), whole=st.booleans(), seed=st.integers(0, 2**16))
    def agrees(what, whole, seed):
        check(function, what, data(what, whole, seed), whole)

    agrees()


@each
def test_memory_may_lie_anyhow(operation, name, load):
    for what in ANYHOW[operation]:
        for lie in (np.asfortranarray, lambda array: array[..., ::-1].copy()[..., ::-1]):
            check(load(operation, name), what, [None if a is None else lie(a) for a in data(what, whole=True)], whole=True)


@pytest.mark.filterwarnings("ignore:invalid value")
@each
def test_nan_and_infinity_reach_what_they_enter_and_nothing_else(operation, name, load):
    if load(operation, name).on_device and load(operation, name).family == "cudnn":
        pytest.skip("cuDNN may choose a transform, which spreads them")
    for what in PLAIN[operation]:
        for value in (np.nan, np.inf):
            for place in range(2 if operation == TRANSPOSE else 3):
                arrays = data(what, whole=True)
                arrays[place].reshape(-1)[arrays[place].size // 2] = value
                expected = by_definition(what, arrays)
                for part, right in zip(results(load(operation, name)(*arrays, **what.settings)), expected, strict=True):
                    assert np.array_equal(part, right, equal_nan=True)


@pytest.mark.parametrize("partial", [1, 100])
def test_taps_may_be_shared_out_in_any_way(partial, monkeypatch):
    with replaced(cupy_on_numpy()):
        module = importlib.import_module("impls.conv2d_backward.gpu.cupy_direct")
        function = impls.load("gpu.cupy_direct", BACKWARD)
    monkeypatch.setattr(module, "PARTIAL", partial)
    for what in ANYHOW[BACKWARD]:
        arrays = data(what, whole=True)
        expected = impls.load("cpu.shift", BACKWARD)(*arrays, **what.settings)
        for part, right in zip(on_numpy(function, *arrays, **what.settings), expected, strict=True):
            assert np.array_equal(part, right)


@each
def test_unavailable_says_why(operation, name):
    with contextlib.suppress(impls.Unavailable):
        impls.load(name, operation)
        pytest.skip("a device is here")
    with pytest.raises(impls.Unavailable, match=f"{name} .*(pip install|CUDA device)"):
        impls.load(name, operation)
