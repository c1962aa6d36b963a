"""Ranges of NVIDIA's Tools Extension: Nsight Systems shows them on its time line, above the kernels started inside."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager


def marker() -> Callable[[str], AbstractContextManager[object]]:
    """A function that marks a named range, by the library that is loaded here; without NVTX it does nothing."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.version.cuda:
        return torch.cuda.nvtx.range
    if "cupy" in sys.modules:
        from cupyx.profiler import time_range

        return time_range
    return contextlib.nullcontext
