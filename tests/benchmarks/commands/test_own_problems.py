"""A user's own problem is what the operation is called with, and what cannot be computed is one error in words."""

import math

import pytest
import torch
from cases import case
from hypothesis import given, settings
from hypothesis import strategies as st
from jpegs import GOOD
from torch.nn import functional

import impls
from benchmarks.commands import own_problems
from benchmarks.harness import cell
from benchmarks.workloads import operations
from benchmarks.workloads.patches import Windows
from benchmarks.workloads.problems import Problem
from impls import checks

PLAIN = {"stride": 1, "padding": [0, 0], "dilation": 1, "groups": 1, "dtype": "float32"}


def make(operation, **request):
    return own_problems.make({"operation": operation, **request})


def shaped(operation, input, weight, **more):
    return make(operation, input=list(input), weight=list(weight), **{**PLAIN, **more})


@pytest.mark.parametrize("operation", ["conv2d", "conv2d_backward"])
def test_convolutions(operation):
    assert shaped(operation, (1, 4, 9, 11), (6, 2, 3, 3), groups=2, stride=2) == Problem(1, 4, 9, 11, 6, 3, 3, 2, groups=2)
    same = shaped(operation, (1, 4, 9, 11), (6, 4, 5, 3), padding="same", dilation=2)
    assert (same.padding, same.output_shape[2:]) == ((4, 2), (9, 11))


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("operation", ["conv2d", "conv2d_backward"])
@pytest.mark.parametrize(("kernel", "dilation"), [((2, 2), 1), ((4, 3), 1), ((1, 2), 3), ((2, 4), 2), ((6, 6), 1)])
def test_the_same_size_by_even_kernels_is_what_torch_computes(operation, kernel, dilation):
    problem = shaped(operation, (2, 4, 7, 9), (6, 2, *kernel), padding="same", dilation=dilation, groups=2)
    task = cell.task(operation, problem)
    arrays = [torch.from_numpy(array) for array in task.arrays]
    expected = functional.conv2d(*arrays[-2:], padding="same", dilation=dilation, groups=2).shape
    assert problem.output_shape == tuple(expected)
    assert ("psame" in problem.label) == any(dilation * (taps - 1) % 2 for taps in kernel)
    for name in ("cpu.numba_direct", "cpu.torch"):
        made = task.check(impls.load(name, operation), {"numpy": 1})
        made.verify(made.call())


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(1, 6)),
    weight=st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4)),
    stride=st.integers(1, 3),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    dilation=st.integers(1, 2),
    groups=st.integers(1, 2),
)
def test_transposed_convolutions_are_given_what_the_user_gave(shape, weight, stride, padding, dilation, groups):
    """The problem is stored as the convolution in the other direction; its arrays have the shapes that the user gave."""
    n, c, h, w = shape
    shape, weight = (n, c * groups, h, w), (c * groups, *weight)
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    try:
        expected = functional.conv_transpose2d(torch.zeros(shape), torch.zeros(weight), **settings).shape
    except RuntimeError:
        expected = (0,)
    if 0 in expected:
        with pytest.raises(ValueError, match=r"\S"):
            shaped("conv_transpose2d", shape, weight, **{**settings, "padding": list(padding)})
        return
    problem = shaped("conv_transpose2d", shape, weight, **{**settings, "padding": list(padding)})
    assert (problem.output_shape, problem.weight_shape, problem.input_shape) == (shape, weight, tuple(expected))
    assert operations.arguments("conv_transpose2d", problem)["output_padding"] == (0, 0)


def test_others(tmp_path):
    windows = {"image": [5, 6, 7], "kernel": [3, 3, 3], "stride": 1, "dilation": 1, "fill": -1.0, "dtype": "float64"}
    expected = Windows((5, 6, 7), (3, 3, 3), padding=(1, 1, 1), fill=-1.0, dtype="float64")
    assert make("im2col", padding=[1], **windows) == expected
    assert make("im2col", padding=[1, 0, 2], **windows).padding == (1, 0, 2)
    assert make("adam_step", problem="1796010", dtype="float64").label == "n1796010"
    assert make("adam_step", problem="1796010", dtype="float64").dtype == "float64"
    assert make("adam_step", problem="mnist-perceptron", dtype="float32").label == "n1796010"
    assert make("train_step", problem="perceptron-n10").label == "perceptron-n10"
    (tmp_path / "a.jpg").write_bytes(GOOD)
    assert make("preprocess", picture=str(tmp_path / "a.jpg"), region=None, size=16).label == "n1h8w10y8x10s16"


def test_every_operation_of_the_suite_takes_a_users_problem():
    """Operations without a form of their own take a label; the message shows an example."""
    for operation in cell.TASKS.keys() - own_problems.MAKERS:
        with case(operation), pytest.raises(LookupError, match=r"looks like|there are"):
            make(operation, problem="no label")


WINDOWS = {"image": [9, 9], "kernel": [3, 3], "stride": 1, "padding": [0], "dilation": 1, "fill": 0.0, "dtype": "float32"}
MISTAKES = {
    "channels": (("conv2d", {"input": [1, 3, 9, 9], "weight": [4, 2, 3, 3]}), "do not fit groups=1"),
    "channels of gradients": (("conv2d_backward", {"input": [1, 3, 9, 9], "weight": [4, 2, 3, 3]}), "do not fit groups=1"),
    "channels the other way": (("conv_transpose2d", {"input": [1, 3, 9, 9], "weight": [4, 3, 3, 3]}), r"\(1, 3, 9, 9\)"),
    "all taken away": (("conv_transpose2d", {"input": [1, 3, 1, 1], "weight": [3, 3, 3, 3], "padding": [2, 2]}), "padding"),
    "same": (("conv_transpose2d", {"input": [1, 3, 9, 9], "weight": [3, 3, 3, 3], "padding": "same"}), "in numbers"),
    "same and a stride": (
        ("conv2d", {"input": [1, 3, 9, 9], "weight": [3, 3, 3, 3], "padding": "same", "stride": 2}),
        'padding="same" needs stride 1',
    ),
    "no operation": (("conv", {}), "no operation is called 'conv'; there are conv2d"),
    "a window of another rank": (("im2col", {**WINDOWS, "kernel": [3, 3, 3]}), "one for each of the image's 2 axes"),
    "a window that is too large": (("im2col", {**WINDOWS, "kernel": [10, 3]}), "more than image"),
    "a padding of another rank": (("im2col", {**WINDOWS, "padding": [1, 1, 1]}), "padding must be an integer or one"),
    "a fill beyond float32": (("im2col", {**WINDOWS, "fill": 1e300}), "fill must be a number that float32 can hold"),
    "seventeen axes": (("im2col", {**WINDOWS, "image": [1] * 17, "kernel": [1] * 17}), "image must have 1 to 16 axes"),
    "no parameters": (("adam_step", {"problem": "0", "dtype": "float32"}), "'n0' is not a step's label"),
    "words": (("adam_step", {"problem": "many", "dtype": "float32"}), "'many' is not a step's label"),
    "a network": (("train_step", {"problem": "perceptron"}), "one looks like"),
    "memory": (("adam_step", {"problem": "9" * 12, "dtype": "float32"}), r"the arrays of n9+ would take [\d,]+ bytes"),
    "memory for windows": (("im2col", {**WINDOWS, "image": [99999] * 3, "kernel": [3] * 3}), "would take"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_computed(mistake, monkeypatch):
    monkeypatch.setattr(checks, "free_memory", lambda: 1 << 33)
    (operation, request), words = MISTAKES[mistake]
    with pytest.raises((ValueError, LookupError, MemoryError), match=words) as caught:
        make(operation, **{**(PLAIN if operation.startswith("conv") else {}), **request})
    assert "\n" not in str(caught.value)


def test_a_patch_that_is_too_large_for_the_operation(tmp_path):
    (tmp_path / "a.jpg").write_bytes(GOOD)
    with pytest.raises(ValueError, match="size must be from 1 to 4096, not 5000"):
        make("preprocess", picture=str(tmp_path / "a.jpg"), region=None, size=5000)


def test_a_fill_that_is_not_a_number_is_tried_as_well():
    problem = make("im2col", **{**WINDOWS, "padding": [1], "fill": math.nan})
    made = cell.task("im2col", problem).check(impls.load("cpu.strided", "im2col"), {"numpy": 1})
    assert made.verify(made.call())["worst"] == 0
