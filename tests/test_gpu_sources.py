"""The GPU implementations: their source without a GPU, their answers with one."""

import ast
import contextlib
import ctypes
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import impls
from benchmarks import oracle
from benchmarks.problems import Problem
from impls.contract import declaration

NAMES = impls.names(device="cuda")
FILE = Path(impls.__file__).parent / "conv2d/gpu/cupy_direct.py"
DTYPES = {"float32": "float", "float64": "double"}


def literal(name):
    """A module-level literal of the file, which cannot be imported without CuPy."""
    for node in ast.parse(FILE.read_text()).body:
        if isinstance(node, ast.Assign) and [target.id for target in node.targets] == [name]:
            return ast.literal_eval(node.value)
    raise LookupError(name)


SOURCE = literal("SOURCE")
PARAMETERS = re.search(r"void conv2d\((.*?)\)\s*\{", SOURCE, re.DOTALL)[1].split(",")


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("ctype", DTYPES.values())
def test_kernel_compiles_to_ptx(ctype, tmp_path):
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc, the CUDA compiler, is not installed")
    (tmp_path / "conv2d.cu").write_text(f"typedef {ctype} T;\n{SOURCE}")
    run(nvcc, "-ptx", "-Werror", "all-warnings", "-o", tmp_path / "conv2d.ptx", tmp_path / "conv2d.cu")
    ptx = (tmp_path / "conv2d.ptx").read_text()
    assert ".visible .entry conv2d(" in ptx
    assert len(re.findall(r"\.param \.\w+ (?:\.ptr [^,]*)?conv2d_param_\d+", ptx)) == len(PARAMETERS)
    # One fused multiply-add a tap, in the precision asked for and no other.
    unit, other = {"float": ("f32", "f64"), "double": ("f64", "f32")}[ctype]
    assert f"fma.rn.{unit}" in ptx
    assert other not in ptx


def test_block_divides_every_multiprocessor():
    assert literal("THREADS") in {128, 256, 512, 1024}


@pytest.mark.parametrize("name", NAMES)
def test_unavailable_says_why(name):
    with contextlib.suppress(impls.Unavailable):
        impls.load(name)
        pytest.skip("a device is here")
    with pytest.raises(impls.Unavailable, match=f"{name} .*(pip install|CUDA device)"):
        impls.load(name)


# The kernel on the CPU: the same source as C++, called thread after thread by the file's own host code.

THREADS_IN_TURN = """
struct Index {{ unsigned int x; }};
static Index gridDim, blockDim, blockIdx, threadIdx;
#define __global__
typedef {ctype} T;
{source}
extern "C" void launch(unsigned int grid, unsigned int block, {parameters}) {{
    gridDim.x = grid;
    blockDim.x = block;
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < block; ++threadIdx.x)
            conv2d({names});
}}
"""


def to_c(value):
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return ctypes.c_void_p(value.ctypes.data)
    return {np.uintp: ctypes.c_void_p, np.int64: ctypes.c_longlong, np.int32: ctypes.c_int}[type(value)](int(value))


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    """conv2d of the file, before its decorator, with NumPy for CuPy and a C++ compiler for CUDA's."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed")
    folder = tmp_path_factory.mktemp("kernel")

    class RawKernel:
        def __init__(self, code, name):
            ctype = re.match(r"typedef (\w+) T;", code)[1]
            names = ", ".join(re.search(r"(\w+)\s*$", parameter)[1] for parameter in PARAMETERS)
            text = THREADS_IN_TURN.format(ctype=ctype, source=SOURCE, parameters=",".join(PARAMETERS), names=names)
            assert code == f"typedef {ctype} T;\n{SOURCE}"
            assert name == "conv2d"
            (folder / f"{ctype}.cpp").write_text(text)
            run(compiler, "-O1", "-shared", "-fPIC", "-o", folder / f"{ctype}.so", folder / f"{ctype}.cpp")
            self.launch = ctypes.CDLL(str(folder / f"{ctype}.so")).launch

        def __call__(self, grid, block, arguments):
            (blocks,), (threads,) = grid, block
            assert len(arguments) == len(PARAMETERS)
            assert blocks * threads - threads < arguments[4] <= blocks * threads
            self.launch(ctypes.c_uint(blocks), ctypes.c_uint(threads), *map(to_c, arguments))

    cupy = ModuleType("cupy")
    for name in ("ascontiguousarray", "empty", "int32", "int64", "uintp"):
        setattr(cupy, name, getattr(np, name))
    cupy.RawKernel = RawKernel
    cupy.cuda = ModuleType("cupy.cuda")
    cupy.cuda.runtime = ModuleType("cupy.cuda.runtime")
    cupy.cuda.runtime.getDeviceCount = lambda: 1
    cupy.cuda.runtime.CUDARuntimeError = type("CUDARuntimeError", (RuntimeError,), {})
    spec = importlib.util.spec_from_file_location("cupy_direct_on_numpy", FILE)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cupy", cupy)
        spec.loader.exec_module(module)
    assert module.conv2d.declared == declaration("gpu.cupy_direct")
    return module.conv2d.__wrapped__


LABELS = [
    *("n1c1h1w1k1r1s1", "n2c3h7w9k4r3s3", "n2c3h7w9k4r3s3p1", "n1c2h2w3k2r5s6p2", "n1c1h1w1k1r5s5p2"),
    *("n1c2h11w13k2r2s2t5", "n1c2h4w5k2r3s3t9p1", "n1c2h9w9k3r3s2t2p1x2d3", "n1c1h2w2k2r2s2p6d5", "n2c4h6w6k4r3s3p1g4"),
    *(
        "n1c3h6w6k6r3s3g3",
        "n2c4h6w5k6r3s3p1g2",
        "n1c6h9w9k2r3s3t2p1d2g2",
        "n1c37h3w3k5r3s3p1",
        "n1c1h2w201k1r2s33p0x16",
    ),
    *("n0c2h5w5k3r3s3", "n1c4h33w35k8r3s3p1"),
]
OTHERS = [{"padding": "same"}, {"padding": "same", "dilation": (2, 3)}, {"stride": (1, 3), "padding": (2, 0)}, {}]


def fractions(problem):
    random = np.random.default_rng(3)
    return [random.uniform(-1, 1, shape).astype(problem.dtype) for shape in (problem.input_shape, problem.weight_shape)]


def judge(problem, family, function):
    input, weight = fractions(problem)
    oracle.compare(problem, family, oracle.reference(problem, input, weight), function(input, weight))


def whole_numbers(dtype):
    random = np.random.default_rng(5)
    return [random.integers(-8, 9, shape).astype(dtype) for shape in ((2, 4, 8, 9), (6, 4, 4, 2), (6,))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("label", LABELS)
def test_kernel_on_the_cpu(label, dtype, emulated):
    problem = Problem.parse(label, dtype=dtype)
    (vertical, horizontal), d, t = problem.padding, problem.dilation, problem.stride
    padding = (vertical, vertical), (horizontal, horizontal)
    settings = None, (t, t), padding, (d, d), problem.groups
    judge(problem, "direct", lambda input, weight: emulated(input, weight, *settings))


@pytest.mark.parametrize("dtype", DTYPES)
def test_kernel_on_the_cpu_with_bias_and_uneven_padding(dtype, emulated):
    input, weight, bias = whole_numbers(dtype)
    right = impls.load("cpu.loops")
    for start in (bias, bias[::-1], None):
        for turned in (input, input[..., ::-1], np.asfortranarray(input)):
            output = emulated(turned, weight, start, (1, 1), ((1, 2), (0, 1)), (1, 1), 1)
            assert np.array_equal(output, right(turned, weight, start, padding="same"))


# On a device


def load(name):
    try:
        return impls.load(name)
    except impls.Unavailable as reason:
        pytest.skip(str(reason))


def on_device(function, *arrays, **settings):
    output = function(*(None if array is None else function.to_device(array) for array in arrays), **settings)
    function.synchronize()
    return function.to_numpy(output)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "label",
    [*LABELS, "n1c64h56w56k64r3s3p1", "n1c512h7w7k512r3s3p1", "n1c3h224w224k64r7s7t2p3", "n1c512h14w14k512r1s1"],
)
@pytest.mark.parametrize("name", NAMES)
def test_on_a_device(name, label, dtype):
    function, problem = load(name), Problem.parse(label, dtype=dtype)
    if reason := function.unsupported(problem.input_shape, problem.weight_shape, dtype=dtype, **problem.arguments):
        pytest.skip(reason)
    judge(problem, function.family, lambda *arrays: on_device(function, *arrays, **problem.arguments))


@pytest.mark.gpu
@pytest.mark.parametrize("settings", OTHERS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_on_a_device_with_bias(name, settings):
    function = load(name)
    for dtype in DTYPES:
        arrays = whole_numbers(dtype)
        right = impls.load("cpu.loops")(*arrays, **settings)
        output = on_device(function, *arrays, **settings)
        assert output.dtype == dtype
        assert np.allclose(output, right, rtol=1e-5, atol=1e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_on_a_device_the_same_mistakes_are_errors(name):
    function = load(name)
    assert {key: getattr(function, key) for key in declaration(name)} == declaration(name)
    input, weight, bias = whole_numbers("float32")
    with pytest.raises(TypeError, match=r"^input must be a (CuPy array|torch tensor on a CUDA device), not ndarray$"):
        function(input, weight)
    with pytest.raises(TypeError, match=r"one dtype, not input .*float32, weight .*float64"):
        on_device(function, input, weight.astype("float64"))
    for settings in ({"stride": 0}, {"padding": "full"}, {"groups": 3}, {"dilation": 9}):
        with pytest.raises(ValueError) as host:  # noqa: PT011, the text is compared
            impls.load("cpu.loops")(input, weight, bias, **settings)
        with pytest.raises(ValueError) as device:  # noqa: PT011
            on_device(function, input, weight, bias, **settings)
        assert str(device.value) == str(host.value)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_on_a_device_memory_may_lie_anyhow(name):
    function = load(name)
    input, weight, bias = whole_numbers("float32")
    right = impls.load("cpu.loops")(input, weight, bias, padding=1)
    device = [function.to_device(array) for array in (input, weight, bias)]
    image = function.to_device(np.ascontiguousarray(input.transpose(3, 1, 0, 2)))
    turned = image.transpose(2, 1, 3, 0) if function.arrays == "cupy" else image.permute(2, 1, 3, 0)
    output = function.to_numpy(function(turned, *device[1:], padding=1))
    assert np.allclose(output, right, rtol=1e-5, atol=1e-3)
