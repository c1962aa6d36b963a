"""Whether a CUDA device is within reach of CuPy or torch, for the implementations that need one.

Each library is imported where it is asked about; one that is not installed is worded by impls.load.
"""

from __future__ import annotations

from impls.contract import CURES, Unavailable


def require_cupy(name: str) -> None:
    """Raise Unavailable, for the implementation called `name`, where CuPy sees no CUDA device."""
    import cupy

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise Unavailable(f"{name} needs a CUDA device and NVIDIA's driver; CuPy says {error}") from error
    if not count:
        raise Unavailable(f"{name} needs a CUDA device; CuPy sees none here")


def require_torch(name: str) -> None:
    """Raise Unavailable, for the implementation called `name`, where torch sees no CUDA device."""
    import torch

    if not torch.cuda.is_available():
        if torch.version.cuda is None:
            raise Unavailable(
                f"{name} needs torch built for CUDA, and a CUDA device; the torch here is built for the CPU alone: "
                f"{CURES['torch']} as https://pytorch.org/get-started/locally says for CUDA"
            )
        raise Unavailable(f"{name} needs a CUDA device and NVIDIA's driver; torch sees none here")
