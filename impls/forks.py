"""Forked processes: a child has none of its parent's threads, and OpenMP's next parallel loop would wait for them forever.

libgomp keeps the threads of a loop for the next one, a pool for each thread that has had loops. Before a fork the pool of the
thread that forks is released; parent and child make a new one with their next loop.
https://gcc.gnu.org/onlinedocs/libgomp/omp_005fpause_005fresource_005fall.html

OpenCV makes new threads in a child itself, but a thread that held its lock when the process forked never gives it back.
Its pool is ended before a fork as well, by the only call that does so: one thread is set, and afterwards the number before.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

MAPS = Path("/proc/self/maps")
RUNTIME = "libgomp"
SOFT = 1  # omp_pause_soft of omp.h: what was set, such as a number of threads, stays


class _Fork(threading.local):
    """What is known from before this thread's fork: the pools that could not be released, None if nothing was tried; OpenCV's
    number of threads, 0 if it is not imported.
    """

    kept: list[ctypes.CDLL] | None = None
    opencv = 0


_fork = _Fork()


def _runtimes() -> list[ctypes.CDLL]:
    """Every libgomp in this process: torch and others bring their own, and which of them a kernel calls depends on what was
    loaded first.
    """
    try:
        lines = MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # this is not Linux
        return []
    paths = {Path(line.split(maxsplit=5)[-1]) for line in lines if RUNTIME in line}
    return [ctypes.CDLL(str(path)) for path in sorted(paths) if path.name.startswith(RUNTIME) and path.exists()]


def _release() -> None:
    """Release this thread's pools; what is inside of a parallel loop, or older than GCC 9, keeps its own."""
    _fork.kept = [
        runtime
        for runtime in _runtimes()
        if not hasattr(runtime, "omp_pause_resource_all") or runtime.omp_pause_resource_all(SOFT)
    ]
    if cv2 := _opencv():
        _fork.opencv = cv2.getNumThreads()
        cv2.setNumThreads(1)


def _resume() -> None:
    _fork.kept = None
    if _fork.opencv and (cv2 := _opencv()):
        cv2.setNumThreads(_fork.opencv)
    _fork.opencv = 0


def _opencv() -> Any:
    """OpenCV if it is imported, and imported to its end."""
    return cv2 if hasattr(cv2 := sys.modules.get("cv2"), "setNumThreads") else None


def _start_child() -> None:
    """Have loops make new pools, or keep them on one thread where an old pool is still known."""
    # A fork that is not Python's own, such as uWSGI's, tells the child alone.
    kept = _runtimes() if _fork.kept is None else _fork.kept
    _resume()
    for runtime in kept:
        runtime.omp_set_max_active_levels(0)  # no parallel loop has several threads then, whatever number is set
    if kept:
        warnings.warn(
            "this process was forked where OpenMP's threads could not be released: its parallel loops run on one thread; "
            "fork with os.fork() outside of parallel loops, or start it by spawn",
            RuntimeWarning,
            stacklevel=2,
        )
    if pool := sys.modules.get("numba.np.ufunc.omppool"):
        # Numba ends a child of the process in which its pool was launched; launched here with no threads, it is the child's.
        ctypes.CFUNCTYPE(None, ctypes.c_int)(pool.launch_threads)(0)


def register() -> None:
    """Register these functions for every fork of this process; called once, when the package is imported."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_release, after_in_parent=_resume, after_in_child=_start_child)
