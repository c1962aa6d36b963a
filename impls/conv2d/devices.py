"""Checks that CuPy or torch can use a CUDA device, for the implementations that need one.

Each library is imported only when it is needed; impls.load raises the error for a missing one.
"""

from __future__ import annotations

import inspect

from impls.contract import CURES, Unavailable


def require_cupy(name: str) -> None:
    """Raise Unavailable, for the implementation called `name`, where CuPy sees no CUDA device or cannot compile for it."""
    import cupy

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise Unavailable(f"{name} needs a CUDA device and NVIDIA's driver; CuPy says {error}") from error
    if not count:
        raise Unavailable(f"{name} needs a CUDA device; CuPy sees none here")
    if compiler := getattr(cupy.cuda, "nvrtc", None):
        try:
            compiler.getVersion()
        except Exception as error:  # CuPy's own wheel brings none, and each version says so by another class
            raise Unavailable(f"{name} needs NVRTC, NVIDIA's compiler, which CuPy does not find; {CURES['cupy']}") from error


def require_torch(name: str) -> None:
    """Raise Unavailable, for the implementation called `name`, where torch sees no CUDA device or cannot pin a precision."""
    import torch

    if not torch.cuda.is_available():
        if torch.version.cuda is None:
            raise Unavailable(
                f"{name} needs torch built for CUDA, and a CUDA device; the torch here is built for the CPU alone: "
                f"{CURES['torch']} as https://pytorch.org/get-started/locally says for CUDA"
            )
        raise Unavailable(f"{name} needs a CUDA device and NVIDIA's driver; torch sees none here")
    if "fp32_precision" not in inspect.signature(torch.backends.cudnn.flags).parameters:
        raise Unavailable(
            f"{name} needs a torch that can set cuDNN's precision of float32, which {torch.__version__} cannot: "
            f"{CURES['torch']} or later"
        )
