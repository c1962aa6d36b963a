"""The oracle knows transposed convolutions and gradients as well, and every operation gets what its problem says."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from references import MODES, mode, some
from torch.nn import functional

import impls
from benchmarks.errors import WrongAnswer
from benchmarks.workloads import inputs, operations, oracle
from benchmarks.workloads.operations import OPERATIONS
from benchmarks.workloads.problems import Problem, load_set

LABELS = ("n2c4h9w11k6r3s3p1g2", "n2c4h20w23k6r3s3t2p1g2", "n2c4h12w14k6r4s2p2x0d2g2", "n3c6h8w10k4r3s3t3g2")


def fractions(problem, seed=0):
    """Input, weight and output by name."""
    random = np.random.default_rng(seed)
    shapes = {name: operations.shape(problem, name) for name in ("input", "weight", "output")}
    return {name: random.uniform(-1, 1, shape).astype(problem.dtype) for name, shape in shapes.items()}


def by_torch(problem, input, weight, output):
    """The gradients of input, weight and bias by name, in float64."""
    input, weight, output = (torch.from_numpy(array.astype("float64")) for array in (input, weight, output))
    wanted = input, weight, torch.zeros(problem.k, dtype=torch.float64)
    for tensor in wanted:
        tensor.requires_grad_()
    found = torch.autograd.grad(functional.conv2d(*wanted, **problem.arguments), wanted, output)
    return dict(zip(("input", "weight", "bias"), map(torch.Tensor.numpy, found), strict=True))


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("of", ["input", "weight", "bias"])
def test_references_are_what_torch_computes(of, how):
    @settings(max_examples=20, deadline=None)
    @given(problem=some(), seed=st.integers(0, 2**16))
    def agrees(problem, seed):
        tensors = fractions(problem, seed)
        with mode(how):
            known = oracle.reference(problem, **tensors, of=of)
        values = by_torch(problem, **tensors)[of]
        sizes = by_torch(problem, **{name: np.abs(array) for name, array in tensors.items()})[of].reshape(-1)[known.positions]
        assert operations.shape(problem, of) == values.shape
        assert known.of == known.negated().of == of
        assert np.all(np.abs(known.values - values.reshape(-1)[known.positions]) <= 1e-14 * sizes)
        assert np.allclose(known.magnitudes, sizes, rtol=1e-13, atol=0)
        # The right answer is taken, and one with a single wrong element at a place that is looked at is not.
        right = values.astype(problem.dtype)
        assert oracle.compare(problem, "direct", known, right).worst <= 1
        if problem.n and np.linalg.norm(known.values) > 1e-3:
            place = known.positions[len(known.positions) // 2]
            right.reshape(-1)[place] += 0.01 + np.linalg.norm(known.values)
            with pytest.raises(WrongAnswer, match="relative L2 error"):
                oracle.compare(problem, "direct", known, right)

    agrees()


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("of", ["input", "weight"])
def test_a_sample_has_every_channel_and_the_corners(of, label):
    problem = Problem.parse(label)
    shape = operations.shape(problem, of)
    with mode("sampled"):
        positions, again = (oracle.reference(problem, **fractions(problem, seed), of=of).positions for seed in (0, 1))
    assert np.array_equal(positions, again)
    places = set(zip(*map(np.ndarray.tolist, np.unravel_index(positions, shape)), strict=True))
    assert {place[0] for place in places} == set(range(shape[0]))
    assert {place[1] for place in places} == set(range(shape[1]))
    last = [size - 1 for size in shape]
    assert {(a, b, y, x) for a, b in ((0, 0), last[:2]) for y in (0, last[2]) for x in (0, last[3])} <= places


def test_terms_are_the_products_that_are_summed():
    for label in LABELS:
        problem = Problem.parse(label)
        for of in operations.AXES:
            count = len(oracle.PRODUCTS[of](problem, **fractions(problem), positions=np.array([0, 1]))[0])
            assert count == operations.terms(problem, of)
        n, k, p, q = problem.output_shape
        assert operations.terms(problem, "weight") == operations.terms(problem, "bias") == n * p * q
        assert operations.terms(problem, "input") == k // problem.groups * problem.r * problem.s


FAULTS = {
    "a tap left out": ("input", lambda t: {"weight": np.where(np.arange(t["weight"].shape[3]) == 0, 0, t["weight"])}),
    "groups swapped": ("input", lambda t: {"output": np.roll(t["output"], t["output"].shape[1] // 2, axis=1)}),
    "kernel turned round": ("input", lambda t: {"weight": t["weight"][:, :, ::-1, ::-1]}),
    "a border of the gradient lost": ("weight", lambda t: {"output": t["output"] * (np.arange(t["output"].shape[3]) > 0)}),
    "image off by one": ("weight", lambda t: {"input": np.roll(t["input"], 1, axis=3)}),
    "image of another": ("weight", lambda t: {"input": np.roll(t["input"], 1, axis=0)}),
    "an image left out": ("bias", lambda t: {"output": t["output"] * (np.arange(len(t["output"])) > 0)[:, None, None, None]}),
    "half precision": ("weight", lambda t: {"output": t["output"].astype("float16").astype("float32")}),
}


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_gradients_are_rejected(fault, label, how):
    problem, (of, change) = Problem.parse(label), FAULTS[fault]
    tensors = fractions(problem)
    with mode(how):
        known = oracle.reference(problem, **tensors, of=of)
    wrong = by_torch(problem, **{**tensors, **change(tensors)})[of].astype("float32")
    with pytest.raises(WrongAnswer, match="relative L2 error .* worst at " + r"=\d+, ".join(operations.AXES[of]) + r"=\d+: "):
        oracle.compare(problem, "direct", known, wrong)


@pytest.mark.parametrize("of", ["input", "weight", "bias"])
def test_messages_say_which_result_is_meant(of):
    problem = Problem.parse(LABELS[0])
    known = oracle.reference(problem, **fractions(problem), of=of)
    right = by_torch(problem, **fractions(problem))[of].astype("float32")
    with pytest.raises(WrongAnswer, match=f"^the result like the {of} has shape"):
        oracle.compare(problem, "direct", known, right[1:])
    with pytest.raises(WrongAnswer, match=f"^the result like the {of} has dtype float64, not float32$"):
        oracle.compare(problem, "direct", known, right.astype("float64"))
    right[(1,) * right.ndim] = np.inf
    with pytest.raises(WrongAnswer, match=rf"^the result like the {of} is inf at \w=1"):
        oracle.compare(problem, "direct", known, right)


# What an operation is given


@pytest.mark.parametrize("operation", OPERATIONS)
def test_calls_fit_the_problem(operation):
    """The implementation's own check takes them, and what is returned has the shapes that were said."""

    @settings(max_examples=20, deadline=None)
    @given(problem=some())
    def fits(problem):
        arrays = inputs.make(problem, operation)
        given = OPERATIONS[operation].given
        assert [array.shape for array in arrays] == [operations.shape(problem, tensor) for tensor in given]
        assert {array.dtype.name for array in arrays} == {problem.dtype}
        function, keywords = impls.load("cpu.shift", operation), operations.arguments(operation, problem)
        output = function(*arrays, **keywords)
        parts = output if isinstance(output, tuple) else (output,)
        for part, of in zip(parts, OPERATIONS[operation].returned, strict=True):
            known = oracle.reference(problem, **dict(zip(given, arrays, strict=True)), of=of)
            oracle.compare(problem, function.family, known, part)
        # Linear in the first: the check after timing negates it.
        again = function(-arrays[0], *arrays[1:], **keywords)
        for part, negative in zip(parts, again if isinstance(again, tuple) else (again,), strict=True):
            assert np.array_equal(part, -negative)

    fits()


def test_what_travels_to_the_readers():
    problem = Problem.parse("n1c2h5w7k4r3s3p1", dtype="float64")
    assert operations.describe("conv2d", problem) == problem.describe()
    transposed, gradients = (operations.describe(name, problem) for name in ("conv_transpose2d", "conv2d_backward"))
    assert transposed == {**problem.describe(), "output": [1, 2, 5, 7]}
    arrays = [math.prod(shape) for shape in (problem.input_shape, problem.weight_shape, problem.output_shape)]
    moved = 8 * (2 * arrays[0] + 2 * arrays[1] + arrays[2] + 4)
    assert gradients == {**problem.describe(), "output": [1, 2, 5, 7], "flops": 2 * problem.flops, "bytes": moved}


@pytest.mark.parametrize("name", ["dcgan", "unet"])
def test_layers_that_follow_each_other_fit(name):
    """Each transposed convolution takes as many channels as the one before it gives."""
    for before, after in itertools.pairwise(load_set(name).values()):
        assert after.k == before.c
