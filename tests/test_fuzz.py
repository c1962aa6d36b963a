"""Files damaged at random and by structure, and convolutions of any shape: only our own errors come out, and right answers.

20 examples of each here; `make fuzz` has 1000, other ones for each seed, and the compiled kernels under the address and
undefined-behaviour sanitizers. What was tried last is written down before it is tried, in build/fuzz: what ends the process
leaves no other trace.
"""

import contextlib
import gzip
import io
import os
import resource
import tempfile
import warnings
from pathlib import Path

import click
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from convolutions import repeated
from damage import damaged, documents, jpegs, laid_out, tiffs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from measured_suites import SUITE, content, measured
from references import depthwise, some

import impls
from benchmarks.workloads import operations, oracle
from convbench.asv import project
from convbench.cli.main import main
from convbench.stored import side_lines
from impls.decode_jpeg import jpeg
from impls.decode_jpeg.jpeg import BadImage
from impls.read_batch.arguments import BadTile, NoSuchBand

EXAMPLES = int(os.environ.get("CONVBENCH_FUZZ", "20"))
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
TRIED = Path(__file__).parents[1] / "build" / "fuzz"
fuzz = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
ROOM = 64 << 20  # bytes that a case may take beside what its file is worth: libraries keep some for later
WORTH = 8192  # bytes for each of a file: as far as the densest compression that is read here goes, twice over
PACKED = {"cpu.memmap", "cpu.mmap_numba"}  # which open no tile
# Each new problem compiles for a second and more.
SLOW = {"cpu.torch_compile", "cpu.numba_stencil", "cpu.numba_direct"}
WEIGHT = np.ones((1, 3, 3, 3), np.float32)

# rasterio warns of tiles that lie nowhere on Earth, as all of these do.
pytestmark = pytest.mark.filterwarnings("error", "ignore:Dataset has no geotransform")


def remember(kind, case):
    """Write down what is tried next."""
    TRIED.mkdir(parents=True, exist_ok=True)
    data = case if isinstance(case, bytes) else str(case).encode(errors="replace")
    (TRIED / f"{kind}-{os.getpid()}").write_bytes(data)


@contextlib.contextmanager
def in_proportion(size):
    """Fail if the memory used is out of proportion to the file's size. Sanitizers keep all freed memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert SANITIZED or taken < ROOM + WORTH * size


def loaded(operation, slow=()):
    """The implementations of the CPU that can run here."""
    found = {}
    for name in impls.names(operation, device="cpu"):
        with contextlib.suppress(impls.Unavailable):
            if name not in slow:
                found[name] = impls.load(name, operation)
    return found


# What takes them in


# A first call loads libraries and compiled code, whose memory no file is to be held against.


@pytest.fixture(scope="module")
def preprocess():
    """All that decodes images, each called once."""
    from PIL import Image

    found = loaded("preprocess")
    stream = io.BytesIO()
    Image.new("RGB", (30, 30)).save(stream, "JPEG")
    for function in found.values():
        function([stream.getvalue()], [(0, 0, 30, 30)], WEIGHT, size=21)
    return found


@pytest.fixture(scope="module")
def decode_jpeg():
    """All that decodes and does no more, each called once."""
    from PIL import Image

    found = loaded("decode_jpeg")
    stream = io.BytesIO()
    Image.new("RGB", (30, 30)).save(stream, "JPEG")
    for function in found.values():
        function([stream.getvalue()], [(3, 4, 5, 6)])
    return found


@pytest.fixture(scope="module")
def read_batch(tmp_path_factory):
    """All that reads tiles, each called once."""
    import tifffile

    found = loaded("read_batch", PACKED)
    tile = tmp_path_factory.mktemp("tile") / "a.tif"
    tifffile.imwrite(tile, np.ones((16, 16, 4), np.uint16), photometric="minisblack", planarconfig="contig", metadata=None)
    for function in found.values():
        function([tile], bands=(1,))
    return found


@fuzz
@given(jpegs(), st.integers(1, 32))
def test_jpegs(preprocess, data, size):
    remember("jpeg", data)
    with in_proportion(len(data)):
        try:
            height, width = jpeg.shape(data)
        except BadImage:
            height, width = 1, 1
        for name, function in preprocess.items():
            with contextlib.suppress(BadImage):
                (mask,) = function([data], [(0, 0, height, width)], WEIGHT, size=size)
                assert (mask.shape, mask.dtype) == ((height, width), np.uint8), name


@fuzz
@given(jpegs(), st.sampled_from([1, 2, 4, 8]), st.data())
def test_regions_of_jpegs(decode_jpeg, data, scale, more):
    remember("jpeg", data)
    with in_proportion(len(data)):
        try:
            image = jpeg.shape(data)
            scale = scale if min(image) >= scale else 1
            height, width = jpeg.reduced(image, scale)
        except BadImage:
            height, width, scale = 1, 1, 1
        top, left = more.draw(st.integers(0, height - 1)), more.draw(st.integers(0, width - 1))
        size = more.draw(st.integers(1, height - top)), more.draw(st.integers(1, width - left))
        for name, function in decode_jpeg.items():
            with contextlib.suppress(BadImage):
                (pixels,) = function([data], [(top, left, *size)], scale)
                assert (pixels.shape, pixels.dtype) == ((*size, 3), np.uint8), name


@fuzz
@given(tiffs(), st.sampled_from([(1,), (2, 1), (4, 3, 2)]))
def test_tiffs(read_batch, data, bands):
    remember("tiff", data)
    with tempfile.TemporaryDirectory() as folder, in_proportion(len(data)):
        path = Path(folder, "a.tif")
        path.write_bytes(data)
        for name, function in read_batch.items():
            with contextlib.suppress(BadTile, NoSuchBand, NotImplementedError):
                batch = function([path], bands=bands)
                assert (batch.dtype, batch.shape[:2]) == (np.float32, (1, len(bands))), name
                assert np.all((batch >= 0) & (batch <= 1)), name
                assert batch.size * 4 <= ROOM + WORTH * len(data), name


@fuzz
@given(st.data())
def test_packed_tiles(given_data):
    from impls.read_batch import packing, tifffiles
    from impls.read_batch.cpu import memmap

    assert tifffiles
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.tif")
        path.write_bytes(b"a tile")
        stamp = path.stat().st_size, path.stat().st_mtime_ns
        np.save(Path(folder, packing.ARRAY), np.ones((1, 4, 3, 3), np.uint16))
        index = given_data.draw(documents({"names": ["a.tif"], "stamps": [stamp]}))
        array = given_data.draw(damaged(st.just(Path(folder, packing.ARRAY).read_bytes())))
        remember("packed", index + array)
        Path(folder, packing.INDEX).write_bytes(index)
        Path(folder, packing.ARRAY).write_bytes(array)
        with in_proportion(len(index) + len(array)):
            try:
                batch = memmap.read_batch([str(path)])
            except (packing.NotPacked, NoSuchBand, BadTile):
                return
        assert batch.shape[:2] == (1, 3)


COMMANDS = [["table"], ["history"], ["compare", "HEAD~1", "HEAD"], ["export", "out.csv"], ["table", "--csv"]]


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    made = measured(tmp_path_factory.mktemp("project"))
    folder = made.good.parent
    made.whole = {
        path: path.read_bytes() for path in (made.good, folder.parent / "benchmarks.json", made.folder / "asv.conf.json")
    }
    with contextlib.chdir(made.folder):
        for command in COMMANDS:
            CliRunner().invoke(main, command)
    return made


def answers(suite, path, data, command):
    """Run a command on the project with one file replaced: an exit status of its own, and no error of Python's."""
    remember(path.name, data)
    here = Path.cwd()
    os.chdir(suite.folder)
    try:
        path.write_bytes(data)
        with in_proportion(len(data)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas has opinions on columns without values
            done = CliRunner().invoke(main, command)
    finally:
        if path in suite.whole:
            path.write_bytes(suite.whole[path])
        else:
            path.unlink()
        os.chdir(here)
    assert done.exception is None or isinstance(done.exception, SystemExit), command
    statuses = {"compare": (0, 2, 4), "history": (0, 2)}
    assert done.exit_code in statuses.get(command[0], (0, 1)), (command, done.stderr)
    assert "Traceback" not in done.stderr


@fuzz
@given(data=documents(content("a" * 40)), command=st.sampled_from(COMMANDS))
def test_results_files(suite, data, command):
    answers(suite, suite.good, data.replace(b"a" * 40, suite.hashes[1].encode()), command)


SIDE = {"benchmark": "b.T.time_x", "params": ["'cpu.a'"], "status": "failed", "reason": "wrong", "run": "1", "wall": 1.0}
SIDE |= {"threads": {"openblas": 1}, "versions": {"numpy": "2"}, "relative_l2": 1e-7, "ended": 1.7e9, "samples": [1.0]}


@fuzz
@given(lines=st.lists(documents(SIDE), max_size=3), command=st.sampled_from(COMMANDS))
def test_side_files(suite, lines, command):
    answers(suite, side_lines.path(suite.good), gzip.compress(b"\n".join(lines)), command)


@fuzz
@given(data=documents(SUITE), command=st.sampled_from(COMMANDS))
def test_lists_of_benchmarks(suite, data, command):
    answers(suite, suite.folder / "results" / "benchmarks.json", data, command)


CONFIGURATION = {
    "version": 1,
    "project": "p",
    "repo": ".",
    "branches": ["main"],
    "plugins": [".p"],
    "results_dir": "results",
    "html_dir": "html",
    "regressions_thresholds": {"a.*": 0.1},
    "matrix": {"req": {"numpy": ["1"]}},
}


@fuzz
@given(documents(CONFIGURATION))
def test_configurations(data):
    remember("configuration", data)
    with tempfile.TemporaryDirectory() as folder, in_proportion(len(data)):
        path = Path(folder, "asv.conf.json")
        path.write_bytes(data)
        with contextlib.suppress(click.ClickException):
            assert project.load(path).root == Path(folder).resolve()


# Convolutions


def drawn(data, problem, operation, seed):
    """The tensors of a problem by name, and the arrays that an operation is given, laid out in any way."""
    random, tensors = np.random.default_rng(seed), {}
    for one in ("input", "weight", "output"):
        numbers = random.uniform(-1, 1, operations.shape(problem, one)).astype(problem.dtype)
        axes = data.draw(st.one_of(st.just(()), st.tuples(*[st.booleans()] * 4)))
        tensors[one] = repeated(numbers, axes) if axes else numbers
    given = (tensors[one] for one in operations.OPERATIONS[operation].given)
    return tensors, [array if 0 in array.strides else data.draw(laid_out(array.copy())) for array in given]


# A thousand in all of those that are no usual tests.
@pytest.mark.parametrize("examples", [EXAMPLES, pytest.param(350, marks=pytest.mark.slow)])
@pytest.mark.parametrize("operation", operations.OPERATIONS)
def test_convolutions(operation, examples):
    found = loaded(operation, SLOW)
    returned = operations.OPERATIONS[operation].returned

    @settings(fuzz, max_examples=examples)
    @given(problem=st.one_of(some(), depthwise()), seed=st.integers(0, 2**16), data=st.data())
    def agrees(problem, seed, data):
        name = data.draw(st.sampled_from(sorted(found)))
        remember(operation, f"{name} {problem.label} {problem.dtype} {seed}")
        tensors, arrays = drawn(data, problem, operation, seed)
        try:
            result = found[name](*arrays, **operations.arguments(operation, problem))
        except NotImplementedError:
            return
        for of, one in zip(returned, result if isinstance(result, tuple) else (result,), strict=True):
            if not problem.n:
                assert (one.shape, one.dtype, one.any()) == (operations.shape(problem, of), problem.dtype, False)
                continue
            known = oracle.reference(problem, *(tensors[each] for each in ("input", "weight", "output")), of=of)
            oracle.compare(problem, found[name].family, known, one)

    agrees()


# What is not an array that operations take.
ODD = {
    "half": lambda array: array.astype(np.float16),
    "whole": lambda array: array.astype(np.int64),
    "bytes": lambda array: array.astype(np.uint8),
    "swapped": lambda array: array.astype(array.dtype.newbyteorder()),
    "tensor": lambda array: torch.from_numpy(array.copy()),
    "list": lambda array: array.tolist(),
    "masked": np.ma.masked_array,
    "without a batch": lambda array: array.reshape(array.shape[1:]) if len(array) == 1 else array[..., 0],
    "one axis more": lambda array: array[None],
    "nothing": lambda array: None,
}


@pytest.mark.parametrize("operation", operations.OPERATIONS)
def test_what_is_no_array_of_an_operations(operation):
    """One sentence, the same from every implementation."""
    found = loaded(operation, SLOW)

    @fuzz
    @given(problem=some(), which=st.integers(0, 2), odd=st.sampled_from(sorted(ODD)), data=st.data())
    def refused(problem, which, odd, data):
        name = data.draw(st.sampled_from(sorted(found)))
        remember(operation, f"{name} {problem.label} {odd}")
        _, arrays = drawn(data, problem, operation, 0)
        arrays[which % len(arrays)] = ODD[odd](arrays[which % len(arrays)])
        said = []
        for function in (found[name], found["cpu.shift"]):
            with pytest.raises((TypeError, ValueError)) as error:
                function(*arrays, **operations.arguments(operation, problem))
            said.append((error.type, str(error.value)))
        assert said[0] == said[1]
        assert "\n" not in said[0][1]

    refused()
