"""Checks Numba's requirements: compilation, a cache folder of this user's, and threads that two callers may share. Says for
which vectors it compiles.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.codegen import get_host_cpu_features

from impls import private_cache
from impls.contract import Unavailable

# Numba's layers of threads, and which of them each setting has it try in turn. workqueue ends the process where two of its
# threads call a parallel loop at a time. https://numba.readthedocs.io/en/stable/user/threading-layer.html
SAFE = ("tbb", "omp")
TRIED = {"threadsafe": SAFE, "safe": ("tbb",), "forksafe": ("tbb", "workqueue")}
CURE = "install libgomp (Debian: apt-get install libgomp1) or pip install tbb, and unset NUMBA_THREADING_LAYER"


def require(name: str, module: Any) -> None:
    """Raise Unavailable if what Numba compiles of an implementation's module cannot or must not be used here."""
    found = [value for value in vars(module).values() if _is_numbas(value)]
    if found and numba.config.DISABLE_JIT:
        raise Unavailable(f"{name} cannot be loaded: NUMBA_DISABLE_JIT has Numba compile nothing; unset it")
    for kernel in found:
        _require_own_cache(name, Path(module.__file__), kernel)
        if getattr(kernel, "targetoptions", {}).get("parallel") and (reason := _threads_missing()):
            raise Unavailable(f"{name} cannot be loaded: {reason}; {CURE}")


def wide_vectors() -> bool:
    """Whether Numba compiles for AVX-512: as NUMBA_CPU_FEATURES has it, otherwise as this processor does."""
    set_features = numba.config.CPU_FEATURES
    return "+avx512f" in (get_host_cpu_features() if set_features is None else set_features).split(",")


def _is_numbas(value: Any) -> bool:
    """Whether an object is Numba's own, such as njit, or a kernel that it made."""
    return any(str(getattr(one, "__module__", "")).startswith("numba.") for one in (value, type(value)))


def _require_own_cache(name: str, source: Path, kernel: Any) -> None:
    """Raise Unavailable if a kernel would be read from a folder that another user can write to.

    Beside the source such a folder is as safe as the source.
    """
    path = getattr(getattr(kernel, "_cache", None), "cache_path", None)
    if path and path != str(source.with_name("__pycache__")):
        try:
            private_cache.require(Path(path))
        except Unavailable as error:
            raise Unavailable(f"{name} cannot be loaded: {error}; set NUMBA_CACHE_DIR to another folder") from None


def _threads_missing() -> str | None:
    """Why parallel loops have no threads that two callers may share, or None."""
    try:
        layer = numba.threading_layer()
    except ValueError:  # no parallel loop has run, and Numba asked for its layer would start the threads of it
        layer = next(_importable(), None)
    if layer in SAFE:
        return None
    if layer == "workqueue":
        return "Numba's threads are those of workqueue, and two calls at a time would end the process"
    return f"Numba has no threads of NUMBA_THREADING_LAYER={numba.config.THREADING_LAYER}"


def _importable() -> Iterator[str]:
    setting = str(numba.config.THREADING_LAYER)
    order = numba.config.THREADING_LAYER_PRIORITY if setting == "default" else TRIED.get(setting, (setting,))
    for layer in order:
        with contextlib.suppress(ImportError):
            importlib.import_module(f"numba.np.ufunc.{layer if layer == 'workqueue' else f'{layer}pool'}")
            yield layer
