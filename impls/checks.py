"""Checks that the operations share: array libraries, dtypes, numbers and pairs, limits, and free memory."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

Pair = tuple[int, int]
DTYPES = ("float32", "float64")
ITEMSIZE = {"float32": 4, "float64": 8}
MAX_INT32 = 2**31 - 1  # of a side, stride, padding or dilation: what every library underneath can count to
UNASKED = 1 << 28  # bytes that are allocated without checking free memory, which costs 30 us
OWNERS = {"numpy": "a NumPy array", "cupy": "a CuPy array", "torch": "a torch tensor on a CUDA device"}
CGROUP = Path("/sys/fs/cgroup")


def together(*arguments: Any, out: Any = None) -> tuple[Any, ...]:
    """Return the checked arguments themselves, in place of a call."""
    return arguments


def into(out: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of which some write their result into `out` and others are copied there; None: return a new array."""
    if out is None:
        return function(*arguments)
    if _takes_out(function):
        return function(*arguments, out=out)
    out[...] = function(*arguments)
    return out


@functools.lru_cache(maxsize=256)
def _takes_out(function: Callable[..., Any]) -> bool:
    return "out" in inspect.signature(function).parameters


def require_output(owner: str, out: Any, shape: tuple[int, ...], dtype: Any, **others: Any) -> None:
    """Raise TypeError or ValueError for an array that a result of such a shape and dtype cannot be written into."""
    if owner != "numpy":
        raise TypeError(f"out is taken by implementations of NumPy's arrays, not of {owner}'s")
    require_arrays(owner, out=out)
    if out.dtype != dtype:
        raise TypeError(f"out must have the arrays' dtype {dtype}, not {out.dtype}")
    if out.shape != shape:
        raise ValueError(f"out must have the output's shape {shape}, not {out.shape}")
    if not (out.flags.c_contiguous and out.flags.aligned and out.flags.writeable):
        raise ValueError("out must be writable, aligned and contiguous in C's order: numpy.empty makes such an array")
    for name, other in others.items():
        if other is not None and np.may_share_memory(out, other):
            raise ValueError(f"out and {name} must not share memory")


def belongs(owner: str) -> Callable[[Any], bool]:
    """Make a test for arrays of a library, "numpy", "cupy" or "torch".

    A kernel of CuPy's runs on the current device, and another's memory may be out of its reach.
    """
    if owner == "numpy":
        # A masked array is one by class and another by what it means.
        return lambda array: (
            type(array) is np.ndarray or (isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray))
        )
    if owner == "cupy":
        return lambda array: _maker(array) == owner and array.device.id == _current(array.device).id
    return lambda array: _maker(array) == owner and getattr(array, "is_cuda", False)


def require_arrays(owner: str, **arrays: Any) -> None:
    """Raise TypeError for the first that is not an array of its owner, and ValueError for one of CuPy's on a device that is
    not the current one; a bias may be None.
    """
    for name, array in arrays.items():
        if belongs(owner)(array) or (array is None and name == "bias"):
            continue
        if owner == _maker(array) == "cupy":
            place = array.device
            raise ValueError(
                f"{name} is on device {place.id}, and the current one is {_current(place).id}: "
                f"have all arrays on one, and call under `with cupy.cuda.Device({place.id}):`"
            )
        raise TypeError(f"{name} must be {OWNERS[owner]}, not {type(array).__name__}{_conversion(owner, name, array)}")


def _conversion(owner: str, name: str, array: Any) -> str:
    """The conversion to such an array, if it is known."""
    if owner != "numpy":
        return f": the implementation's to_device({name}) is one" if belongs("numpy")(array) else ""
    if _maker(array) == "torch":
        return f": {name}.numpy(force=True) is one"
    if _maker(array) == "cupy":
        return f": {name}.get() is one"
    if isinstance(array, np.ma.MaskedArray):
        return f": {name}.filled(0) is one"
    arrays = isinstance(array, (list, tuple, memoryview)) or hasattr(array, "__array__")
    return f": numpy.asarray({name}) is one" if arrays else ""


def aligned(owner: str, *arrays: Any) -> tuple[Any, ...]:
    """The same arrays, but copies of those whose elements lie at no multiple of their size, which C may not read."""
    if owner != "numpy":
        return arrays
    return tuple(array if array is None or array.flags.aligned else array.copy() for array in arrays)


def _maker(array: Any) -> str:
    """The package of an array's class."""
    return type(array).__module__.partition(".")[0]


def _current(device: Any) -> Any:
    """CuPy's current device, from any of its devices, without importing the library."""
    return type(device)()


def require_no_overlap(places: Iterable[tuple[int, int, str]]) -> None:
    """Raise ValueError if two arrays share memory. places: where each begins, its bytes, its name."""
    for (first, size, one), (second, _, other) in itertools.pairwise(sorted(places)):
        if second - first < size:
            raise ValueError(f"{one} and {other} must not share memory")


def require_one_dtype(**arrays: Any) -> None:
    """Raise TypeError if the arrays have several dtypes."""
    given = {name: array.dtype for name, array in arrays.items() if array is not None}
    if len(set(map(str, given.values()))) > 1:
        *most, last = arrays
        words = ", ".join(f"{name} {dtype}" for name, dtype in given.items())
        raise TypeError(f"{', '.join(most)} and {last} must have one dtype, not {words}: convert to one of them")


@functools.lru_cache(maxsize=64)
def dtype_name(dtype: Any, supported: tuple[str, ...] = DTYPES) -> str:
    """The name of a dtype, "float32" or "float64". Raises TypeError for one that no implementation supports.

    dtype: an array's, a class such as np.float32, or the name itself. supported: the names that the operation takes.
    """
    name = getattr(dtype, "__name__", str(dtype)).removeprefix("torch.")  # np.float32 itself is a class
    if name not in supported:
        if supported == DTYPES:
            raise TypeError(f"dtype must be float32 or float64 in native byte order, not {name}: convert to one of them")
        raise TypeError(f"dtype must be {' or '.join(supported)}, not {name}")
    return name


def plain(**settings: Any) -> tuple[Any, ...]:
    """Convert integer-like numbers to int, so that 1.0 does not match a cache entry of 1."""
    return tuple(integers(name, value) for name, value in settings.items())


def integers(name: str, value: Any) -> Any:
    """Integers and sequences of integers as plain int and tuples; text unchanged. Raises TypeError for anything else."""
    if type(value) is tuple and len(value) == 2 and type(value[0]) is type(value[1]) is int:
        return value  # what layers pass, found without a loop: this runs before every call
    if type(value) is int or type(value) is str:
        return value
    if isinstance(value, str):
        return str(value)  # NumPy's is one, too
    try:
        if isinstance(value, (tuple, list)):
            return tuple(int(index(number)) for number in value)
        return int(index(value))
    except TypeError:
        what = "a positive integer" if name == "groups" else "an integer or a pair of integers"
        raise TypeError(f"{name} must be {what}, not {value!r}") from None


def as_pair(name: str, value: Any, minimum: int) -> Pair:
    """A number or pair as a pair. Raises TypeError or ValueError for anything else and for values out of range."""
    found = value if isinstance(value, tuple) else (value, value)
    if not all(isinstance(number, int) for number in found):
        raise TypeError(f"{name} must be an integer or a pair of integers, not {value!r}")
    if len(found) != 2:
        raise ValueError(f"{name} must be an integer or a pair of integers, not {value!r}")
    if min(found) < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {value!r}")
    if max(found) > MAX_INT32:
        raise ValueError(f"{name} must be at most {MAX_INT32}, not {value!r}")
    return found


def positive(name: str, value: Any) -> int:
    """A positive integer. Raises TypeError or ValueError for anything else."""
    if not isinstance(value, int) or value < 1:
        error = ValueError if isinstance(value, int) else TypeError
        raise error(f"{name} must be a positive integer, not {value!r}")
    return value


def require_sides(input_shape: tuple[int, ...]) -> None:
    """Raise ValueError for images with a side longer than every library underneath can count."""
    if max(input_shape[2:]) > MAX_INT32:
        raise ValueError(f"input must have no side of more than {MAX_INT32} pixels, not shape {input_shape}")


def require_images(input_shape: tuple[int, ...]) -> None:
    """Raise ValueError for a shape that is not a batch of images'."""
    if len(input_shape) == 4:
        return
    missing = ", ".join(["None"] * (4 - len(input_shape)))
    cure = f": input[{missing}] is a batch of one image" if len(input_shape) in (2, 3) else ""
    raise ValueError(f"input must have shape (N, C, H, W), not {input_shape}{cure}")


def require_bias(shape: tuple[int, ...], outputs: int) -> None:
    """Raise ValueError for the shape of a bias that does not have one value per output channel."""
    if tuple(shape) != (outputs,):
        raise ValueError(f"bias must have shape {(outputs,)}, one value per output channel, not {tuple(shape)}")


def outside(limits: Mapping[str, Any], actual: Mapping[str, Any]) -> str | None:
    """Return which of the actual arguments is outside an implementation's limits, or None; a set names several."""
    for argument, only in limits.items():
        choices, found = only if isinstance(only, set) else {only}, actual[argument]
        if found not in choices and not (isinstance(found, tuple) and choices.issuperset(found)):
            words = " or ".join(map(str, sorted(choices)))
            return f"{argument}={found}: only {argument}={words} is supported"
    return None


def require_limits(limits: Mapping[str, Any], *known: str) -> None:
    """Raise ValueError for a limit on something else than the known arguments."""
    if unknown := set(limits) - set(known):
        raise ValueError(f"limits may name {', '.join(known[:-1])} and {known[-1]}, not {', '.join(sorted(unknown))}")


def asks(owner: str, elements: int, dtype: str) -> bool:
    """Whether a call is large enough to check free memory first.

    A device has its own memory, and its library raises its own error.
    """
    return owner == "numpy" and elements * ITEMSIZE[dtype] > UNASKED


def require_room(owner: str, elements: int, dtype: str, operation: str, *shapes: tuple[int, ...]) -> None:
    """Raise MemoryError if so many elements of a call with these shapes of input and weight would not fit."""
    if asks(owner, elements, dtype):  # checked before the message is made: this runs before every call
        require_memory(elements * ITEMSIZE[dtype], "{} of input {} and weight {}".format(operation, *shapes))


def require_memory(count: int, what: str) -> None:
    """Raise MemoryError, with both numbers, where `what` would take more bytes than are free; called before any work."""
    if count > UNASKED and (free := free_memory()) is not None and count > free:
        raise MemoryError(f"{what} would take {count:,} bytes, and {free:,} bytes of memory are free")


def free_memory() -> int | None:
    """Bytes that this process can still get, from the kernel and from its control group; None if neither says."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")]
    except (OSError, ValueError):
        pass
    try:
        most = int((CGROUP / "memory.max").read_text(encoding="ascii"))  # "max" if there is no limit
        # The system reclaims pages of files when memory is needed, so they count as free.
        cached = dict(line.split() for line in (CGROUP / "memory.stat").read_text(encoding="ascii").splitlines())
        found.append(most - int((CGROUP / "memory.current").read_text(encoding="ascii")) + int(cached.get("file", 0)))
    except (OSError, ValueError):
        pass
    return max(0, min(found)) if found else None
