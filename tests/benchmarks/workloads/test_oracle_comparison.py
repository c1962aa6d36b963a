"""The oracle takes the right answer and no other."""

import contextlib
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from references import MODES, by_torch, fractions, mode, some

import impls
from benchmarks.errors import WrongAnswer
from benchmarks.workloads import oracle
from benchmarks.workloads.problems import Problem

# What is judged

LABELS = ("n2c4h9w11k6r3s3p1g2", "n2c4h20w23k6r3s3t2p1g2", "n2c4h12w14k6r3s3p2d2g2", "n3c6h8w10k4r3s3g2")
EVERY = [pytest.param(label, how, id=f"{label}-{how}") for label in LABELS for how in MODES]


class Judged:
    """A problem, its data, its reference and the right output."""

    def __init__(self, label, how, dtype="float32"):
        self.problem = Problem.parse(label, dtype=dtype)
        self.input, self.weight = fractions(self.problem)
        with mode(how):
            self.known = oracle.reference(self.problem, self.input, self.weight)
        assert (len(self.known.positions) < self.problem.outputs) == (how == "sampled")
        self.right = self.computed()

    def computed(self, input=None, weight=None):
        """An output computed from other input or weight than the problem's."""
        input, weight = (own if given is None else given for given, own in ((input, self.input), (weight, self.weight)))
        return by_torch(self.problem, input, weight).astype(self.problem.dtype)

    def compare(self, output, family="direct"):
        return oracle.compare(self.problem, family, self.known, output)


def moved(weight, tap, to):
    """The weight with one tap's value where its neighbour is: an index off by one."""
    weight = weight.copy()
    weight[:, :, *to] += weight[:, :, *tap]
    weight[:, :, *tap] = 0
    return weight


def without(array, *place):
    array = array.copy()
    array[place] = 0
    return array


ALL = slice(None)
FAULTS = {
    # A tap
    "first tap off by one": lambda j: j.computed(weight=moved(j.weight, (0, 0), (0, 1))),
    "first tap off by a row": lambda j: j.computed(weight=moved(j.weight, (0, 0), (1, 0))),
    "middle tap off by one": lambda j: j.computed(weight=moved(j.weight, (1, 1), (1, 2))),
    "last tap off by one": lambda j: j.computed(weight=moved(j.weight, (2, 2), (2, 1))),
    "last tap left out": lambda j: j.computed(weight=without(j.weight, ALL, ALL, 2, 2)),
    "last channel left out": lambda j: j.computed(weight=without(j.weight, ALL, -1)),
    "kernel turned round": lambda j: j.computed(weight=j.weight[:, :, ::-1, ::-1]),
    "kernel transposed": lambda j: j.computed(weight=j.weight.swapaxes(2, 3)),
    "outputs in another order": lambda j: j.computed(weight=j.weight[::-1]),
    # A pixel
    "image off by one": lambda j: j.computed(input=np.roll(j.input, 1, axis=3)),
    "image off by a row": lambda j: j.computed(input=np.roll(j.input, 1, axis=2)),
    "output off by one": lambda j: np.roll(j.right, 1, axis=3),
    "first pixels lost": lambda j: j.computed(input=without(j.input, ALL, ALL, 0, 0)),
    # A border
    "top row zero": lambda j: without(j.right, ALL, ALL, 0),
    "bottom row zero": lambda j: without(j.right, ALL, ALL, -1),
    "left column zero": lambda j: without(j.right, ALL, ALL, ALL, 0),
    "right column zero": lambda j: without(j.right, ALL, ALL, ALL, -1),
    "top row of the first image zero": lambda j: without(j.right, 0, 0, 0),
    "bottom row of the first image zero": lambda j: without(j.right, 0, 0, -1),
    "left column of the last image zero": lambda j: without(j.right, -1, -1, ALL, 0),
    "right column of the last image zero": lambda j: without(j.right, -1, -1, ALL, -1),
    # A group, an image
    "groups swapped": lambda j: j.computed(input=np.roll(j.input, j.problem.c // 2, axis=1)),
    "groups of outputs swapped": lambda j: np.roll(j.right, j.problem.k // 2, axis=1),
    "first group everywhere": lambda j: j.computed(input=np.tile(j.input[:, : j.problem.c // 2], (1, 2, 1, 1))),
    "second group zero": lambda j: without(j.right, ALL, slice(j.problem.k // 2, None)),
    "images swapped": lambda j: np.roll(j.right, 1, axis=0),
    "images added up": lambda j: np.broadcast_to(j.right.sum(axis=0), j.right.shape),
    # All of it
    "nothing": lambda j: np.zeros_like(j.right),
    "twice": lambda j: 2 * j.right,
    "negative": lambda j: -j.right,
    "0.1 % too large": lambda j: j.right * j.right.dtype.type(1.001),
    "a bias": lambda j: j.right + j.right.dtype.type(0.01),
    "half precision": lambda j: j.right.astype("float16").astype(j.right.dtype),
    "inputs of half precision": lambda j: j.computed(input=j.input.astype("float16")),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("label", "how"), EVERY)
def test_wrong_outputs_are_rejected(label, how, fault):
    for dtype in oracle.UNIT:
        judged = Judged(label, how, dtype)
        wrong = FAULTS[fault](judged)
        assert (wrong.shape, wrong.dtype) == (judged.right.shape, dtype)
        with pytest.raises(WrongAnswer, match=r"relative L2 error .*allowed .*worst at n=\d, k=\d, p=\d+, q=\d+: "):
            judged.compare(wrong)


@pytest.mark.parametrize(("label", "how"), EVERY)
@pytest.mark.parametrize("family", ["direct", "im2col", "library", "winograd", "fft"])
def test_no_family_may_be_wrong(label, how, family):
    judged = Judged(label, how)
    judged.compare(judged.right, family)
    for fault in ("first tap off by one", "groups swapped", "top row zero", "right column zero", "0.1 % too large"):
        with pytest.raises(WrongAnswer):
            judged.compare(FAULTS[fault](judged), family)


@pytest.mark.parametrize(("label", "how"), EVERY)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_single_nan_or_infinity_is_found_anywhere(label, how, value):
    judged = Judged(label, how)
    unseen = np.setdiff1d(np.arange(judged.problem.outputs), judged.known.positions)
    assert len(unseen) or how == "whole"
    for position in (0, 1, judged.problem.outputs // 2, judged.problem.outputs - 1, *unseen[:: len(unseen) // 9 + 1]):
        output = judged.right.copy()
        output.reshape(-1)[position] = value
        place = "n={}, k={}, p={}, q={}".format(*np.unravel_index(position, output.shape))
        with pytest.raises(WrongAnswer, match=f"^the output is {value} at {place}$"):
            judged.compare(output)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("how", MODES)
def test_infinities_do_not_cancel(how):
    judged = Judged(LABELS[0], how)
    for values in ((np.inf, -np.inf), (np.nan, np.inf), (-np.inf, -np.inf)):
        output = judged.right.copy()
        output[0, 3, 4, 5], output[1, 2, 3, 4] = values
        with pytest.raises(WrongAnswer, match="n=0, k=3, p=4, q=5"):
            judged.compare(output)
    with pytest.raises(WrongAnswer, match="the output is nan at n=0, k=0, p=0, q=0"):
        judged.compare(np.full_like(judged.right, np.nan))


SHAPES = {
    "a row short": lambda right: right[:, :, :-1],
    "a column long": lambda right: np.pad(right, ((0, 0), (0, 0), (0, 0), (0, 1))),
    "an image short": lambda right: right[1:],
    "an output channel short": lambda right: right[:, :-1],
    "transposed": lambda right: right.swapaxes(2, 3),
    "channels last": lambda right: right.transpose(0, 2, 3, 1),
    "flat": lambda right: right.reshape(-1),
    "batch dropped": lambda right: right[0],
    "one dimension more": lambda right: right[None],
    "empty": lambda right: right[:0],
    "a list": lambda right: right.tolist(),
    "None": lambda right: None,
    "a tensor": torch.from_numpy,
}


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("wrong", SHAPES)
def test_wrong_shapes_are_rejected(wrong, how):
    judged = Judged(LABELS[0], how)
    with pytest.raises(WrongAnswer, match=r"^the output has shape .*, not \(2, 6, 9, 11\)$"):
        judged.compare(SHAPES[wrong](judged.right))


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "complex64", ">f4", "object"])
def test_wrong_dtypes_are_rejected(dtype, how):
    judged = Judged(LABELS[0], how)
    with pytest.raises(WrongAnswer, match=f"^the output has dtype {dtype}, not float32$"):
        judged.compare(judged.right.astype(dtype))


@pytest.mark.parametrize("how", MODES)
def test_the_dtype_is_the_problems(how):
    judged = Judged(LABELS[0], how, "float64")
    with pytest.raises(WrongAnswer, match="the output has dtype float32, not float64"):
        judged.compare(judged.right.astype("float32"))
    with pytest.raises(WrongAnswer, match="relative L2 error"):
        judged.compare(judged.right.astype("float32").astype("float64"))


def test_one_wrong_output_among_all_is_found():
    judged = Judged(LABELS[1], "whole")
    for position in range(0, judged.problem.outputs, 37):
        output = judged.right.copy()
        output.reshape(-1)[position] += 0.01
        place = "n={}, k={}, p={}, q={}".format(*np.unravel_index(position, output.shape))
        with pytest.raises(WrongAnswer, match=f"worst at {place}: "):
            judged.compare(output)


@pytest.mark.parametrize("dtype", oracle.UNIT)
@pytest.mark.parametrize("how", MODES)
def test_each_output_has_its_own_bound(how, dtype):
    """An error too small for the norm to see is too large for its own sum."""
    judged = Judged(LABELS[1], how, dtype)
    judged.right = judged.right.astype("float64")
    sizes = judged.known.magnitudes
    l2, factor = oracle.bounds(judged.problem, "direct")
    for place in range(0, len(sizes), 19):
        bound = factor * oracle.UNIT[dtype] * sizes[place]
        assert 3 * bound < l2 * np.linalg.norm(judged.known.values)
        for error in (-3 * bound, -0.5 * bound, 0.5 * bound, 3 * bound):
            output = judged.right.copy()
            output.reshape(-1)[judged.known.positions[place]] += error
            with pytest.raises(WrongAnswer) if abs(error) > bound else contextlib.nullcontext():
                judged.compare(output.astype(dtype))


@pytest.mark.parametrize("how", MODES)
def test_values_at_the_positions_are_judged_alone(how):
    judged = Judged(LABELS[0], how)
    values = judged.right.reshape(-1)[judged.known.positions]
    assert oracle.compare_at(judged.problem, "direct", judged.known, values) == judged.compare(judged.right)
    for place in (0, len(values) // 2, -1):
        for change in (0.01, np.nan, np.inf):
            wrong = values.copy()
            wrong[place] += change
            with pytest.raises(WrongAnswer):
                oracle.compare_at(judged.problem, "direct", judged.known, wrong)


# What is accepted


@pytest.mark.parametrize(("label", "how"), EVERY)
@pytest.mark.parametrize("dtype", oracle.UNIT)
def test_the_right_output_is_accepted(label, how, dtype):
    judged = Judged(label, how, dtype)
    errors = judged.compare(judged.right)
    assert 0 <= errors.relative_l2 <= 4 * oracle.UNIT[dtype]
    assert 0 <= errors.worst <= 1
    readonly = judged.right.copy()
    readonly.flags.writeable = False
    for same in (readonly, np.asfortranarray(judged.right), judged.right[:, ::-1].copy()[:, ::-1]):
        assert judged.compare(same) == errors


@pytest.mark.parametrize("how", MODES)
def test_generated_right_outputs_are_accepted(how):
    @settings(max_examples=30, deadline=None)
    @given(problem=some(), seed=st.integers(0, 2**16))
    def accepted(problem, seed):
        # Sixteenths: their sums are exact in float64, so that the output is rounded once.
        input, weight = (np.round(array * 16) / 16 for array in fractions(problem, seed))
        with mode(how):
            known = oracle.reference(problem, input, weight)
        right = by_torch(problem, input, weight).astype(problem.dtype)
        errors = oracle.compare(problem, "direct", known, right)
        assert errors.relative_l2 <= oracle.UNIT[problem.dtype]
        assert errors.worst < 1

    accepted()


@pytest.mark.parametrize("how", MODES)
def test_an_empty_batch_is_right(how):
    problem = Problem.parse("n0c2h5w6k3r3s3")
    with mode(how):
        known = oracle.reference(problem, *fractions(problem))
    assert oracle.compare(problem, "direct", known, np.empty((0, 3, 3, 4), "float32")) == oracle.Errors(0, 0)
    with pytest.raises(WrongAnswer, match="shape"):
        oracle.compare(problem, "direct", known, np.empty((1, 3, 3, 4), "float32"))


@pytest.mark.parametrize("how", MODES)
def test_zeros_must_be_zero(how):
    problem = Problem.parse("n1c2h9w9k3r3s3p1")
    input, weight = np.zeros(problem.input_shape, "float32"), fractions(problem)[1]
    with mode(how):
        known = oracle.reference(problem, input, weight)
    output = np.zeros(problem.output_shape, "float32")
    assert oracle.compare(problem, "direct", known, output) == oracle.Errors(0, 0)
    output[0, 0, 0, 0] = 1e-30  # a corner: in every sample
    with pytest.raises(WrongAnswer):
        oracle.compare(problem, "direct", known, output)


def test_tf32_is_a_family_of_its_own():
    judged = Judged(LABELS[0], "whole")
    # TF32 keeps 10 bits of a float32's 23.
    rounded = [((array.view("u4") + (1 << 12)) & np.uint32(0xFFFFE000)).view("f4") for array in (judged.input, judged.weight)]
    output = judged.computed(*rounded)
    judged.compare(output, "tf32")
    with pytest.raises(WrongAnswer):
        judged.compare(output, "direct")


def test_halves_are_families_of_their_own():
    judged = Judged(LABELS[0], "whole")
    inputs = [torch.from_numpy(array) for array in (judged.input, judged.weight)]
    for dtype, family, finer in ((torch.float16, "fp16", "direct"), (torch.bfloat16, "bf16", "fp16")):
        output = judged.computed(*(tensor.to(dtype).to(torch.float32).numpy() for tensor in inputs))
        output = torch.from_numpy(output).to(dtype).to(torch.float32).numpy()
        judged.compare(output, family)
        with pytest.raises(WrongAnswer):
            judged.compare(output, finer)


def in_sequence(problem, input, weight):
    """The only output of a problem as one float32 sum from the first product to the last."""
    products = (input[0] * weight[0]).reshape(-1)
    assert problem.outputs == 1
    return np.add.accumulate(products)[-1:].reshape(1, 1, 1, 1)


def test_a_single_output_may_cancel():
    problem = Problem.parse("n1c64h3w3k1r3s3")
    for seed in range(100):
        arrays = fractions(problem, seed)
        oracle.compare(problem, "direct", oracle.reference(problem, *arrays), in_sequence(problem, *arrays))


@pytest.mark.filterwarnings("ignore:invalid value")
def test_fft_need_not_give_exact_zeros():
    problem = Problem.parse("n1c1h8w8k1r3s3")
    input, weight = np.ones(problem.input_shape, "float32"), np.ones(problem.weight_shape, "float32")
    input[:, :, 4:] = 0
    known = oracle.reference(problem, input, weight)
    output = known.values.astype("float32").reshape(problem.output_shape)
    output[0, 0, 5, 5] = 1e-8
    oracle.compare(problem, "fft", known, output)


@pytest.mark.filterwarnings("ignore:overflow")
def test_large_numbers_are_finite():
    problem = Problem.parse("n1c1h8w8k1r1s1", dtype="float64")
    input, weight = np.full(problem.input_shape, 1e154), np.full(problem.weight_shape, 1e154)
    oracle.compare(problem, "direct", oracle.reference(problem, input, weight), input * weight)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e-3])
@pytest.mark.parametrize("label", ["n1c1h8w8k1r3s3t100p7", "n1c1h6w6k1r1s1t2p1", "n2c4h9w9k6r3s3t5p4g2"])
def test_a_transform_is_judged_by_its_image_where_outputs_see_little_of_it(label, scale):
    """Whatever the scale of the data; and what is wrong by more than rounding is wrong."""
    problem = Problem.parse(label)
    random = np.random.default_rng(0)
    input, weight = (random.uniform(-1, 1, shape).astype("float32") for shape in (problem.input_shape, problem.weight_shape))
    input *= np.float32(scale)
    known = oracle.reference(problem, input, weight)
    output = impls.load("cpu.fft")(input, weight, **problem.arguments)
    oracle.compare(problem, "fft", known, output)
    output[0, 0, 0, 0] += 1e-4 * known.level * math.sqrt(output.size)
    with pytest.raises(WrongAnswer, match="relative L2 error"):
        oracle.compare(problem, "fft", known, output)
