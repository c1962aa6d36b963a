"""The contract of implementations: their declaration, listing, loading and calls.

An implementation of operation `conv2d` called `cpu.example` is the file `impls/conv2d/cpu/example.py`. It holds one public
function, named for the operation, under the decorator below. There is no registry.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import functools
import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from impls.prepared import Packing

FOLDER = Path(__file__).parent
Origin = tuple[Callable[..., Any], tuple[Any, ...]]  # a function and its arguments, as pickle has them

# What to install where an import fails, by the missing module's first name.
CURES = {
    "cupy": "install CuPy for your CUDA, with the libraries it calls: pip install cupy-cuda13x[ctk]",
    "cv2": "pip install opencv-python-headless",
    "llvmlite": "pip install numba",  # Numba's declarations are made with it
    "numba": "pip install numba",
    "PIL": "pip install pillow",
    "rasterio": "pip install rasterio",
    "scipy": "pip install scipy",
    "skimage": "pip install scikit-image",
    "tifffile": "pip install tifffile",
    "torch": "pip install torch==2.13.0",
    "triton": "pip install triton",
}

# What a compiled part needs beside a C compiler, by its name in meson.build.
HEADERS = {"_cython_jpeg": "a C compiler and libjpeg-turbo's headers are (Debian: apt-get install libjpeg-dev)"}


class Unavailable(ImportError):
    """An implementation cannot run here: a library, a compiler or a device is missing. The message says what to install."""


@dataclass(frozen=True)
class Implementation:
    """An implementation of an operation: callable like the operation, with the declarations of its file.

    name: empty until load() or wrap() gives one. function: the operation with its checks. unchecked: the same without, to be
    called with arguments that are checked and in one form (impls/<operation>/arguments.py) and with all of them.
    prepare(weight, bias=None, stride=1, padding=0, dilation=1, groups=1) packs a weight once and returns a function of the
    input alone, as inference has it; None if the file has none.

    Pickled and copied by its origin, what makes it again: an unnamed one by its place in its module, as a function is.
    """

    name: str
    operation: str
    function: Callable[..., Any] = field(repr=False, compare=False)
    unchecked: Callable[..., Any] = field(repr=False)
    device: str
    family: str
    summary: str
    arrays: str
    limits: Mapping[str, Any] = field(compare=False)
    prepare: Callable[..., Callable[[Any], Any]] | None = field(default=None, repr=False, compare=False)
    origin: Origin | None = field(default=None, init=False, repr=False, compare=False)

    # Calls the operation: same arguments and errors for every implementation of it. The attribute's getter is no Python code:
    # a method that only calls on takes 0.4 us, a tenth of the smallest problems' time.
    __call__: ClassVar[Callable[..., Any]] = property(attrgetter("function"))  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Copy the function's name, docstring and signature."""
        object.__setattr__(self, "__module__", self.unchecked.__module__)
        with contextlib.suppress(ValueError):  # compiled functions may have no signature
            object.__setattr__(self, "__signature__", inspect.signature(self.unchecked))

    def __reduce__(self) -> Origin | str:
        return self.origin or self.unchecked.__qualname__

    def unsupported(self, *shapes: tuple[int, ...], dtype: str = "float32", **arguments: Any) -> str | None:
        """Return why this implementation cannot do that problem, or None if it can.

        For conv2d: unsupported(input_shape, weight_shape, stride=1, padding=0, dilation=1, groups=1, dtype="float32").
        Raises ValueError or TypeError, as a call would, where no implementation could.
        """
        return _arguments_module(self.operation).unsupported(self.limits, *shapes, dtype=dtype, **arguments)

    def to_device(self, array: Any) -> Any:
        """Copy a NumPy array to where this implementation takes it from; on the CPU the array itself."""
        if self.arrays == "cupy":
            return importlib.import_module("cupy").asarray(array)
        if self.arrays == "torch":
            # Copied first: torch refuses some of the memory layouts that NumPy has.
            return importlib.import_module("torch").as_tensor(np.array(array, order="C"), device="cuda")
        return array

    def to_numpy(self, array: Any) -> Any:
        """Copy a result to a NumPy array; a tuple of results to a tuple."""
        if isinstance(array, tuple):
            return tuple(map(self.to_numpy, array))
        if self.arrays == "cupy":
            return importlib.import_module("cupy").asnumpy(array)
        if self.arrays == "torch":
            return array.cpu().numpy()
        return array

    def synchronize(self) -> None:
        """Wait for the device; does nothing on the CPU."""
        if self.arrays == "cupy":
            importlib.import_module("cupy").cuda.get_current_stream().synchronize()
        elif self.arrays == "torch":
            importlib.import_module("torch").cuda.synchronize()


def implementation(
    *, device: str, family: str, summary: str, arrays: str = "numpy", limits: Mapping[str, Any] | None = None
) -> Callable[[Callable[..., Any]], Implementation]:
    """Declare the function below it as an implementation of the operation it is named for, and make it an Implementation.

    device: "cpu" or "cuda". family: the kind of algorithm ("direct", "im2col", "fft", "winograd", ...). summary: one line.
    arrays: the array library, "numpy", "cupy" or "torch". limits: the only values it supports of some
    arguments, {"stride": 1}, several as a set, {"stride": {1, 2}}, of weight's second dimension, {"C/groups": 1}, of a
    ratio along each axis, {"dilation/stride": {1, 2}}, or of what they name otherwise. All of them literals, so that they can
    be read without importing the file.

    The function is called with checked arguments in one form: stride and dilation as pairs, padding as
    ((top, bottom), (left, right)). So every implementation raises the same error for the same mistake.
    """
    allowed = dict(limits or {})

    def decorate(unchecked: Callable[..., Any]) -> Implementation:
        operation = unchecked.__name__
        function = functools.wraps(unchecked)(_checker(operation)(arrays, allowed, unchecked))
        return Implementation("", operation, function, unchecked, device, family, summary, arrays, allowed)

    return decorate


def names(operation: str = "conv2d", device: str | None = None) -> list[str]:
    """List the implementations of an operation, sorted; `device` keeps those for "cpu" or "cuda".

    Raises LookupError for an unknown operation or device. Imports none of the files.
    """
    if device not in (None, "cpu", "cuda"):
        raise LookupError(_unknown("device", str(device), ["cpu", "cuda"]))
    found = sorted(_files(operation))
    if device is None:
        return found
    return [name for name in found if declaration(name, operation)["device"] == device]


def declaration(name: str, operation: str = "conv2d") -> dict[str, Any]:
    """Read what a file declares (device, family, summary, arrays, limits) without importing it."""
    tree = ast.parse(_file(name, operation).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == operation:
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call):
                    literals = {word.arg: ast.literal_eval(word.value) for word in decorator.keywords if word.arg}
                    return {"arrays": "numpy", "limits": {}, **literals}
    raise LookupError(f"{name}: {operation}() with its @implementation(...) is missing from the file")


def load(name: str, operation: str = "conv2d") -> Implementation:
    """Import one implementation.

    Raises LookupError for an unknown name, with near matches, and Unavailable where it cannot run here.
    """
    _file(name, operation)
    make = functools.partial(importlib.import_module, f"impls.{operation}.{name}")
    return _named(name, operation, make, (load, (name, operation)))


def load_file(path: str | Path, operation: str = "conv2d", name: str = "") -> Implementation:
    """Import an implementation from a file anywhere, written like those of this package; its name is the file's without one.

    Raises FileNotFoundError, LookupError if the file has no function of the operation's name, TypeError where that has not
    the decorator, Unavailable where it cannot run here, and whatever the file raises when it is imported.
    """
    path = Path(path).absolute()
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file")
    return _named(name or path.stem, operation, functools.partial(_import_file, path), (load_file, (path, operation, name)))


def _import_file(path: Path) -> Any:
    """The file as a module that can be found by its name, as pickles and Numba's caches want it."""
    name = f"impls_file_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, path, loader=importlib.machinery.SourceFileLoader(name, str(path)))
    assert spec
    assert spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _named(name: str, operation: str, import_module: Callable[[], Any], origin: Origin) -> Implementation:
    """The implementation in a module. Raises Unavailable if it cannot be imported or used here."""
    try:
        module = import_module()
    except Unavailable:
        raise
    except OSError as error:  # a library that is there and cannot be loaded
        raise Unavailable(f"{name} cannot be imported: {error}; reinstall the library in the message") from error
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        raise Unavailable(f"{name} cannot be imported: {error}; set NUMBA_CACHE_DIR to a writable folder") from error
    except ImportError as error:
        cure = _cure(error)
        if cure is None:
            raise
        raise Unavailable(f"{name} cannot be imported: {error}; {cure}") from error
    if not hasattr(module, operation):
        raise LookupError(f"{name}: its file has no function {operation}()")
    if sys.modules.get("numba"):
        importlib.import_module("impls.numba_conditions").require(name, module)
    parts = getattr(module, operation), getattr(module, "prepare", None), getattr(module, "pick", None)
    return _wrap(name, *parts, origin)


def wrap(
    name: str,
    function: Any,
    prepare: Callable[..., Any] | None = None,
    pick: Callable[..., Callable[..., Any]] | None = None,
) -> Implementation:
    """Name an implementation that the decorator made; load() does so for files, this for functions from elsewhere.

    prepare: what packs a weight, prepare(weight, bias, stride, padding, dilation, groups), called with arguments in one form.
    pick: says of a problem, once, which function without checks computes it in place of the decorated one (conv2d alone:
    checker() in impls/conv2d/arguments.py).
    """
    return _wrap(name, function, prepare, pick, (wrap, (name, function, prepare, pick)))


def _wrap(
    name: str,
    function: Any,
    prepare: Callable[..., Any] | None,
    pick: Callable[..., Callable[..., Any]] | None,
    origin: Origin,
) -> Implementation:
    if not isinstance(function, Implementation) or function.name:
        raise TypeError(f"{name}: {function!r} lacks the decorator @impls.contract.implementation(...)")
    made = replace(function, name=name)
    checker = functools.partial(_checker(made.operation), made.arrays, made.limits)
    if prepare:
        made = replace(made, prepare=Packing(origin, prepare, checker()))
    if pick:
        made = replace(made, function=functools.wraps(made.unchecked)(checker(made.unchecked, pick)))
    object.__setattr__(made, "origin", origin)
    return made


def _cure(error: ImportError) -> str | None:
    """What to do about a failed import; None if a file of this package is at fault and nothing is missing."""
    missing = (error.name or "").split(".")
    if missing[0] == "impls":
        compiled = missing[-1].startswith("_") and isinstance(error, ModuleNotFoundError)
        where = HEADERS.get(missing[-1], "a C compiler is")
        return f"its compiled part is missing: install convbench where {where}, with pip install ." if compiled else None
    what = "install what the message names" if isinstance(error, ModuleNotFoundError) else "it or what it needs is broken"
    return CURES.get(missing[0], what)


def _arguments_module(operation: str) -> Any:
    return importlib.import_module(f"impls.{operation}.arguments")


def _checker(operation: str) -> Callable[..., Callable[..., Any]]:
    """The maker of an implementation's checked function: checker(arrays, limits, unchecked)."""
    return _arguments_module(operation).checker


def _operations() -> list[str]:
    return sorted(path.parent.name for path in FOLDER.glob("*/arguments.py"))


def _files(operation: str) -> dict[str, Path]:
    if operation not in _operations():
        raise LookupError(_unknown("operation", operation, _operations()))
    files = (FOLDER / operation).glob("*/[!_]*.py")
    return {f"{path.parent.name}.{path.stem}": path for path in files}


def _file(name: str, operation: str) -> Path:
    files = _files(operation)
    if name not in files:
        raise LookupError(_unknown(f"implementation of {operation}", name, sorted(files)))
    return files[name]


def _unknown(kind: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or [k for k in known if name in k]
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    return f"no {kind} is called {name!r}; {hint}"
