"""The kernels that work in blocks, where blocks end: wide images, many channels, any number of threads, narrower vectors."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from itertools import cycle, product
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from cases import case
from convolutions import call, check
from convolutions import data as arrays
from drop_in import load
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

pytestmark = [pytest.mark.first, pytest.mark.usefixtures("compiled_once")]
FOLDER = Path(__file__).parents[2] / "impls" / "conv2d" / "cpu"
COMPILED = ["cpu.cython_direct", "cpu.cython_packed", "cpu.cython_winograd"]
# Beside the vectors of this machine, those of a processor of 2003 and of 2013: 16 and 32 bytes. With each its architecture,
# what a processor has that has wider ones, and how far it is optimised: half a minute of compiling, or a few seconds.
BUILDS = {
    "SSE2": ("x86-64", "avx2", "-O1"),
    "AVX2": ("haswell", "avx512f", "-O1"),
    "AVX2, not optimised": ("haswell", "avx512f", "-O0"),
}


@st.composite
def calls(draw, name):
    """Problems whose sizes lie around those of vectors, tiles and blocks."""
    groups = draw(st.sampled_from([1, 1, 1, 2, 3, 9, 16, 35]))
    deepest = draw(st.sampled_from([1, 3])) if groups > 1 else 40  # so that many are depthwise
    channels = draw(st.integers(1, deepest))
    outputs = draw(st.one_of(st.integers(1, 70), st.integers(71, 300)) if groups == 1 else st.integers(1, min(2, deepest)))
    width = draw(st.one_of(st.integers(1, 70), st.integers(500, 600) if channels < 4 else st.integers(1, 70)))
    kernel = draw(st.one_of(st.sampled_from([(1, 1), (3, 3), (5, 5), (7, 7)]), st.tuples(*[st.integers(1, 9)] * 2)))
    settings = {
        "stride": draw(st.one_of(st.integers(1, 5), st.tuples(*[st.integers(1, 5)] * 2))),
        "dilation": draw(st.one_of(st.just(1), st.integers(1, 3))),
    }
    if name.endswith("winograd"):
        kernel, settings = (3, 3), {}
    if name == "cpu.cython_winograd":
        kernel = draw(st.one_of(st.just((3, 3)), st.tuples(*[st.integers(2, 11)] * 2)))
        steps = [(stride, stride * apart) for stride in (1, 2, 3) for apart in (1, 2, 3, 4)] + [(2, 1), (4, 2)]
        along = draw(st.one_of(st.just([(1, 1)] * 2), st.lists(st.sampled_from(steps), min_size=2, max_size=2)))
        settings["stride"], settings["dilation"] = zip(*along, strict=True)
    spread = np.broadcast_to(settings.get("dilation", 1), 2).tolist()
    padding = tuple(draw(st.integers(0, 4)) for _ in kernel)
    least = [max(1, far * (taps - 1) + 1 - 2 * before) for far, taps, before in zip(spread, kernel, padding, strict=True)]
    height = max(least[0], draw(st.integers(1, 40)))
    return call(
        (draw(st.integers(1, 2)), channels * groups, height, max(least[1], width)),
        (outputs * groups, channels, *kernel),
        bias=draw(st.booleans()),
        dtype=draw(st.sampled_from(["float32", "float64"])),
        padding=padding,
        groups=groups,
        **settings,
    )


@st.composite
def calls_of_few_forms(draw):
    """Problems whose blocks have the forms that LARGE has too: cpu.numba_direct compiles for seconds for each other form.

    One output of a group along more than two vectors, by a kernel of known size or any other, or four outputs.
    """
    groups, outputs = draw(st.sampled_from([1, 1, 2, 3, 16])), draw(st.sampled_from([1, 1, 4, 8, 12]))
    known = outputs == 1 and draw(st.booleans())
    kernel = (3, 3) if known else draw(st.sampled_from([(1, 1), (2, 2), (1, 3), (5, 1), (4, 7), (9, 9)]))
    pairs = st.tuples(*[st.integers(1, 3)] * 2)
    stride, dilation = ((1, 1), (1, 1)) if known else (draw(pairs), draw(pairs))
    padding = draw(st.tuples(*[st.integers(0, 4)] * 2))
    spans = [far * (taps - 1) + 1 for far, taps in zip(dilation, kernel, strict=True)]
    columns = draw(st.integers(40, 200) if outputs == 1 else st.integers(1, 70))
    channels = draw(st.integers(1, 5))
    return call(
        (draw(st.integers(1, 2)), channels * groups, spans[0] + draw(st.integers(0, 30)), spans[1] + columns * stride[1]),
        (outputs * groups, channels, *kernel),
        bias=draw(st.booleans()),
        padding=padding,
        groups=groups,
        stride=stride,
        dilation=dilation,
    )


def agrees(name, what, threads):
    whole = not name.endswith("winograd")
    with threadpool_limits(threads):
        check(load(name), what, arrays(what, whole), whole)


@pytest.mark.parametrize("many", [False, pytest.param(True, marks=[pytest.mark.proof, pytest.mark.timeout(3600)])])
@pytest.mark.parametrize(
    "name",
    [
        *COMPILED,
        pytest.param("cpu.numba_direct", marks=pytest.mark.proof),
        pytest.param("cpu.numba_winograd", marks=pytest.mark.slow),
    ],
)
def test_blocks_end_where_they_should(name, many):
    problems = calls_of_few_forms() if name == "cpu.numba_direct" and not many else calls(name)
    examples = (320 if "numba" in name else 3200) if many else 20

    @settings(max_examples=examples, deadline=None)
    @given(problems, st.sampled_from([1, 2, 5]))
    def agree(what, threads):
        agrees(name, what, threads)

    agree()


def across_is_as_along(input, kernel, stride, padding, dilation, dtype, threads):
    """Depthwise sums both ways, the one across channels on so many threads, on whole numbers, whose sums are exact."""
    kernels, numbers = pytest.importorskip("impls.conv2d.cpu._cython_direct"), np.random.default_rng(0)
    channels = input[1]
    weight, settings = (channels, 1, *kernel), ((stride, stride), padding, (dilation, dilation), channels)
    arrays = [numbers.integers(-9, 10, shape).astype(dtype) for shape in (input, weight, channels)]
    with mock.patch.object(kernels, "empty", lambda shape, dtype: np.full(shape, np.nan, dtype)):
        with threadpool_limits(threads):
            across = kernels.conv2d(*arrays, *settings, across=True)
        along = kernels.conv2d(*arrays, *settings, across=False)
    assert np.array_equal(across, along), (input, kernel, stride, padding, dilation)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("taps", [1, 3, 4, 5, 7])
def test_across_channels_is_as_along_rows(taps, dtype):
    for stride, dilation, columns, channels in product((1, 2, 3), (1, 2), (1, 6, 7, 8, 13, 14), (3, 16, 17)):
        width = max(1, (columns - 1) * stride + (taps - 1) * dilation + 1 - taps // 2)  # one side is padded
        padding = (2, 0), (taps // 2, 0)
        across_is_as_along((2, channels, 9, width), (3, taps), stride, padding, dilation, dtype, threads=None)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_bands_across_channels_end_where_they_should(threads, dtype):
    """Images that are cut into bands, for the cache or for threads, some of which see padding alone."""
    for size, pad, stride, dilation in product(((150, 120), (31, 7), (2, 300)), ((0, 0), (1, 2), (40, 3)), (1, 2, 3), (1, 2)):
        if size[0] + 2 * pad[0] <= 2 * dilation or size[1] + 2 * pad[1] <= 4 * dilation:
            continue
        across_is_as_along((2, 17, *size), (3, 5), stride, tuple((one, one) for one in pad), dilation, dtype, threads)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [3, 5, 7])
def test_strips_end_where_they_should(size, dtype):
    """Images of one channel, with padding on all sides, on whole numbers, whose sums are exact."""
    kernels, numbers = pytest.importorskip("impls.conv2d.cpu._cython_direct"), np.random.default_rng(0)
    weight, bias = (numbers.integers(-9, 10, shape).astype(dtype) for shape in ((4, 1, size, size), 4))
    pads = (0, 0), (1, 1), (size // 2, size // 2), (2, 33)
    sizes = [(9, width) for width in (1, 7, 8, 9, 31, 32, 63, 64, 65, 130)] + [(70, 40), (200, 500)]
    for stride, (height, width), before, after in product((1, 2), sizes, pads, pads):
        if height > 9 and before != after:
            continue
        input = numbers.integers(-9, 10, (1, 2, height, width)).astype(dtype)
        padded = np.pad(input, ((0, 0), (0, 0), *zip(before, after, strict=True)))
        if min(padded.shape[2:]) < size:
            continue
        seen = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (2, 3))[:, :, ::stride, ::stride]
        wanted = np.einsum("ngpqrs,gkrs->ngkpq", seen, weight.reshape(2, 2, size, size)) + bias.reshape(2, 2, 1, 1)
        output = np.full((1, 4, *seen.shape[2:4]), np.nan, dtype)
        for threads in (1, 2, 5) if height > 9 else (1,):
            with threadpool_limits(threads):
                kernels.rows(input, weight, bias, output, (stride, stride), before, (1, 1), 2)
            assert np.array_equal(output, wanted.reshape(output.shape)), (stride, height, width, before, after, threads)
            output.fill(np.nan)


LARGE = {  # outputs of 8 MB and more, which go past the caches where their rows are whole vectors
    "whole vectors": call((1, 1, 1100, 2048), (1, 1, 3, 3), padding=1),
    "half a tile": call((32, 16, 56, 112), (16, 1, 3, 3), padding=1, groups=16),
    "strided": call((8, 16, 224, 224), (16, 1, 3, 3), stride=2, padding=1, groups=16),
    "odd": call((1, 2, 1100, 1025), (1, 2, 3, 3)),
    "one long row": call((1, 8, 300, 304), (24, 8, 1, 1)),
    "one odd row": call((1, 8, 301, 305), (24, 8, 1, 1)),
    "sum of planes": call((1, 9, 1100, 2048), (1, 9, 1, 1)),
    "odd sum of planes": call((1, 9, 1100, 2049), (1, 9, 1, 1)),
    "laid out": call((1, 4, 600, 608), (24, 4, 3, 3), stride=2, padding=1),
}


@pytest.mark.parametrize("what", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("name", ["cpu.cython_direct", pytest.param("cpu.numba_direct", marks=pytest.mark.proof)])
def test_large_outputs(name, what):
    agrees(name, what, 2)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_no_output_sees_is_left_out_of_large_batches(threads):
    agrees("cpu.cython_packed", call((16, 40, 57, 58), (100, 40, 1, 1), stride=2, dtype="float32"), threads)


# Images of 256 KB and more for 1x1 layers, of which six pixels of all channels lie together where vectors are narrow.
TILED = [
    call((1, 130, 23, 23), (17, 130, 1, 1), bias=True),
    call((2, 400, 13, 14), (33, 400, 1, 1), dtype="float64"),
    call((9, 130, 33, 33), (200, 65, 1, 1), bias=True, groups=2),
    call((3, 70, 1, 1021), (48, 70, 1, 1)),
    call((1, 4500, 7, 7), (60, 1500, 1, 1), bias=True, groups=3),
]

# With wide vectors, of 768 KB and more, the last of less on one thread: further outputs read what the first copied.
# Channels of the fifth are a page apart, and 16 outputs are the most that are summed from where the pixels lie.
SHARED = [
    call((1, 33, 80, 81), (29, 33, 1, 1), bias=True),
    *(call((9, 200, 11, 11), (outputs, 200, 1, 1), bias=True) for outputs in (16, 17)),
    call((2, 40, 41, 43), (100, 40, 1, 1), dtype="float64"),
    call((1, 70, 64, 64), (45, 70, 1, 1)),
    call((3, 60, 47, 45), (62, 30, 1, 1), bias=True, groups=2),
    call((1, 200, 21, 21), (24, 200, 1, 1)),
]

# Packed weights of a block of outputs, and pixels that they meet, of over 128 KB, which are summed a few channels after the
# other there; and of over 1 MB, where all vectors are cut so.
CUT = [
    call((2, 100, 40, 40), (20, 100, 3, 3), bias=True, padding=2, dilation=2),
    call((1, 200, 40, 41), (70, 200, 1, 1), bias=True, stride=2),
    call((1, 60, 60, 50), (70, 60, 3, 3), stride=3, padding=(1, 0)),
    call((1, 130, 9, 9), (17, 130, 7, 7), bias=True, padding=3),
    call((5, 600, 13, 14), (33, 600, 3, 3), stride=2, padding=1, dtype="float64"),
    call((2, 2200, 8, 8), (40, 1100, 2, 2), bias=True, groups=2),
    call((1, 5000, 20, 20), (20, 5000, 1, 1), bias=True),
    call((1, 3, 70, 75), (5, 3, 60, 60), bias=True, padding=20),
    *(call((1, 300, 9, 19), (outputs, 300, 7, 7), bias=True, padding=3) for outputs in (12, 24)),
    call((1, 2000, 9, 9), (8, 1000, 3, 3), bias=True, padding=1, groups=2, dtype="float64"),
]

# One vector of outputs alone, or left over beside two, whose rows are cut anew.
LEFT_OVER = [
    call((3, 5, 9, columns), (outputs, 5, 3, 3), bias=True, padding=1, stride=stride)
    for columns, stride in ((3, 1), (8, 1), (13, 1), (26, 1), (55, 2))
    for outputs in (7, 23)
]


# 1x1 layers of one and two outputs: with fewer, as many and more channels than are summed at a time, pixels than a block has.
PLANES = [
    call((images, channels * groups, *size), (outputs * groups, channels, 1, 1), bias=True, groups=groups, dtype=dtype)
    for images, groups, outputs, dtype in ((1, 1, 1, "float32"), (3, 2, 2, "float32"), (1, 3, 1, "float64"))
    for channels in (1, 7, 8, 9, 19)
    for size in ((1, 1), (3, 5), (16, 32), (33, 41))
]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_blocks_of_planes_end_where_they_should(threads):
    for what in PLANES:
        with case(vars(what)):
            agrees("cpu.cython_direct", what, threads)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_tiles_and_cuts_end_where_they_should(threads):
    function = load("cpu.cython_packed")
    for what in TILED + CUT + LEFT_OVER:
        with case(vars(what)), threadpool_limits(threads):
            agrees("cpu.cython_packed", what, threads)
            input, weight, bias = arrays(what, whole=True)
            packed = function.prepare(weight, bias, **what.arguments)(input)
            assert np.array_equal(packed, function(input, weight, bias, **what.arguments))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_further_outputs_of_a_1x1_layer_see_what_the_first_do(threads):
    for what in SHARED:
        with case(vars(what)):
            agrees("cpu.cython_direct", what, threads)


def one_tap(pixels):
    """An image may be one long row then, strides taken apart, but not where padding makes up for them.

    More than 384 taps, as 790 channels have, are summed in turns.
    """
    apart = [{"stride": stride, "padding": tuple(((stride - 1) * (n - 1) + 1) // 2 for n in pixels)} for stride in (2, 3)]
    strided = [{"stride": stride} for stride in ((2, 2), (1, 3), (3, 1))]
    for more, outputs in product(({}, {"groups": 2}, *strided, *apart), (14, 200)):
        for channels in (70, 790):
            yield call((3, channels, *pixels), (outputs, channels // more.get("groups", 1), 1, 1), bias=True, **more)


def laid_out(pixels):
    """Of 20 outputs and 40 taps on, or of fewer; more than 384 taps, as 45 channels have, are laid out in turns."""
    several = {}, {"stride": 2}, {"stride": (1, 3)}, {"dilation": 2, "padding": (2, 3)}, {"groups": 2}
    for (channels, outputs), more in product(((5, 22), (45, 22), (3, 7), (45, 6)), several):
        groups = more.get("groups", 1)
        shapes = (2, channels * groups, *pixels), (outputs * groups, channels, 3, 3)
        yield call(*shapes, bias=True, **{"padding": 1, **more})


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.proof)])
@pytest.mark.parametrize("name", ["cpu.cython_direct", "cpu.cython_packed"])
@pytest.mark.parametrize("pixels", [(1, 1), (1, 7), (2, 4), (7, 7), (13, 19), (33, 35)])
def test_one_tap_sees_one_pixel(name, pixels, every):
    counts = (1, 2, 5)
    for what, threads in product(one_tap(pixels), counts) if every else zip(one_tap(pixels), cycle(counts), strict=False):
        with case(vars(what), threads):
            agrees(name, what, threads)


@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.parametrize("pixels", [(1, 3), (2, 4), (5, 3), (3, 16), (9, 13), (17, 33)])
def test_laid_out_tiles_go_on_from_row_to_row(pixels, threads):
    for what in laid_out(pixels):
        with case(vars(what)):
            agrees("cpu.cython_direct", what, threads)


@pytest.mark.parametrize("outputs", [8, 16, 24, 40, 56, 72])
@pytest.mark.parametrize("threads", [1, 5])
def test_groups_of_several_blocks_of_packed_weights(threads, outputs):
    for kernel, padding in ((1, 0), (3, 1)):
        agrees(
            "cpu.cython_packed", call((2, 51, 9, 11), (3 * outputs, 17, kernel, kernel), padding=padding, groups=3), threads
        )


@pytest.mark.parametrize("name", ["cpu.cython_packed", "cpu.cython_winograd"])
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_packed_weights_give_the_same(name, data):
    what, threads = data.draw(calls(name)), data.draw(st.sampled_from([1, 2, 5]))
    function, (input, weight, bias) = load(name), arrays(what, whole=False)
    with threadpool_limits(threads):
        packed = function.prepare(weight, bias, **what.arguments)
        assert np.array_equal(packed(input), function(input, weight, bias, **what.arguments))


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.proof
@pytest.mark.parametrize("build", BUILDS)
def test_narrower_vectors_do_too(name, build, tmp_path, monkeypatch):
    architecture, wider, optimised = BUILDS[build]
    if wider not in Path("/proc/cpuinfo").read_text().split():
        pytest.skip(
            f"this processor has no wider vectors than those of {build}, so test_blocks_end_where_they_should has had these"
        )
    module = f"_{name.removeprefix('cpu.')}"
    built = compiled(module, architecture, optimised, tmp_path)
    monkeypatch.setattr(sys.modules[load(name).function.__module__], module, built)
    few = optimised == "-O0"

    @settings(max_examples=10 if few else 40, deadline=None)
    @given(calls(name))
    def agree(what):
        agrees(name, what, 2)

    agree()
    rows = [*PLANES, *one_tap((13, 19)), *laid_out((9, 13))]
    known = {"cpu.cython_packed": TILED + CUT + LEFT_OVER, "cpu.cython_direct": rows}
    for what in known.get(name, [])[:: 5 if few else 1]:
        with case(vars(what)):
            agrees(name, what, 2)


@pytest.mark.proof
def test_numba_does_too(tmp_path):
    """In a process that treats this processor as one of 2013."""
    if "avx512f" not in Path("/proc/cpuinfo").read_text().split():
        pytest.skip("this processor has no wider vectors than AVX2's, so test_blocks_end_where_they_should has had these")
    these = [__file__, "-q", "-k", "test_blocks_end_where_they_should and numba and False", "-p", "no:cacheprovider"]
    held = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", *these]
    done = subprocess.run(command, env={**os.environ, **held}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "2 passed" in done.stdout


def compiled(module, architecture, optimised, folder):
    """A Cython kernel, built for another machine than this one."""
    compiler = shutil.which("gcc") or pytest.skip("no gcc")
    cython = [sys.executable, "-m", "cython", "-X", "language_level=3"]
    subprocess.run([*cython, FOLDER / f"{module}.pyx", "-o", folder / f"{module}.c"], check=True)
    path = folder / f"{module}{sysconfig.get_config_var('EXT_SUFFIX')}"
    options = [optimised, f"-march={architecture}", "-ffp-contract=fast", "-std=c11", "-fopenmp", "-shared", "-fPIC"]
    options.append("-Werror=psabi")
    includes = ["-I", FOLDER, "-I", sysconfig.get_paths()["include"]]
    subprocess.run([compiler, *options, *includes, folder / f"{module}.c", "-o", path], check=True)
    spec = importlib.util.spec_from_file_location(module, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
