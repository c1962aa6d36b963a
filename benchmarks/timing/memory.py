"""The memory one call needs at its peak, from the kernel's own high-water mark."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from pathlib import Path

from benchmarks.errors import Skip
from benchmarks.timing.clock import Block

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
LARGEST = 32 << 20  # the most that glibc takes as a threshold
PR_SET_THP_DISABLE = 41  # sys/prctl.h


def keep_freed_memory() -> None:
    """Have the process keep freed memory, up to 32 MB a piece, like a process that has run for a while.

    Left to itself, glibc moves its thresholds with every large piece that is freed, and whether each call's output is
    faulted in page by page depends on what happened before: the same torch call took 0.18 ms in one process and 2.0 ms in
    the next. Elsewhere than on glibc nothing is changed.
    """
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, LARGEST)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def track(self, *params):
    """Peak extra bytes of one call of the prepared cell: growth of the resident set, less the output it returns.

    It is the second call of the process: what an implementation keeps from its first call on is not seen.
    """
    if self.cell.on_device:
        raise Skip("not measured here: the host's memory says nothing about a device's")
    return peak_extra_bytes(self.cell.block)


def peak_extra_bytes(block: Block) -> int:
    """Make one call; return how far the resident set grew at its peak, in bytes, beyond the output that stays.

    Raises Skip if the system cannot reset the mark (Linux can: proc(5), clear_refs).
    """
    gc.collect()
    # Memory freed by earlier calls is still resident: unless it is returned, this call would reuse it and seem to need none.
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
    try:
        with _small_pages():
            Path("/proc/self/clear_refs").write_text("5")
            before = _resident("VmRSS")
            block(1)
            peak = _resident("VmHWM") - before
    except OSError as error:
        raise Skip(f"unavailable: this system cannot reset a process's high-water mark of memory ({error})") from error
    return max(0, peak - block.output.nbytes)


@contextlib.contextmanager
def _small_pages():
    """Have the kernel give out no huge pages meanwhile.

    NumPy asks for them, and one byte touched then counts as two megabytes or as none, by where in the heap it happens to lie.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        yield
        return
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0)


def _resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")
