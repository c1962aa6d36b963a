"""What the tests of GPU implementations stand on where there is no GPU: CuPy on NumPy, raw CUDA kernels as C++.

    with replaced(cupy_on_numpy()):
        function = impls.load("gpu.cupy_direct")
    output = on_numpy(function, input, weight, padding=1)

Only what CuPy's reference manual lists stands here, and only with arguments that mean the same as NumPy's: an
implementation that uses something else fails, and whoever adds it looks it up first. Kernels run thread after thread,
so they may share no memory and wait for no other thread.
"""

import contextlib
import ctypes
import functools
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage
from gpu_problems import in_one_form

from impls.conv2d.tensors import tensor

# As in https://docs.cupy.dev/en/stable/reference/routines.html
ROUTINES = ("ascontiguousarray", "einsum", "empty", "isfinite", "multiply", "pad", "zeros")
C_TYPES = {"T*": ctypes.c_void_p, "int": ctypes.c_int, "long long": ctypes.c_longlong}
NUMPY_TYPES = {"int": np.int32, "long long": np.int64}


class Array(np.ndarray):
    """A NumPy array that refuses what a CuPy array refuses: to be mixed with NumPy's, or passed to NumPy's functions."""

    __module__ = "cupy"

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return lift(getattr(ufunc, method))(*inputs, **keywords)

    def __array_function__(self, function, types, args, kwargs):
        raise TypeError(f"numpy.{function.__name__} of a CuPy array")

    def __getitem__(self, key):
        return wrap(super().__getitem__(key))  # one element is an array too

    def __setitem__(self, key, value):
        super().__setitem__(key, unwrap(value))


def wrap(value):
    return np.asarray(value).view(Array) if isinstance(value, np.ndarray | np.generic) else value


def unwrap(value):
    if isinstance(value, Array):
        return value.view(np.ndarray)
    if isinstance(value, tuple):
        return tuple(map(unwrap, value))
    assert not isinstance(value, np.ndarray), "CuPy refuses a NumPy array"
    return value


def lift(function):
    """A function of NumPy's or SciPy's as one of CuPy arrays."""

    @functools.wraps(function)
    def lifted(*args, **kwargs):
        found = function(*map(unwrap, args), **{key: unwrap(value) for key, value in kwargs.items()})
        return kwargs["out"][0] if isinstance(kwargs.get("out"), tuple) else wrap(found)

    return lifted


def cupy_on_numpy():
    """Modules that stand for CuPy's, {name: module}; the raw kernels they make gather in their `kernels`."""

    def module(name, **contents):
        made = ModuleType(name)
        made.__dict__.update(contents)
        return made

    kernels = []

    class Gathered(RawKernel):
        def __init__(self, *args):
            super().__init__(*args)
            kernels.append(self)

    error = type("CUDARuntimeError", (RuntimeError,), {})
    stride_tricks = module("stride_tricks", as_strided=lift(np.lib.stride_tricks.as_strided))
    cupy = module(
        "cupy",
        **{name: lift(getattr(np, name)) for name in ROUTINES},
        asarray=lambda array: wrap(np.array(array)),
        asnumpy=unwrap,
        ndarray=Array,
        **{name: getattr(np, name) for name in ("int32", "int64", "uintp")},
        cuda=module("cuda", runtime=module("runtime", getDeviceCount=lambda: 1, CUDARuntimeError=error)),
        fft=module("fft", rfft2=lift(np.fft.rfft2), irfft2=lift(np.fft.irfft2)),
        kernels=kernels,
        lib=module("lib", stride_tricks=stride_tricks),
        RawKernel=Gathered,
    )
    return {
        "cupy": cupy,
        "cupy.lib": cupy.lib,
        "cupy.lib.stride_tricks": stride_tricks,
        "cupyx": module("cupyx"),
        "cupyx.scipy": module("cupyx.scipy"),
        "cupyx.scipy.fft": module("cupyx.scipy.fft", next_fast_len=scipy.fft.next_fast_len),
        "cupyx.scipy.ndimage": module("cupyx.scipy.ndimage", correlate=lift(scipy.ndimage.correlate)),
    }


@contextlib.contextmanager
def replaced(modules):
    """Let modules stand in sys.modules; what impls imports meanwhile for a GPU is imported anew, and forgotten after."""

    def forget():
        names = [name for name in sys.modules if re.fullmatch(r"impls\.\w+\.((gpu|im2col)\..*|cupy_arrays)", name)]
        return {name: sys.modules.pop(name) for name in names}

    before = {name: sys.modules[name] for name in modules if name in sys.modules} | forget()
    sys.modules.update(modules)
    try:
        yield modules
    finally:
        forget()
        for name in modules:
            del sys.modules[name]
        sys.modules.update(before)


def on_numpy(function, *arrays, **settings):
    """Call an implementation that was loaded over cupy_on_numpy(), NumPy arrays in and out."""
    output = function(*(None if array is None else np.asarray(array).view(Array) for array in arrays), **settings)
    return tuple(map(unwrap, output)) if isinstance(output, tuple) else unwrap(output)


@contextlib.contextmanager
def torch_on_the_cpu():
    """Let torch claim that there is a CUDA device."""
    with replaced({}), pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.cuda.is_available", lambda: True)
        yield


def on_the_cpu(function, *arrays, **settings):
    """Call an implementation that was loaded within torch_on_the_cpu(), NumPy arrays in and out.

    Its checks are left out, since they would refuse tensors that are not on a CUDA device.
    """
    (input, weight, bias), settings = (*arrays, None)[:3], in_one_form(*arrays, **settings)
    tensors = (None if array is None else tensor(array) for array in (input, weight, bias))
    return function.function.__wrapped__(*tensors, *settings).numpy()


class RawKernel:
    """cupy.RawKernel on the CPU: the source that starts with "typedef float T;" or double, compiled as C++."""

    THREADS_IN_TURN = """
    struct Index {{ unsigned int x, y, z; }};
    static Index gridDim, blockDim, blockIdx, threadIdx;
    #define __global__
    #define __device__
    #define __forceinline__ inline
    template <class V> static V atomicAdd(V* place, V value) {{ V old = *place; *place += value; return old; }}
    {code}
    extern "C" void in_turn(const Index* grid, const Index* block, {parameters}) {{
        gridDim = *grid;
        blockDim = *block;
        for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
        for (threadIdx.z = 0; threadIdx.z < blockDim.z; ++threadIdx.z)
        for (threadIdx.y = 0; threadIdx.y < blockDim.y; ++threadIdx.y)
        for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x)
            {name}({names});
    }}
    """

    def __init__(self, code, name):
        self.code, self.name = code, name
        self.dtype = {"float": "float32", "double": "float64"}[re.match(r"typedef (\w+) T;", code)[1]]
        self.parameters = re.search(rf"void {name}\((.*?)\)\s*\{{", code, re.DOTALL)[1].split(",")
        words = [
            re.fullmatch(r"\s*(?:const )?(\w+(?: long)?\*?)(?: __restrict__)? (\w+)\s*", text) for text in self.parameters
        ]
        self.types, self.names = zip(*(word.groups() for word in words), strict=True)

    @functools.cached_property
    def in_turn(self):
        compiler = shutil.which("c++") or shutil.which("g++")
        if compiler is None:
            pytest.skip("no C++ compiler is installed")
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
            parts = {"code": self.code, "name": self.name, "parameters": ",".join(self.parameters)}
            source.write_text(self.THREADS_IN_TURN.format(**parts, names=", ".join(self.names)))
            run(compiler, "-O1", "-shared", "-fPIC", "-o", library, source)
            return ctypes.CDLL(str(library)).in_turn

    def __call__(self, grid, block, arguments):
        sizes = [(ctypes.c_uint * 3)(*(*size, 1, 1)[:3]) for size in (grid, block)]
        assert len(arguments) == len(self.types)
        self.in_turn(*sizes, *map(self.to_c, self.types, arguments))

    def to_c(self, kind, value):
        """An argument as C takes it; CuPy passes on its bytes, so its type must be the parameter's."""
        if kind != "T*":
            assert type(value) is NUMPY_TYPES[kind]
            return C_TYPES[kind](int(value))
        if isinstance(value, Array):
            assert value.dtype == self.dtype
            assert value.flags.c_contiguous
            return C_TYPES[kind](value.ctypes.data)
        assert type(value) is np.uintp
        assert value == 0
        return C_TYPES[kind]()

    def ptx(self, folder):
        """The kernel compiled by NVIDIA's compiler, every warning an error."""
        nvcc = shutil.which("nvcc")
        if nvcc is None:
            pytest.skip("nvcc, the CUDA compiler, is not installed")
        source, target = Path(folder, "kernel.cu"), Path(folder, "kernel.ptx")
        source.write_text(self.code)
        run(nvcc, "-ptx", "-Werror", "all-warnings", "-o", target, source)
        return target.read_text()


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
