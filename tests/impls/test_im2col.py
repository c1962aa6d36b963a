"""im2col: every implementation lays out the same matrix, of any rank and with any fill value, and mistakes are named."""

import dataclasses
import functools
import math

import numpy as np
import pytest
import torch
from cases import case
from convolutions import LAYOUTS
from hypothesis import given, settings
from hypothesis import strategies as st

import impls
from benchmarks.errors import Skip, WrongAnswer
from benchmarks.harness import cell
from benchmarks.workloads.patches import Im2col, Windows
from impls import checks
from impls.im2col import arguments

NAMES = impls.names("im2col", "cpu")
IN_MEMORY = [name for name in LAYOUTS if name not in ("channels last", "batch last", "transposed images")]  # of any rank
IMAGE = np.arange(1, 36, dtype="float32").reshape(5, 7)


@functools.cache
def load(name):
    try:
        return impls.load(name, "im2col")
    except impls.Unavailable as error:
        pytest.skip(str(error))


def definition(image, kernel, stride, padding, dilation, fill):
    """The matrix by NumPy's own indexing: along each axis the places that taps and pixels see, then taps before pixels."""
    padded = np.pad(image, [(pad, pad) for pad in padding], constant_values=fill)
    places = [
        np.arange(taps)[:, None] * d + np.arange(0, size - d * (taps - 1), step)
        for size, taps, step, d in zip(padded.shape, kernel, stride, dilation, strict=True)
    ]
    seen = padded[np.ix_(*map(np.ravel, places))].reshape([count for place in places for count in place.shape])
    axes = range(2 * image.ndim)
    return seen.transpose(*axes[::2], *axes[1::2]).reshape(math.prod(kernel), -1)


@st.composite
def calls(draw):
    """An image's shape and the other arguments, one number an axis."""
    rank = draw(st.integers(1, 4))

    def each(low, high):
        return tuple(draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank)))

    kernel, stride, padding, dilation = each(1, 3), each(1, 3), each(0, 2), each(1, 2)
    spans = (d * (taps - 1) + 1 - 2 * pad for taps, pad, d in zip(kernel, padding, dilation, strict=True))
    shape = tuple(max(1, span) + draw(st.integers(0, 4)) for span in spans)
    fill = draw(st.sampled_from([0, 0.5, -3, np.inf, np.nan, np.float32(1e30), 7.0]))
    return shape, kernel, stride, padding, dilation, fill


# Numba compiles for seconds for each number of axes.
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * ("numba" in name)) for name in NAMES])
def test_it_is_the_definition(name):
    function = load(name)

    @given(calls(), st.sampled_from(["float32", "float64"]), st.sampled_from(IN_MEMORY))
    @settings(max_examples=60, deadline=None)
    def agrees(call, dtype, layout):
        shape, *rest = call
        if function.unsupported(shape, *rest, dtype=dtype):
            shape, rest = shape[:2], [*(axes[:2] for axes in rest[:-1]), rest[-1]]
        image = LAYOUTS[layout](np.random.default_rng(0).uniform(-1, 1, shape).astype(dtype))
        before = image.copy()
        matrix = function(image, *rest)
        expected = definition(image, *rest)
        assert type(matrix) is np.ndarray
        assert (matrix.dtype, matrix.shape) == (dtype, expected.shape)
        assert np.array_equal(matrix, expected, equal_nan=True)
        assert np.array_equal(image, before)
        assert not np.may_share_memory(matrix, image)

    agrees()


def test_it_is_torchs_unfold():
    torchs = torch.nn.Unfold((2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2))(torch.from_numpy(IMAGE)[None, None])
    for name in NAMES:
        with case(name):
            assert np.array_equal(load(name)(IMAGE, (2, 3), (1, 2), (1, 0), (2, 1)), torchs[0].numpy())


@pytest.mark.parametrize("name", [name for name in NAMES if name != "cpu.torch_unfold"])
def test_as_many_axes_as_there_may_be(name):
    image = np.arange(4, dtype="float32").reshape(*[1] * (arguments.MAX_RANK - 2), 2, 2)
    kernel = (*[1] * (arguments.MAX_RANK - 1), 2)
    assert load(name)(image, kernel).tolist() == [[0, 2], [1, 3]]


def test_what_one_implementation_cannot_do_is_said_in_words():
    with pytest.raises(NotImplementedError, match=r"^rank=3: only rank=1 or 2 is supported$"):
        load("cpu.torch_unfold")(np.ones((3, 3, 3), "float32"), 2)


def test_a_line_is_made_once_where_it_is_remembered(monkeypatch):
    from impls.im2col import recursion

    made, base = [], recursion.naive.im2col.unchecked
    counted = dataclasses.replace(
        recursion.naive.im2col, unchecked=lambda image, *more: (made.append(image), base(image, *more))[1]
    )
    monkeypatch.setattr(recursion.naive, "im2col", counted)
    for name, count in {"cpu.recursive": 3 * 5, "cpu.recursive_cached": 5 + 1}.items():  # and one line of padding
        made.clear()
        load(name)(IMAGE, 3, padding=1)
        assert len(made) == count


# Mistakes

MISTAKES = [
    ({"image": [[1.0]]}, TypeError, "image must be a NumPy array, not list"),
    ({"image": np.ma.masked_array(IMAGE)}, TypeError, "image must be a NumPy array, not MaskedArray"),
    ({"image": IMAGE.astype("int32")}, TypeError, "dtype must be float32 or float64 .* not int32"),
    ({"image": IMAGE.astype(">f4")}, TypeError, "dtype must be float32 or float64 in native byte order"),
    ({"image": np.float32(3)}, TypeError, "image must be a NumPy array, not float32"),
    ({"image": np.ones((), "float32")}, ValueError, r"image must have 1 to 16 axes, not shape \(\)"),
    ({"image": np.ones([1] * 17, "float32")}, ValueError, "image must have 1 to 16 axes"),
    ({"image": np.ones((0, 3), "float32")}, ValueError, r"image must have from 1 to 2147483647 .* not shape \(0, 3\)"),
    ({"kernel": (3, 3, 3)}, ValueError, "kernel must be an integer or one for each of the image's 2 axes"),
    ({"kernel": ()}, ValueError, "kernel must be an integer or one for each of the image's 2 axes"),
    ({"kernel": 0}, ValueError, "kernel must be from 1 to 2147483647, not 0"),
    ({"kernel": (3, 2**31)}, ValueError, r"kernel must be from 1 to 2147483647, not \(3, 2147483648\)"),
    ({"kernel": 2.5}, TypeError, "kernel must be an integer or one for each axis, not 2.5"),
    ({"kernel": "3x3"}, TypeError, "kernel must be an integer or one for each axis, not '3x3'"),
    ({"kernel": None}, TypeError, "kernel must be an integer or one for each axis, not None"),
    ({"kernel": 8}, ValueError, r"kernel \(8, 8\) with dilation=\(1, 1\) covers \(8, 8\), more than image \(5, 7\)"),
    ({"dilation": 3}, ValueError, r"covers \(7, 7\), more than image \(5, 7\) with padding=\(0, 0\) has"),
    ({"stride": 0}, ValueError, "stride must be from 1 to 2147483647, not 0"),
    ({"padding": -1}, ValueError, "padding must be from 0 to 2147483647, not -1"),
    ({"padding": "same"}, TypeError, "padding must be an integer or one for each axis, not 'same'"),
    ({"dilation": (1, True, 1)}, ValueError, "dilation must be an integer or one for each of the image's 2 axes"),
    ({"fill": "0"}, TypeError, "fill must be a number, not '0'"),
    ({"fill": None}, TypeError, "fill must be a number, not None"),
    ({"fill": True}, TypeError, "fill must be a number, not True"),
    ({"fill": 1j}, TypeError, "fill must be a number, not 1j"),
    ({"fill": 1e39}, ValueError, "fill must be a number that float32 can hold, not 1e[+]39"),
    ({"fill": 10**400}, ValueError, "fill must be a number that float32 can hold; this one is too large"),
    ({"padding": 2**20}, MemoryError, r"im2col of image \(5, 7\) and kernel \(3, 3\) would take [\d,]+ bytes"),
]


@pytest.mark.parametrize(("changed", "error", "words"), MISTAKES)
def test_the_same_mistake_gives_the_same_error(changed, error, words, monkeypatch):
    monkeypatch.setattr(checks, "free_memory", lambda: 1 << 30)
    for name in NAMES:
        with case(name), pytest.raises(error, match=f"^.*{words}"):
            load(name)(**{"image": IMAGE, "kernel": 3, **changed})


# As a task of the suite


LABELS = ["i7x7k3x3p1", "i9k2t2d3", "i4x5x6k2x3x1p1x0x2f-1.5", "i3x3x3x3k2x2x2x2", "i300x400k5x5p2f1"]


@pytest.mark.parametrize("label", LABELS)
def test_a_problem_is_its_label(label):
    problem = Windows.parse(label)
    assert problem.label == label
    matrix = load("cpu.strided")(np.zeros(problem.image, "float32"), problem.kernel, **problem.arguments)
    told = Im2col("im2col", problem).describe()
    assert told["output"] == list(matrix.shape)
    assert told["bytes"] == 4 * (math.prod(problem.image) + matrix.size)


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("n1c1h7w7k1r3s3", "is not a label of windows; one looks like i512x512k3x3t2p1d1f0.5"),
        ("i7x7", "is not a label of windows"),
        ("i7x7k3", "as many axes as each other"),
        ("i7x7k3x3p1x1x1", "as many axes as each other"),
        ("i7x7k9x9", "the window is larger than the padded image"),
        ("i0x7k1x1", "a size or stride is zero"),
        ("i7x7k3x3t0", "a size or stride is zero"),
    ],
)
def test_a_label_that_is_none(label, words):
    with pytest.raises(LookupError, match=words):
        Im2col.find(label)


def checked(name, label, change=None):
    """The cell of an implementation whose matrices are changed by a given function."""
    function = load(name)
    if change:
        own = function.function
        function = dataclasses.replace(function, function=lambda *given, **more: change(own(*given, **more), *given))
    task = Im2col("im2col", Windows.parse(label))
    task.recall()
    return task, task.check(function, {"numpy": 1})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("label", ["i7x7k3x3p1f2", "i9k2t2d3"])
def test_a_right_one_is_timed(name, label):
    task, made = checked(name, label)
    assert made.verify(made.call())["worst"] == 0
    task.arrays[0][:] = 0
    task.restore()
    assert made.verify(made.call())["worst"] == 0


def test_a_border_that_is_not_a_number():
    task = Im2col("im2col", Windows((7, 7), (3, 3), padding=(1, 1), fill=math.nan))
    made = task.check(load("cpu.strided"), {"numpy": 1})
    assert made.verify(made.call())["worst"] == 0
    wrong = dataclasses.replace(load("cpu.strided"), function=lambda *given, **more: np.full((9, 49), np.nan, "float32"))
    with pytest.raises(WrongAnswer, match=r"window at \(1, 1\) is nan, not -?0\."):
        task.check(wrong, {"numpy": 1})


def one_wrong(matrix, *_):
    matrix[4, 30] += 1
    return matrix


FAULTS = {
    "one element": (one_wrong, r"tap \(1, 1\) of the window at \(4, 2\) is .*, not "),
    "the other order": (lambda matrix, *_: np.asfortranarray(matrix).T, r"shape \(49, 9\) and dtype float32, not \(9, 49\)"),
    "another dtype": (lambda matrix, *_: matrix.astype("float64"), "dtype float64"),
    "taps turned round": (lambda matrix, *_: matrix[::-1], r"tap \(0, 0\)"),
    "no array": (lambda matrix, *_: matrix.tolist(), "shape None and dtype list"),
    "a lost border": (lambda matrix, *_: np.where(matrix == 2, 0, matrix).astype("float32"), "is 0, not 2"),
    "nan": (lambda matrix, *_: matrix * np.float32("nan"), "is nan, not"),
    "the image changed": (lambda matrix, image, *_: (image.fill(7), matrix)[1], "not 7|changed the image"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_one_is_not(fault):
    change, words = FAULTS[fault]
    with pytest.raises(WrongAnswer, match=words):
        checked("cpu.strided", "i7x7k3x3p1f2", change)


def test_a_matrix_that_is_the_image_is_none():
    with pytest.raises(WrongAnswer, match="its matrix shares memory with the image"):
        checked("cpu.strided", "i9k1", lambda matrix, image, *_: image[None])


def test_one_that_remembers_its_answer_is_found_out():
    answers = []

    def remembered(matrix, *_):
        answers.append(matrix)
        return answers[0]

    _, made = checked("cpu.strided", "i7x7k3x3p1f2", remembered)
    with pytest.raises(WrongAnswer, match="with the image negated, tap"):
        made.verify(made.call())


@pytest.mark.parametrize("name", ["cpu.naive", "cpu.recursive", "cpu.recursive_cached"])
def test_slow_ones_have_larger_images_where_their_time_allows(name):
    def reason(label):
        return cell.too_slow(name, Im2col("im2col", Windows.parse(label)))

    assert reason("i256x256k3x3p1") is None
    assert reason("i512x512k3x3p1").startswith("2.4e+06 patch elements, over its declared limit")
    assert reason("i200x200k3x3p1").startswith("3.6e+05 patch elements")


def test_an_image_of_too_many_axes_for_one_is_skipped():
    with pytest.raises(Skip, match="unsupported: rank=3: only rank=1 or 2 is supported"):
        cell.require_support(load("cpu.torch_unfold"), Im2col("im2col", Windows.parse("i4x4x4k2x2x2")))
