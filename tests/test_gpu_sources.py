"""GPU kernels without a GPU: compiled to NVIDIA's assembly, and run in Numba's and Triton's simulators."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from gpu_problems import DTYPES
from gpu_stand_ins import cupy_on_numpy, replaced, torch_on_the_cpu

import impls
from impls.contract import declaration

HERE = Path(__file__).parent
RAW = [
    (operation, name)
    for operation in ("conv2d", "conv2d_backward", "conv_transpose2d")
    for name in impls.names(operation, "cuda")
    if name == "gpu.cupy_direct"
]


def load(name, operation="conv2d"):
    """The module of a file that takes CuPy's arrays, with the kernels that it made."""
    with replaced(cupy_on_numpy()) as modules:
        return importlib.import_module(f"impls.{operation}.{name}"), modules["cupy"].kernels


def multiplies_in(dtype, ptx):
    """Whether there are fused multiply-adds in the precision asked for, and nothing in the other one."""
    unit, other = {"float32": ("f32", "f64"), "float64": ("f64", "f32")}[dtype]
    return re.search(rf"(fma\.rn|mma\.[\w.]*)\.{unit}", ptx) and f".{other}" not in ptx


@pytest.mark.parametrize(("operation", "name"), RAW)
def test_raw_kernels_compile(operation, name, tmp_path):
    _, kernels = load(name, operation)
    assert {kernel.dtype for kernel in kernels} == set(DTYPES)
    for kernel in kernels:
        ptx = kernel.ptx(tmp_path)
        assert multiplies_in(kernel.dtype, ptx)
        entries = re.split(r"\.visible \.entry (\w+)\(", ptx)
        parameters = entries[entries.index(kernel.name) + 1]
        assert len(re.findall(rf"\.param \.\w+ (?:\.ptr [^,]*)?{kernel.name}_param_\d+", parameters)) == len(
            kernel.parameters
        )


@pytest.mark.parametrize(("operation", "name"), [*RAW, ("conv2d", "gpu.numba_direct")])
def test_blocks_suit_every_multiprocessor(operation, name, monkeypatch):
    monkeypatch.setattr("numba.cuda.is_available", lambda: True)
    assert load(name, operation)[0].THREADS in {128, 256, 512, 1024}


def simulated(name, variable):
    """How many outputs were right, in an interpreter where the variable asks for the simulator."""
    done = subprocess.run(
        [sys.executable, "-P", str(HERE / "gpu_simulated.py"), name],
        env={**os.environ, "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parent}", variable: "1"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


# Numba


def test_numba_kernel_in_the_simulator():
    pytest.importorskip("numba.cuda", exc_type=ImportError)
    assert simulated("gpu.numba_direct", "NUMBA_ENABLE_CUDASIM") > 10_000


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


def test_triton_kernel_in_the_simulator():
    pytest.importorskip("triton")
    assert simulated("gpu.triton_direct", "TRITON_INTERPRET") > 50_000


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sizes", ["any", "one"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_triton_kernel_compiles(dtype, sizes, bias, tmp_path, monkeypatch):
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
    fixed |= {"PIXELS": module.PIXELS, "TAPS": module.TAPS, "OUTPUTS": max(module.OUTPUTS)} | ({} if bias else {"bias": None})
    kinds |= dict.fromkeys(fixed, "constexpr")
    source = importlib.import_module("triton.compiler").ASTSource(
        module._tile, kinds, {(names.index(name),): value for name, value in fixed.items()}
    )
    ptx = triton.compile(source, target=target, options={"enable_fp_fusion": True}).asm["ptx"]
    assert multiplies_in(dtype, ptx)
    assert "tf32" not in ptx


def test_precision_is_named():
    """The interpreter multiplies in full whatever is asked for, so only the source tells."""
    text = (Path(impls.__file__).parent / "conv2d/gpu/triton_direct.py").read_text()
    assert re.findall(r"tl\.dot\(.*\)", text)
    assert all('input_precision="ieee"' in call for call in re.findall(r"tl\.dot\(.*\)", text))
    assert declaration("gpu.triton_direct")["family"] == "direct"
