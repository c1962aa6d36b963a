"""Stand-ins for the tests of GPU implementations without a GPU: CuPy on NumPy, raw CUDA kernels as C++.

    with replaced(cupy_on_numpy()):
        function = impls.load("gpu.cupy_direct")
    output = on_numpy(function, input, weight, padding=1)

Only what CuPy's reference manual lists stands here, and only with arguments that mean the same as NumPy's: an
implementation that uses something else fails, and its author looks it up first. The threads of a kernel run one after
the other, each as far as it has to wait for the rest of its block.
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
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from gpu_problems import in_one_form

# As in https://docs.cupy.dev/en/stable/reference/routines.html
ROUTINES = (
    *("arange", "ascontiguousarray", "clip", "einsum", "empty", "isfinite", "matmul", "minimum", "multiply", "pad", "zeros"),
)
C_TYPES = {"T*": ctypes.c_void_p, "int": ctypes.c_int, "long long": ctypes.c_longlong}
NUMPY_TYPES = {"int": np.int32, "long long": np.int64}


class Place:
    """A device by its number; of no number, the current one."""

    def __init__(self, number=0):
        self.id = number


class Array(np.ndarray):
    """A NumPy array that refuses what a CuPy array refuses: to be mixed with NumPy's, or passed to NumPy's functions."""

    __module__ = "cupy"
    device = Place()

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return lift(getattr(ufunc, method))(*inputs, **keywords)

    def __array_function__(self, function, types, args, kwargs):
        raise TypeError(f"numpy.{function.__name__} of a CuPy array")

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)

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
    import scipy.fft  # here, because tests on a device, where SciPy need not be, import this file too
    import scipy.ndimage

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
        cuda=module(
            "cuda",
            runtime=module(
                "runtime",
                getDeviceCount=lambda: 1,
                getDevice=lambda: 0,
                getDeviceProperties=lambda device: {"multiProcessorCount": 132},
                CUDARuntimeError=error,
            ),
            get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
        ),
        fft=module("fft", rfft2=lift(np.fft.rfft2), irfft2=lift(np.fft.irfft2)),
        kernels=kernels,
        lib=module("lib", stride_tricks=stride_tricks),
        ElementwiseKernel=ElementwiseKernel,
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
        names = [name for name in sys.modules if re.fullmatch(r"impls\.\w+\.((gpu|im2col)\..*|cupy_\w+)", name)]
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
    from impls.conv2d.tensors import tensor  # here, because it imports torch

    (input, weight, bias), settings = (*arrays, None)[:3], in_one_form(*arrays, **settings)
    tensors = (None if array is None else tensor(array) for array in (input, weight, bias))
    return function.unchecked(*tensors, *settings).numpy()


class RawKernel:
    """cupy.RawKernel on the CPU: the source that starts with "typedef float T;" or double, compiled as C++."""

    BLOCK_AFTER_BLOCK = """
    #include <ucontext.h>
    struct Index {{ unsigned int x, y, z; }};
    static Index gridDim, blockDim, blockIdx, threadIdx;
    static ucontext_t all;
    static ucontext_t threads[1024];
    static bool done[1024];
    static char stacks[1024][1 << 14];
    static unsigned int now;
    static void __syncthreads() {{ swapcontext(&threads[now], &all); }}
    static void __syncwarp() {{ __syncthreads(); }}
    #define __global__
    #define __device__
    #define __shared__ static
    #define __forceinline__ inline
    #define __launch_bounds__(...)
    #define __activemask() 1
    #define __all_sync(mask, holds) (holds)
    template <class V> static V atomicAdd(V* place, V value) {{ V old = *place; *place += value; return old; }}
    {code}
    static void* const* given;
    static void thread() {{
        {name}({arguments});
        done[now] = true;
    }}
    extern "C" void run(const Index* grid, const Index* block, void* const* arguments) {{
        given = arguments;
        gridDim = *grid;
        blockDim = *block;
        const unsigned int count = block->x * block->y * block->z;
        for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {{
            for (now = 0; now < count; ++now) done[now] = false;
            for (bool fresh = true, waiting = true; waiting; fresh = false) {{
                waiting = false;
                for (now = 0; now < count; ++now) {{
                    if (done[now]) continue;
                    threadIdx = {{now % block->x, now / block->x % block->y, now / block->x / block->y}};
                    if (!{waits}) {{ thread(); continue; }}
                    if (fresh) {{
                        getcontext(&threads[now]);
                        threads[now].uc_stack = {{stacks[now], 0, sizeof stacks[now]}};
                        threads[now].uc_link = &all;
                        makecontext(&threads[now], thread, 0);
                    }}
                    swapcontext(&all, &threads[now]);
                    waiting = waiting || !done[now];
                }}
            }}
        }}
    }}
    """

    flags = ("-O1",)

    def __init__(self, code, name):
        self.code, self.name = code, name
        self.dtype = {"float": "float32", "double": "float64"}[re.match(r"typedef (\w+) T;", code)[1]]
        self.parameters = re.search(rf"void {name}\((.*?)\)\s*\{{", code, re.DOTALL)[1].split(",")
        words = [
            re.fullmatch(r"\s*(?:const )?(\w+(?: long)?\*?)(?: __restrict__)? (\w+)\s*", text) for text in self.parameters
        ]
        self.types, self.names = zip(*(word.groups() for word in words), strict=True)

    @functools.cached_property
    def compiled(self):
        arguments = ", ".join(
            f"*(const {kind}*)given[{i}]" if kind != "T*" else f"*(T* const*)given[{i}]" for i, kind in enumerate(self.types)
        )
        waits = "true" if re.search(r"__sync(threads|warp)\(", self.code) else "false"
        code = self.BLOCK_AFTER_BLOCK.format(code=self.code, name=self.name, arguments=arguments, waits=waits)
        return compiled(code, *self.flags).run

    def __call__(self, grid, block, arguments):
        sizes = [(ctypes.c_uint * 3)(*(*size, 1, 1)[:3]) for size in (grid, block)]
        assert len(arguments) == len(self.types)
        assert max(grid[1:], default=1) < 2**16
        assert np.prod(block) <= 1024
        assert max((*block, 1, 1)[2:]) <= 64
        values = [self.to_c(kind, value) for kind, value in zip(self.types, arguments, strict=True)]
        self.compiled(*sizes, (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values)))

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

    def ptx(self, folder, device="sm_90"):
        return assembly(self.code, folder, device)


class ElementwiseKernel:
    """cupy.ElementwiseKernel on the CPU, all of its arguments of type T: compiled as C++ for the type of its arrays."""

    CODE = """
    #include <cmath>
    using std::sqrt;
    typedef {c_type} T;
    extern "C" void over_all(long long size, T** arrays, const T* scalars) {{
        for (long long i = 0; i < size; ++i) {{
            {names}
            {operation}
        }}
    }}
    """

    def __init__(self, inputs, outputs, operation, name):
        words = [re.fullmatch(r"\s*T (\w+)\s*", text) for text in f"{inputs},{outputs}".split(",")]
        self.names, self.operation = [word[1] for word in words], operation

    def __call__(self, *arguments):
        given = dict(zip(self.names, arguments, strict=True))
        arrays = {name: value for name, value in given.items() if isinstance(value, Array)}
        scalars = {name: value for name, value in given.items() if name not in arrays}
        (dtype,) = {array.dtype for array in arrays.values()}
        assert all(type(value) is dtype.type for value in scalars.values())
        assert all(array.flags.c_contiguous for array in arrays.values())
        (size,) = {array.size for array in arrays.values()}
        names = [f"T& {name} = arrays[{k}][i];" for k, name in enumerate(arrays)]
        names += [f"const T {name} = scalars[{k}];" for k, name in enumerate(scalars)]
        code = self.CODE.format(
            c_type={"float32": "float", "float64": "double"}[dtype.name], names=" ".join(names), operation=self.operation
        )
        places = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays.values()))
        values = np.array(list(scalars.values()), dtype)
        compiled(code).over_all(ctypes.c_longlong(size), places, ctypes.c_void_p(values.ctypes.data))


def assembly(code, folder, device="sm_90"):
    """PTX for devices from a generation on, by NVIDIA's compiler, every warning an error."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc, the CUDA compiler, is not installed")
    source, target = Path(folder, "kernel.cu"), Path(folder, "kernel.ptx")
    source.write_text(code)
    run(nvcc, "-ptx", f"-arch={device}", "-Werror", "all-warnings", "-o", target, source)
    return target.read_text()


@functools.cache
def compiled(code, *flags):
    """C++ as a shared library."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed")
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
        source.write_text(code)
        run(compiler, *(flags or ["-O1"]), "-shared", "-fPIC", "-o", library, source)
        return ctypes.CDLL(str(library))


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
