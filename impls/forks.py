"""Forked processes: a child has none of its parent's threads, and OpenMP's next parallel loop would wait for them forever.

libgomp keeps the threads of a loop for the next one, a pool for each thread that has had loops. Before a fork the pool of the
thread that forks is released; parent and child make a new one with their next loop.
https://gcc.gnu.org/onlinedocs/libgomp/omp_005fpause_005fresource_005fall.html

A child also inherits OpenCV's list of threads, which do not exist there, and a lock that one of them may hold. They are ended
before a fork by the only call that does so, which sets one thread. Then the number before is set again, and the next call
makes new ones.
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
    """What was done before this thread's fork: the pools that could not be released, None if nothing was tried, and whether
    OpenCV's threads were ended.
    """

    kept: list[ctypes.CDLL] | None = None
    opencv = False


class _OpenCV:
    """OpenCV's threads, which belong to the process: several of its threads may fork at a time.

    forks: how many are under way. number: of threads before the first of them. lost: the threads of the parent's list do not
    exist in this process, so that the call that ends them would wait forever.
    """

    def __init__(self, forks: int = 0, number: int = 1, lost: bool = False) -> None:
        self.lock, self.forks, self.number, self.lost = threading.Lock(), forks, number, lost

    def end(self, library: Any) -> None:
        with self.lock:
            if not self.forks:
                self.number = library.getNumThreads()
                library.setNumThreads(1)
            self.forks += 1

    def restore(self, library: Any) -> None:
        with self.lock:
            self.forks -= 1
            if not self.forks and library.getNumThreads() == 1:  # otherwise another one was set since
                library.setNumThreads(self.number)


_fork = _Fork()
_opencv = _OpenCV()
_inherited: set[str] = set()  # runtimes whose pools are the parent's: to release one would wait forever


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
        if runtime._name in _inherited
        or not hasattr(runtime, "omp_pause_resource_all")
        or runtime.omp_pause_resource_all(SOFT)
    ]
    library = sys.modules.get("cv2")
    if hasattr(library, "setNumThreads") and not _opencv.lost:  # it may be imported at this moment
        _opencv.end(library)
        _fork.opencv = True


def _resume() -> None:
    if _fork.opencv:
        _opencv.restore(sys.modules["cv2"])
    _fork.kept, _fork.opencv = None, False


def _start_child() -> None:
    """Have loops make new pools, or keep them on one thread where an old pool is still known."""
    global _opencv
    # A fork that is not Python's own, such as uWSGI's, tells the child alone.
    kept = _runtimes() if _fork.kept is None else _fork.kept
    # Other threads, which the child has not, may hold the lock, and fork as well.
    lost = _opencv.lost or (_fork.kept is None and "cv2" in sys.modules)
    _opencv = _OpenCV(forks=int(_fork.opencv), number=_opencv.number, lost=lost)
    _resume()
    _inherited.update(runtime._name for runtime in kept)
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
