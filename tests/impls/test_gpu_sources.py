"""GPU kernels without a GPU: compiled to NVIDIA's assembly, and run in Numba's and Triton's simulators."""

import importlib
import inspect
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cases import case
from gpu_problems import DTYPES
from gpu_stand_ins import assembly, cupy_on_numpy, replaced, torch_on_the_cpu

import impls
from benchmarks.timing import cuda_clock
from benchmarks.timing.device_limits import MULTIPLY_ADDS
from benchmarks.workloads.problems import Problem
from impls.contract import declaration

pytestmark = pytest.mark.first
HELPERS = Path(__file__).parents[1] / "helpers"
RAW = [("conv2d_backward", "gpu.cupy_direct"), ("conv_transpose2d", "gpu.cupy_direct")]
# Problems whose kernels read 128 bits at a time or one element, hold many rows or outputs, count in 64 bits, are too large
# for registers or for shared memory, and of many images a block.
COMPILED = {
    "gpu.cupy_direct": [
        *("n1c1h4320w7680k1r3s3p1", "n1c1h4320w7680k1r7s7p3", "n1c1h1081w1919k1r5s5p2", "n32c3h224w224k64r7s7t2p3"),
        *("n32c64h56w56k64r3s3p1", "n1000c1h4320w7680k1r3s3p1", "n1c1h512w512k1r31s31p15", "n1c3h40w41k3r3s3p2d2g3"),
    ],
    "gpu.cupy_depthwise": [
        *("n16c64h512w512k64r3s3p1g64", "n32c1024h7w7k1024r3s3p1g1024", "n32c64h112w112k64r3s3t2p1g64"),
        *("n1c1h512w512k1r31s31p15", "n1c1h512w512k1r101s101p50", "n1000c1h4320w7680k1r3s3p1"),
    ],
    "gpu.cupy_winograd": [
        *("n1c512h7w7k512r3s3p1", "n8c64h224w224k64r3s3p1", "n16c128h56w56k128r3s3t2p1", "n1000c16h2160w3840k16r3s3p1"),
    ],
}


def load(name, operation="conv2d"):
    """The module of a file that takes CuPy's arrays, with the kernels that it made."""
    with replaced(cupy_on_numpy()) as modules:
        return importlib.import_module(f"impls.{operation}.{name}"), modules["cupy"].kernels


def multiplies_in(dtype, ptx):
    """Whether there are fused multiply-adds in the requested precision, and none in the other."""
    unit, other = {"float32": ("f32", "f64"), "float64": ("f64", "f32")}[dtype]
    return re.search(rf"(fma\.rn|mma\.[\w.]*)\.{unit}", ptx) and f".{other}" not in ptx


def entry_of(kernel, folder):
    """The assembly of one kernel, in which nothing is in the other precision."""
    ptx = kernel.ptx(folder)
    assert multiplies_in(kernel.dtype, ptx)
    entries = re.split(r"\.visible \.entry (\w+)\(", ptx)
    entry = entries[entries.index(kernel.name) + 1]
    found = re.findall(rf"\.param \.\w+ (?:\.ptr [^,]*)?{kernel.name}_param_\d+", entry)
    assert len(found) == len(kernel.parameters)
    return entry


@pytest.mark.slow
@pytest.mark.parametrize(("operation", "name"), RAW)
def test_raw_kernels_compile(operation, name, tmp_path):
    _, kernels = load(name, operation)
    assert {kernel.dtype for kernel in kernels} == set(DTYPES)
    for kernel in kernels:
        entry_of(kernel, tmp_path)


@pytest.mark.parametrize("code", [cuda_clock.SPIN, *(f"typedef {kind} T;{MULTIPLY_ADDS}" for kind in ("float", "double"))])
def test_kernels_of_the_clock_and_the_ceilings_compile(code, tmp_path):
    assert re.search(r"\.visible \.entry \w+\(", assembly(code, tmp_path))


def made_for(name, label, dtype):
    """The kernels that a file makes for a problem."""
    module, kernels = load(name)
    problem = Problem.parse(label, dtype=dtype)
    shapes = problem.input_shape, problem.weight_shape, problem.output_shape
    together = {"float32": 4, "float64": 2}[dtype]
    given = dict(zip(("input", "weight", "output", "load", "store"), (*shapes, together, together), strict=True))
    given |= {"stride": (problem.stride,) * 2, "before": problem.padding, "dilation": (problem.dilation,) * 2}
    given |= {"groups": problem.groups, "dtype": dtype}
    module.launch(**{word: given[word] for word in inspect.signature(module.launch).parameters})
    return kernels


# Each problem in one dtype, in turn; in the other it is a proof.
PROBLEMS = [
    pytest.param(name, label, dtype, marks=[pytest.mark.proof] * ((i + k) % 2))
    for name, labels in COMPILED.items()
    for i, label in enumerate(labels)
    for k, dtype in enumerate(DTYPES)
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "label", "dtype"), PROBLEMS)
def test_kernels_made_for_a_problem_compile(name, label, dtype, tmp_path):
    entries = [entry_of(kernel, tmp_path) for kernel in made_for(name, label, dtype)]
    together = math.gcd({"float32": 4, "float64": 2}[dtype], Problem.parse(label).w)
    if any(word in label for word in ("r31", "r101")):
        assert not entries  # impls.conv2d.cupy_pixels has one for all
    elif together > 1:
        at_once = rf"ld\.global\.nc\.v{together}\.|cp\.async\.c[ag]\.shared\.global\S* \[\S+, \[\S+, 16"
        assert any(re.search(at_once, entry) for entry in entries)


@pytest.mark.parametrize(
    "label", [pytest.param(one, marks=[pytest.mark.proof] * bool(i)) for i, one in enumerate(COMPILED["gpu.cupy_depthwise"])]
)
def test_depthwise_kernels_suit_devices_that_copy_nothing_by_themselves(label, tmp_path):
    for dtype in DTYPES:
        with case(dtype):
            assert all(
                "cp.async" not in kernel.ptx(tmp_path, "sm_75") for kernel in made_for("gpu.cupy_depthwise", label, dtype)
            )


@pytest.mark.parametrize(("operation", "name"), [*RAW, *(("conv2d", name) for name in (*COMPILED, "gpu.numba_direct"))])
def test_blocks_suit_every_multiprocessor(operation, name, monkeypatch):
    monkeypatch.setattr("numba.cuda.is_available", lambda: True)
    assert load(name, operation)[0].THREADS in {128, 256, 512, 1024}


def simulated(name, variable, problems):
    """How many outputs were right, in an interpreter where the variable asks for the simulator."""
    done = subprocess.run(
        [sys.executable, "-P", str(HELPERS / "gpu_simulated.py"), name, problems],
        env={**os.environ, "PYTHONPATH": f"{HELPERS}{os.pathsep}{HELPERS.parents[1]}", variable: "1"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


# How many outputs the simulators compare of some problems and, as a proof, of all.
SIMULATED = {
    "gpu.numba_direct": [("some", 1_000), pytest.param("every", 10_000, marks=pytest.mark.proof)],
    "gpu.triton_direct": [("some", 5_000), pytest.param("every", 50_000, marks=pytest.mark.proof)],
}


# Numba


@pytest.mark.slow
@pytest.mark.parametrize(("problems", "outputs"), SIMULATED["gpu.numba_direct"])
def test_numba_kernel_in_the_simulator(problems, outputs):
    pytest.importorskip("numba.cuda", exc_type=ImportError)
    assert simulated("gpu.numba_direct", "NUMBA_ENABLE_CUDASIM", problems) > outputs


@pytest.mark.parametrize("dtype", DTYPES)
def test_numba_kernel_compiles(dtype, monkeypatch):
    cuda = pytest.importorskip("numba.cuda", exc_type=ImportError)
    types = importlib.import_module("numba.types")
    if not importlib.import_module("numba.cuda.cudadrv.nvvm").is_available():
        pytest.skip("libNVVM, NVIDIA's compiler library, is not installed")
    monkeypatch.setattr("numba.cuda.is_available", lambda: True)
    module, _ = load("gpu.numba_direct")
    images, values = (types.Array(getattr(types, dtype), dimensions, "C") for dimensions in (4, 1))
    pairs = [types.UniTuple(types.int64, 2)] * 3
    signature = (images, images, values, images, *pairs, types.int64)
    assert multiplies_in(dtype, cuda.compile_ptx(module._outputs.py_func, signature, cc=(9, 0))[0])


def test_numba_without_its_compiler_says_what_to_install(monkeypatch):
    pytest.importorskip("numba.cuda", exc_type=ImportError)
    monkeypatch.setattr("numba.cuda.is_available", lambda: False)
    with pytest.raises(impls.Unavailable, match=r"^gpu\.numba_direct needs .*pip install numba-cuda\[cu13\]$"):
        load("gpu.numba_direct")


# Triton


@pytest.mark.slow
@pytest.mark.parametrize(("problems", "outputs"), SIMULATED["gpu.triton_direct"])
def test_triton_kernel_in_the_simulator(problems, outputs):
    pytest.importorskip("triton")
    assert simulated("gpu.triton_direct", "TRITON_INTERPRET", problems) > outputs


# Each form with a bias in one dtype, in turn; the others are proofs.
FORMS = [
    pytest.param(dtype, bias, *form, marks=[pytest.mark.proof] * (not bias or (i + k) % 2))
    for i, form in enumerate(
        [((3, 3), True, "i32"), ((3, 3), False, "i64"), ((1, 1), False, "i32"), ((1, 1), False, "one"), ((7, 5), True, "i64")]
    )
    for k, dtype in enumerate(DTYPES)
    for bias in (True, False)
]


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "bias", "kernel", "padded", "sizes"), FORMS)
def test_triton_kernel_compiles(dtype, bias, kernel, padded, sizes, tmp_path, monkeypatch):
    triton = pytest.importorskip("triton")
    target = importlib.import_module("triton.backends.compiler").GPUTarget("cuda", 90, 32)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    with torch_on_the_cpu():
        module = importlib.import_module("impls.conv2d.gpu.triton_direct")
    names = module._tile.arg_names
    kinds = dict.fromkeys(names, "i32")
    kinds |= dict.fromkeys(("input", "weight", "bias", "output"), {"float32": "*fp32", "float64": "*fp64"}[dtype])
    # Triton compiles anew where a number is 1, and where there is no bias.
    fixed = {name: 1 for name, kind in kinds.items() if kind == "i32" and sizes == "one"}
    fixed |= dict(zip(("TAPS_Y", "TAPS_X"), kernel, strict=True)) | {"PADDED": padded, "PLAIN": kernel == (1, 1)}
    fixed["INDEX"] = module.tl.int64 if sizes == "i64" else module.tl.int32
    outputs, pixels, _ = module._blocks(512, 1 << 20, 1, {"float32": 4, "float64": 8}[dtype])
    fixed |= {"TAPS": module.TAPS, "OUTPUTS": outputs, "PIXELS": pixels} | ({} if bias else {"bias": None})
    kinds |= dict.fromkeys(fixed, "constexpr")
    source = importlib.import_module("triton.compiler").ASTSource(
        module._tile, kinds, {(names.index(name),): value for name, value in fixed.items()}
    )
    ptx = triton.compile(source, target=target, options={"enable_fp_fusion": True, "num_warps": 8}).asm["ptx"]
    assert multiplies_in(dtype, ptx)
    assert "tf32" not in ptx


def test_precision_is_named():
    """The interpreter always multiplies in full precision, so only the source shows the requested one."""
    text = (Path(impls.__file__).parent / "conv2d/gpu/triton_direct.py").read_text()
    assert re.findall(r"tl\.dot\(.*\)", text)
    assert all('input_precision="ieee"' in call for call in re.findall(r"tl\.dot\(.*\)", text))
    assert declaration("gpu.triton_direct")["family"] == "direct"
