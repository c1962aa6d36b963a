"""Implementations are handed on as functions are: pickled, copied, compared, described, and called in other processes."""

import copy
import functools
import inspect
import io
import multiprocessing
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from packages import EINSUM

import impls
from impls.contract import implementation, wrap
from impls.train_step.layers import Conv2d, convolution

X, W = np.arange(50, dtype="float32").reshape(1, 2, 5, 5), np.arange(36, dtype="float32").reshape(2, 2, 3, 3)
SIGNATURE = "(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)"


@implementation(device="cpu", family="direct", summary="sums")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return impls.load("cpu.shift").unchecked(input, weight, bias, stride, padding, dilation, groups)


def prepare(weight, *settings):
    return lambda input: conv2d.unchecked(input, weight, *settings)


def tensors(function):
    """A function of tensors as one of arrays."""
    return lambda *arrays: function(*map(torch.from_numpy, arrays)).detach().numpy()


def parts():
    """The object that is handed on, and its call."""
    packed = impls.load("cpu.cython_packed").prepare
    yield from {
        "impls.conv2d": (impls.conv2d, lambda function: function(X, W)),
        "an implementation": (impls.load("cpu.shift"), lambda function: function(X, W)),
        "one that picks": (impls.load("cpu.auto"), lambda function: function(X, W)),
        "one that packs": (impls.load("cpu.cython_packed"), lambda function: function.prepare(W)(X)),
        "a packed weight": (packed(W, np.ones(2, "f4"), padding=1), lambda function: function(X)),
        "what packs": (packed, lambda function: function(W)(X)),
        "a wrapped one": (wrap("mine", conv2d, prepare), lambda function: function.prepare(W)(X)),
        "a decorated function": (conv2d, lambda function: function(X, W)),
        "a partial": (functools.partial(impls.conv2d, padding="same"), lambda function: function(X, W)),
        "a convolution": (convolution(), lambda function: tensors(function)(X, W)),
        "a layer": (Conv2d(2, 3, 3, groups=1), lambda function: tensors(function)(X)),
    }.items()


@pytest.mark.parametrize("again", [pickle.dumps, copy.copy, copy.deepcopy], ids=lambda function: function.__name__)
def test_what_is_copied_computes_the_same(again):
    for word, (part, call) in parts():
        made = again(part)
        made = pickle.loads(made) if isinstance(made, bytes) else made
        np.testing.assert_array_equal(call(made), call(part), err_msg=word)
        assert isinstance(hash(part), int)


def test_signatures():
    assert str(inspect.signature(impls.conv2d)) == SIGNATURE[:-1] + ", *, exact=False, plan=None, out=None)"
    for name, more in {"cpu.auto": ", out=None", "cpu.torch": "", "cpu.shift": ""}.items():
        assert str(inspect.signature(impls.load(name))) == f"{SIGNATURE[:-1]}{more})"
    packed = impls.load("cpu.cython_packed").prepare
    assert [*inspect.signature(packed).parameters] == ["weight", "bias", "stride", "padding", "dilation", "groups"]
    assert [*inspect.signature(packed(W)).parameters] == ["input", "out"]


def test_what_is_loaded_twice_is_equal():
    assert {impls.load("cpu.auto"), impls.load("cpu.auto")} == {impls.load("cpu.auto")}
    assert impls.load("cpu.auto") != impls.load("cpu.shift")
    assert impls.load("cpu.shift") != impls.load("cpu.shift", "conv2d_backward")


def test_what_no_module_holds_is_not_pickled():
    def conv2d(*arguments):
        return arguments

    with pytest.raises((pickle.PicklingError, AttributeError), match="conv2d"):
        pickle.dumps(wrap("mine", implementation(device="cpu", family="direct", summary="sums")(conv2d)))


def test_processes_of_a_pool():
    functions = [part for word, (part, _) in parts() if word in ("impls.conv2d", "an implementation", "one that picks")]
    with multiprocessing.get_context("fork").Pool(1) as pool:
        for function in functions:
            np.testing.assert_array_equal(pool.apply(function, (X, W)), function(X, W))
        packed = impls.load("cpu.cython_packed").prepare(W)
        np.testing.assert_array_equal(pool.map(packed, [X, X])[1], packed(X))


def test_torch_saves_a_layer():
    layer, file = Conv2d(2, 3, 3), io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    assert torch.equal(again(torch.from_numpy(X)), layer(torch.from_numpy(X)))


def test_a_layer_under_autocast_computes_and_learns_in_float32():
    layer = torch.nn.Sequential(torch.nn.Conv2d(2, 2, 1), Conv2d(2, 3, 3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = layer(torch.from_numpy(X))
        output.sum().backward()
    assert output.dtype == layer[1].weight.grad.dtype == torch.float32
    with pytest.raises(TypeError, match="dtype must be float32 or float64 in native byte order, not bfloat16: convert"):
        layer[1].bfloat16()(torch.from_numpy(X).bfloat16())


@pytest.mark.parametrize(
    ("derive", "words"),
    [
        (torch.func.vmap, "functorch transforms"),
        (lambda layer: torch.func.grad(lambda input: layer(input).sum()), "functorch transforms"),
        (
            lambda layer: lambda input: torch.autograd.functional.hessian(lambda x: layer(x).square().sum(), input),
            "create_graph",
        ),
    ],
)
def test_derivatives_that_a_layer_has_not_are_refused(derive, words):
    with pytest.raises(RuntimeError, match=words):
        derive(Conv2d(2, 3, 3))(torch.from_numpy(X)[None] if derive is torch.func.vmap else torch.from_numpy(X))


# Files of anywhere


def test_a_file_from_anywhere(tmp_path):
    path = tmp_path / "my sums.py"
    path.write_text(EINSUM)
    function = impls.load_file(path)
    assert (function.name, function.family, function.limits) == ("my sums", "windows", {"groups": 1})
    np.testing.assert_array_equal(function(X, W), impls.load("cpu.windows")(X, W))
    (tmp_path / "pickled").write_bytes(pickle.dumps(function))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).name)"
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "pickled"], capture_output=True, text=True, check=True)
    assert done.stdout == "my sums\n"


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (None, FileNotFoundError, "mine.py is not a file"),
        ("x = 1", LookupError, r"mine: its file has no function conv2d\(\)"),
        ("def conv2d(): pass", TypeError, "lacks the decorator"),
        ("import nothing_of_that_name", impls.Unavailable, "nothing_of_that_name"),
        ("1 / 0", ZeroDivisionError, "division"),
    ],
)
def test_a_file_that_has_no_implementation(tmp_path, text, error, words):
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    with pytest.raises(error, match=words):
        impls.load_file(tmp_path / "mine.py")
