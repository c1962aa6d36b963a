"""Files damaged at random and by structure, and convolutions of any shape: only our own errors come out, and right answers.

100 examples of each here; `make fuzz` has 1000, other ones for each seed, and the compiled kernels under the address and
undefined-behaviour sanitizers. What was tried last is written down before it is tried, in build/fuzz: what ends the process
leaves no other trace.
"""

import contextlib
import io
import json
import os
import resource
import struct
import tempfile
import warnings
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from measured_suites import SUITE, content, measured
from references import some

import impls
from benchmarks.workloads import operations, oracle
from convbench.asv import project
from convbench.cli import commands
from convbench.stored import results
from impls.preprocess import jpeg
from impls.preprocess.arguments import BadImage
from impls.read_batch.arguments import BadTile, NoSuchBand
from convbench.stored import side_lines

EXAMPLES = int(os.environ.get("CONVBENCH_FUZZ", "100"))
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
TRIED = Path(__file__).parents[1] / "build" / "fuzz"
fuzz = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
ROOM = 64 << 20  # bytes that a case may take beside what its file is worth: libraries keep some for later
WORTH = 8192  # bytes for each of a file: as far as the densest compression that is read here goes, twice over
PACKED = {"cpu.memmap", "cpu.mmap_numba"}  # which open no tile
# Each new problem compiles for a second and more.
SLOW = {"cpu.torch_compile", "cpu.numba_stencil", "cpu.numba_direct"}

pytestmark = pytest.mark.filterwarnings("error")


def remember(kind, case):
    """Write down what is tried next."""
    TRIED.mkdir(parents=True, exist_ok=True)
    data = case if isinstance(case, bytes) else str(case).encode(errors="replace")
    (TRIED / f"{kind}-{os.getpid()}").write_bytes(data)


@contextlib.contextmanager
def in_proportion(size):
    """Fail where more memory is taken than a file of this size is worth. Sanitizers keep all that is freed."""
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


# Damage


@st.composite
def damaged(draw, whole):
    """Bytes with a few of them changed, taken out, repeated, or replaced by a number of consequence."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 4))):
        at, length = draw(st.integers(0, len(data))), draw(st.integers(0, 16))
        number = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x10000]))
        order = draw(st.sampled_from("<>"))
        piece = {
            "flip": lambda at=at: bytes([data[at] ^ draw(st.integers(1, 255))]) if at < len(data) else b"",
            "number": lambda n=number, o=order: struct.pack(o + ("I" if n > 0xFFFF else "H"), n),
            "noise": lambda: draw(st.binary(max_size=16)),
            "out": lambda: b"",
            "again": lambda at=at, length=length: bytes(data[at : at + length]) * draw(st.integers(1, 3)),
        }
        kind = draw(st.sampled_from(sorted(piece)))
        new = piece[kind]()
        data[at : at + (length if kind in ("out", "again") else len(new))] = new
    if draw(st.integers(0, 5)) == 0:
        del data[draw(st.integers(0, len(data))) :]
    return bytes(data)


@st.composite
def jpegs(draw):
    """Images of every kind that is read, whose segments are dropped, repeated, moved, hidden, or given another size."""
    from PIL import Image

    height, width = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    random = np.random.default_rng(draw(st.integers(0, 9)))
    channels = draw(st.sampled_from([(3,), ()]))
    image = Image.fromarray(random.integers(0, 255, (height, width, *channels), np.uint8))
    stream = io.BytesIO()
    exif = draw(st.sampled_from([b"", b"Exif\0\0MM\0*\0\0\0\x08\0\0"]))
    image.save(stream, "JPEG", progressive=draw(st.booleans()), quality=draw(st.integers(1, 100)), exif=exif)
    data = stream.getvalue()
    parts, place = [data[:2]], 2
    while data[place + 1] != jpeg.SCAN:
        (length,) = struct.unpack_from(">H", data, place + 2)
        parts.append(data[place : place + 2 + length])
        place += 2 + length
    parts.append(data[place:])
    frame = next(i for i, part in enumerate(parts) if part[1] in jpeg.FRAMES)
    for _ in range(draw(st.integers(0, 3))):
        i, j = draw(st.integers(1, len(parts) - 1)), draw(st.integers(1, len(parts) - 1))
        size = struct.pack(">HH", *draw(st.tuples(*[st.sampled_from([0, 1, 8, 41, 3000, 30000, 65535])] * 2)))
        claimed = parts[min(frame, len(parts) - 1)]
        claimed = claimed[:5] + size + claimed[9:]
        match draw(st.sampled_from(["drop", "again", "swap", "size", "hide", "marker", "fill"])):
            case "drop":
                del parts[i]
            case "again":
                parts.insert(j, parts[i])
            case "swap":
                parts[i], parts[j] = parts[j], parts[i]
            case "size":
                parts[min(frame, len(parts) - 1)] = claimed
            case "hide":
                marker = bytes([0xFF, draw(st.sampled_from([0x00, 0x01, 0x02, 0xBF, 0xE1, 0xF0, 0xFE]))])
                parts.insert(i, marker + struct.pack(">H", 2 + len(claimed)) + claimed)
            case "marker":
                parts[i] = b"\xff" + bytes([draw(st.integers(0, 255))]) + parts[i][2:]
            case "fill":
                parts.insert(i, b"\xff" * draw(st.integers(1, 3)))
        if len(parts) < 3:
            break
    return draw(damaged(st.just(b"".join(parts))))


@st.composite
def tiffs(draw):
    """Tiles of every kind that is read, whose tags are repeated, dropped, or given other numbers."""
    import tifffile

    random = np.random.default_rng(draw(st.integers(0, 9)))
    shape = draw(st.sampled_from([(13, 8, 8), (4, 16, 16), (1, 8, 8), (5, 20, 12)]))
    kind = draw(st.sampled_from(["uint8", "uint16"]))
    pixels = random.integers(0, 255, shape).astype(kind)
    together = draw(st.booleans()) or shape[0] == 1
    stream = io.BytesIO()
    with tifffile.TiffWriter(stream, byteorder=draw(st.sampled_from("<>")), bigtiff=draw(st.integers(0, 4)) == 0) as file:
        file.write(
            pixels[0] if shape[0] == 1 else np.moveaxis(pixels, 0, 2) if together else pixels,
            photometric="minisblack",
            planarconfig=None if shape[0] == 1 else "contig" if together else "separate",
            compression=draw(st.sampled_from([None, "zlib"])),
            rowsperstrip=draw(st.sampled_from([1, 4, shape[1]])),
            metadata=None,
        )
    data = bytearray(stream.getvalue())
    order = "<" if data[:2] == b"II" else ">"
    big = struct.unpack_from(order + "H", data, 2)[0] == 43
    start = struct.unpack_from(order + ("Q" if big else "I"), data, 8 if big else 4)[0]
    first, size = start + (8 if big else 2), 20 if big else 12
    count = struct.unpack_from(order + ("Q" if big else "H"), data, start)[0]
    for _ in range(draw(st.integers(0, 3))):
        at, other = (first + size * draw(st.integers(0, count - 1)) for _ in range(2))
        number = draw(st.sampled_from([0, 1, 2, 3, 8, 255, 256, 65535, 65536, 200_000_000, 0xFFFFFFFF]))
        match draw(st.sampled_from(["again", "kind", "count", "value", "tag", "entries"])):
            case "again":
                data[at : at + size] = data[other : other + size]
            case "kind":
                struct.pack_into(order + "H", data, at + 2, draw(st.integers(0, 20)))
            case "count":
                struct.pack_into(order + ("Q" if big else "I"), data, at + 4, number)
            case "value":
                struct.pack_into(order + "I", data, at + size - 4, number)
            case "tag":
                struct.pack_into(
                    order + "H",
                    data,
                    at,
                    draw(st.sampled_from([256, 257, 258, 259, 273, 277, 278, 279, 284, 322, 324, 325, 339])),
                )
            case "entries":
                struct.pack_into(order + ("Q" if big else "H"), data, start, min(number, 65535))
    return draw(damaged(st.just(bytes(data))))


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from([10**400, "\x1b[2J", "[/x]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def documents(draw, whole):
    """JSON of which a few values are others, or missing, or which is damaged as text."""
    found = json.loads(json.dumps(whole))
    for _ in range(draw(st.integers(0, 3))):
        node = found
        while isinstance(node, (dict, list)) and node:
            key = draw(st.sampled_from(sorted(node))) if isinstance(node, dict) else draw(st.integers(0, len(node) - 1))
            if not isinstance(node[key], (dict, list)) or not node[key] or draw(st.integers(0, 3)) == 0:
                if draw(st.booleans()) and isinstance(node, dict):
                    del node[key]
                else:
                    node[key] = draw(anything)
                break
            node = node[key]
    text = json.dumps(found)
    return draw(damaged(st.just(text.encode()))) if draw(st.booleans()) else text.encode()


# What takes them in


@fuzz
@given(jpegs(), st.integers(1, 32))
def test_jpegs(data, size):
    remember("jpeg", data)
    weight = np.ones((1, 3, 3, 3), np.float32)
    with in_proportion(len(data)):
        try:
            height, width = jpeg.shape(data)
        except BadImage:
            height, width = 1, 1
        for name, function in loaded("preprocess").items():
            with contextlib.suppress(BadImage):
                (mask,) = function([data], [(0, 0, height, width)], weight, size=size)
                assert (mask.shape, mask.dtype) == ((height, width), np.uint8), name


@fuzz
@given(tiffs(), st.sampled_from([(1,), (2, 1), (4, 3, 2)]))
def test_tiffs(data, bands):
    remember("tiff", data)
    with tempfile.TemporaryDirectory() as folder, in_proportion(len(data)):
        path = Path(folder, "a.tif")
        path.write_bytes(data)
        for name, function in loaded("read_batch", PACKED).items():
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


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    made = measured(tmp_path_factory.mktemp("project"))
    folder = made.good.parent
    made.whole = {
        path: path.read_bytes() for path in (made.good, folder.parent / "benchmarks.json", made.folder / "asv.conf.json")
    }
    return made


COMMANDS = [["table"], ["history"], ["compare", "HEAD~1", "HEAD"], ["export", "out.csv"], ["table", "--csv"]]


def answers(suite, path, data, command):
    """Run a command on the project with one file replaced: an exit status of its own, and no error of Python's."""
    remember(path.name, data)
    here = Path.cwd()
    os.chdir(suite.folder)
    try:
        path.write_bytes(data)
        with in_proportion(len(data)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas has opinions on columns without values
            done = CliRunner().invoke(commands.main, command)
    finally:
        if path in suite.whole:
            path.write_bytes(suite.whole[path])
        else:
            path.unlink()
        os.chdir(here)
    assert done.exception is None or isinstance(done.exception, SystemExit), command
    assert done.exit_code in ((0, 2, 4) if command[0] == "compare" else (0, 1)), (command, done.stderr)
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
    answers(suite, side_lines.path(suite.good), b"\n".join(lines), command)


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


@st.composite
def laid_out(draw, array):
    """The same numbers, laid out in memory in any way."""
    match draw(
        st.sampled_from(["as it is", "Fortran", "reversed", "every other", "last axis first", "unaligned", "read-only"])
    ):
        case "Fortran":
            return np.asfortranarray(array)
        case "reversed":
            axis = draw(st.integers(0, array.ndim - 1))
            return np.flip(np.flip(array, axis).copy(), axis)
        case "every other":
            wide = np.full([2 * size for size in array.shape], np.nan, array.dtype)
            places = (slice(draw(st.integers(0, 1)), None, 2),) * array.ndim
            wide[places] = array
            return wide[places]
        case "last axis first":
            return np.moveaxis(np.moveaxis(array, -1, 0).copy(), 0, -1)
        case "unaligned":
            memory = np.zeros(array.nbytes + 1, np.uint8)
            moved = memory[1:].view(array.dtype).reshape(array.shape)
            moved[...] = array
            return moved
        case "read-only":
            array.setflags(write=False)
    return array


@pytest.mark.parametrize("operation", operations.OPERATIONS)
def test_convolutions(operation):
    found = loaded(operation, SLOW)
    given_names, returned = operations.OPERATIONS[operation].given, operations.OPERATIONS[operation].returned

    @fuzz
    @given(problem=some(), seed=st.integers(0, 2**16), data=st.data())
    def agrees(problem, seed, data):
        assume(problem.n)
        name = data.draw(st.sampled_from(sorted(found)))
        remember(operation, f"{name} {problem.label} {problem.dtype} {seed}")
        random = np.random.default_rng(seed)
        tensors = {
            one: random.uniform(-1, 1, operations.shape(problem, one)).astype(problem.dtype)
            for one in ("input", "weight", "output")
        }
        arrays = [data.draw(laid_out(tensors[one])) for one in given_names]
        try:
            result = found[name](*arrays, **operations.arguments(operation, problem))
        except NotImplementedError:
            return
        for of, one in zip(returned, result if isinstance(result, tuple) else (result,), strict=True):
            known = oracle.reference(problem, *(tensors[each] for each in ("input", "weight", "output")), of=of)
            oracle.compare(problem, found[name].family, known, one)

    agrees()
