"""NaN, infinities, denormals, overflow, and problems that fit in no memory: the definition's answer, or one clear error."""

import itertools
import math
import sys
import warnings

import numpy as np
import pytest
import torch
from cases import case
from drop_in import load
from sweeps import COMPILING, each
from torch.nn import functional

from impls import checks

pytestmark = pytest.mark.usefixtures("compiled_once")
DTYPES = ("float32", "float64")
SHAPES = (2, 4, 9, 9), (4, 2, 3, 3)
SETTINGS = {
    "valid": {"groups": 2},
    "padded": {"groups": 2, "padding": 1},
    "strided": {"groups": 2, "padding": (1, 2), "stride": 2, "dilation": (2, 1)},
}
# Which take no part with a pixel that is not finite: said in the file.
LEAVES_OUT_ZEROS = {"cpu.opencv"}


def supported(function):
    """Of SETTINGS, what an implementation can do, in either dtype: (words, settings, dtype)."""
    found = [(word, settings) for word, settings in SETTINGS.items() if not function.unsupported(*SHAPES, **settings)]
    assert found
    return [((word, dtype), settings, dtype) for word, settings in found for dtype in DTYPES]


def fractions(shape, dtype, seed=0, least=0.1):
    """Fractions of both signs, none of them zero or close to it."""
    random = np.random.default_rng(seed)
    return (random.uniform(least, 1, shape) * random.choice([-1, 1], shape)).astype(dtype)


def by_torch(input, weight, bias, settings):
    """The answer in float64, whose convolution in torch multiplies padding like any other zero."""
    tensors = [torch.from_numpy(array.astype("float64")) for array in (input, weight, bias)]
    return functional.conv2d(*tensors, **settings).numpy()


def by_index(input, weight, bias, settings):
    """The same by single products, where torch should not be its own judge."""
    settings = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, **settings}
    (ty, tx), (py, px), (dy, dx) = (
        value if isinstance(value, tuple) else (value, value)
        for value in (settings["stride"], settings["padding"], settings["dilation"])
    )
    image = np.pad(input.astype("float64"), ((0, 0), (0, 0), (py, py), (px, px)))
    _, channels, taps_y, taps_x = weight.shape
    p, q = (image.shape[2] - dy * (taps_y - 1) - 1) // ty + 1, (image.shape[3] - dx * (taps_x - 1) - 1) // tx + 1
    output = np.zeros((len(input), len(weight), p, q))
    for k, c, r, s in np.ndindex(weight.shape):
        first = k // (len(weight) // settings["groups"]) * channels
        rows, columns = slice(r * dy, r * dy + ty * (p - 1) + 1, ty), slice(s * dx, s * dx + tx * (q - 1) + 1, tx)
        output[:, k] += image[:, first + c, rows, columns] * float(weight[k, c, r, s])
    return output + bias[:, None, None]


def agree(function, arrays, settings, undecided=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of invalid or overflowing steps, which are the point
        output = function(*arrays, **settings)
        expected = by_index(*arrays, settings)
    assert output.dtype == arrays[0].dtype
    assert output.shape == expected.shape
    if undecided is not None:
        output, expected = output[~undecided], expected[~undecided]
    tolerance = {"float32": 1e-4, "float64": 1e-12}[output.dtype.name]
    np.testing.assert_allclose(output, expected, rtol=tolerance, atol=tolerance)


once_compiled = each(proofs=COMPILING)
BAD = {"nan": [math.nan], "infinity": [math.inf], "minus infinity": [-math.inf], "both": [math.inf, -math.inf]}


def test_the_two_definitions_agree():
    for settings in SETTINGS.values():
        arrays = [fractions(shape, "float64") for shape in (*SHAPES, (4,))]
        arrays[0][0, 1, 3, 3] = math.inf
        np.testing.assert_allclose(by_index(*arrays, settings), by_torch(*arrays, settings))


@once_compiled
def test_a_pixel_that_is_not_finite_reaches_the_outputs_that_see_it(name):
    function = load(name)
    for (words, settings, dtype), (kind, bad) in itertools.product(supported(function), BAD.items()):
        arrays = [fractions(shape, dtype) for shape in (*SHAPES, (4,))]
        for place, value in zip([(0, 1, 3, 4), (0, 0, 4, 3)], bad, strict=False):
            arrays[0][place] = value
        with case(*words, kind):
            agree(function, arrays, settings)
    for words, settings, dtype in supported(function):
        arrays = [fractions(shape, dtype) for shape in (*SHAPES, (4,))]
        arrays[0][1] = math.nan
        with case(*words, "an image of nan"):
            agree(function, arrays, settings)


@once_compiled
def test_large_kernels_spread_nothing_either(name):
    """Libraries change to a transform where kernels are large."""
    function = load(name)
    for taps, dtype in itertools.product([(2, 2), (8, 8), (5, 10), (13, 13)], DTYPES):
        if function.unsupported((1, 1, 20, 21), (1, 1, *taps)):
            continue
        arrays = [fractions(shape, dtype) for shape in ((1, 1, 20, 21), (1, 1, *taps), (1,))]
        arrays[0][0, 0, 15, 3] = math.nan
        with case(taps, dtype):
            agree(function, arrays, {})


@once_compiled
def test_a_zero_tap_makes_nan_of_an_infinite_pixel(name):
    function = load(name)
    if name in LEAVES_OUT_ZEROS:
        assert "taps that are zero" in " ".join(sys.modules[f"impls.conv2d.{name}"].__doc__.split())
        pytest.skip("leaves out taps that are zero, as its file says")
    for taps, dtype in itertools.product((1, 3), DTYPES):
        if function.unsupported((1, 1, 9, 9), (1, 1, taps, taps)):
            continue
        arrays = [fractions(shape, dtype) for shape in ((1, 1, 9, 9), (1, 1, taps, taps), (1,))]
        arrays[0][0, 0, 4, 4] = math.inf
        arrays[1][0, 0, taps // 2, taps // 2] = 0
        with case(taps, dtype):
            agree(function, arrays, {})


@once_compiled
def test_a_weight_that_is_not_finite_reaches_its_channel(name):
    """Where it meets padding the answer is open: infinity times a zero that is there is NaN, times none it is nothing.

    torch's own float32 kernels leave such products out and its float64 ones do not.
    """
    function = load(name)
    for (words, settings, dtype), value in itertools.product(supported(function), (math.nan, math.inf)):
        arrays = [fractions(shape, dtype) for shape in (*SHAPES, (4,))]
        arrays[1][1, 0, 0, 2] = value
        only = np.zeros(SHAPES[1], dtype)
        only[1, 0, 0, 2] = 1
        seen = by_index(np.ones(SHAPES[0]), only, np.zeros(4), settings) == 1
        undecided = ~seen
        undecided[:, [0, 2, 3]] = False
        assert seen.any()
        with case(*words, value):
            agree(function, arrays, settings, undecided)


@once_compiled
def test_denormal_numbers_are_numbers(name):
    function = load(name)
    image, weight, bias = (fractions(shape, "float64") for shape in (*SHAPES, (4,)))
    for (words, settings, dtype), turned in itertools.product(supported(function), (False, True)):
        facts = np.finfo(dtype)
        tiny = float(facts.tiny) / 64
        scales = (1, tiny) if turned else (tiny, 1)
        arrays = [(a * scale).astype(dtype) for a, scale in zip((image, weight, bias * 0), (*scales, 1), strict=True)]
        output = function(*arrays, **settings)
        expected = by_index(*arrays, settings)
        # Each step rounds by half the smallest number there is. Winograd rounds the transformed weights so and multiplies
        # that by up to 10 and 19 along either axis on the way: 18,000 times half of it for each channel.
        allowed = 18_000 if function.family in ("winograd", "auto") else 64
        with case(*words, scales):
            assert np.abs(output - expected).max() <= allowed * float(facts.smallest_subnormal)
            assert np.abs(output).max() > tiny / 2


@once_compiled
def test_sums_overflow_to_infinity_and_no_sooner(name):
    function = load(name)
    image, weight, bias = (np.abs(fractions(shape, "float32")) for shape in (*SHAPES, (4,)))
    for words, settings, dtype in supported(function):
        if dtype == "float64":
            continue
        with case(*words), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            assert np.isposinf(function(image * np.float32(3e38), weight * np.float32(1e3), bias, **settings)).all()
            large = [image * np.float32(3e38), weight * np.float32(1e-2), bias]
            output = function(*large, **settings)
            np.testing.assert_allclose(output, by_index(*large, settings), rtol=1e-4)


# Memory


HUGE = {
    "input": ((1, 1, 1 << 20, 1 << 20), (1, 1, 3, 3), {}),
    "batch": ((1 << 40, 1, 3, 3), (1, 1, 3, 3), {}),
    "outputs": ((1, 1, 3, 3), (1 << 38, 1, 3, 3), {}),
    "weight": ((1, 1 << 20, 3, 3), (1 << 20, 1 << 20, 3, 3), {}),
    "padding": ((1, 1, 3, 3), (1, 1, 3, 3), {"padding": 2**31 - 1}),
    "both": ((1 << 30, 1, 3, 3), (1 << 30, 1, 3, 3), {}),
    "all": ((1 << 28, 1, 3, 3), (1 << 28, 1, 3, 3), {"padding": 2**31 - 1}),
}


@each()
def test_what_fits_in_no_memory_is_refused_with_its_bytes(name):
    function = load(name)
    for (what, (*shapes, settings)), dtype in itertools.product(HUGE.items(), DTYPES):
        arrays = [np.broadcast_to(np.ones((), dtype), shape) for shape in shapes]
        n, c, h, w = shapes[0]
        pad = settings.get("padding", 0)
        rows, columns = h + 2 * pad, w + 2 * pad
        outputs = n * shapes[1][0] * (rows - 2) * (columns - 2)
        size = np.dtype(dtype).itemsize * (n * c * rows * columns + math.prod(shapes[1]) + outputs)
        with case(what, dtype):
            with pytest.raises(MemoryError) as caught:
                function(*arrays, **settings)
            text = str(caught.value)
            assert text.startswith(f"conv2d of input {shapes[0]} and weight {shapes[1]} would take {size:,} bytes, and ")
            assert text.endswith(" bytes of memory are free")


# Work memory beyond input and output: what is said of it, and the kernel that it is tried with.
WORK = {
    "cpu.cython_winograd": ("Winograd's tiles", 3),
    "cpu.fft": ("cpu.fft's transforms", 7),
    "cpu.numba_winograd": ("Winograd's tiles", 3),
    "cpu.roll": ("cpu.roll's whole images", 7),
    "cpu.roll_matmul": ("cpu.roll_matmul's whole images", 7),
    "cpu.scipy_fft": ("cpu.scipy_fft's transforms", 7),
    "cpu.scipy_oaconvolve": ("cpu.scipy_oaconvolve's transforms", 7),
    "cpu.shift_matmul": ("cpu.shift_matmul's padded image and product", 7),
    "cpu.torch_shift_matmul": ("cpu.torch_shift_matmul's padded image and product", 7),
    "cpu.windows": ("the patch matrix", 7),
    "im2col.cython": ("im2col.cython's patch matrix", 7),
    "im2col.indirect": ("im2col.indirect's places", 7),
    "im2col.mec": ("im2col.mec's lowered image", 7),
    "im2col.naive": ("the patch matrix", 7),
    "im2col.numba": ("im2col.numba's patch matrix", 7),
    "im2col.recursive": ("the patch matrix", 7),
    "im2col.strided": ("the patch matrix", 7),
    "im2col.torch_unfold": ("the patch matrix", 7),
}


@pytest.mark.parametrize("name", WORK)
def test_work_memory_is_asked_for_too(name, monkeypatch):
    function, (said, taps) = load(name), WORK[name]
    input, weight = np.ones((1, 8, 40, 40), "float32"), np.ones((32, 8, taps, taps), "float32")
    own = 4 * (input.size + weight.size + 32 * (41 - taps) ** 2)
    monkeypatch.setattr(checks, "UNASKED", 0)
    monkeypatch.setattr(checks, "free_memory", lambda: own + 1)
    said = rf"^{said}.* would take [\d,]+ bytes, and {own + 1:,} bytes of memory are free$"
    if name == "cpu.shift_matmul":  # which needs less than was asked for already where the output is large
        weight = weight[:, :, :1, :1]
        monkeypatch.setattr(checks, "free_memory", lambda: input.nbytes + weight.nbytes + 4 * 32 * 25 + 1)
        said = said.partition(".*")[0]
        with pytest.raises(MemoryError, match=said):
            function(input, weight, stride=9)
        return
    with pytest.raises(MemoryError, match=said):
        function(input, weight)
    monkeypatch.setattr(checks, "free_memory", lambda: 100 * own)
    assert function(input, weight)[0, 0, 0, 0] == pytest.approx(8 * taps**2)


@pytest.mark.parametrize("name", ["cpu.torch", "cpu.torch_channels_last"])
def test_torch_lays_out_patches_in_float64_alone(name, monkeypatch):
    function = load(name)
    input, weight = np.ones((1, 8, 40, 40)), np.ones((1, 8, 7, 7))
    monkeypatch.setattr(checks, "UNASKED", 0)
    monkeypatch.setattr(checks, "free_memory", lambda: 10 * input.nbytes)
    with pytest.raises(MemoryError, match="the patch matrix"):
        function(input, weight)
    assert function(input.astype("float32"), weight.astype("float32"))[0, 0, 0, 0] == 8 * 49


def test_memory_that_is_free_is_what_the_tightest_limit_leaves(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "CGROUP", tmp_path)
    unlimited = checks.free_memory()
    for name, text in {"max": "3000", "current": "1000", "stat": "anon 900\nfile 100\n"}.items():
        (tmp_path / f"memory.{name}").write_text(text)
    assert checks.free_memory() == 2100
    (tmp_path / "memory.max").write_text("max\n")
    assert checks.free_memory() == pytest.approx(unlimited, rel=0.2)
