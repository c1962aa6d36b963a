"""The limits of a CUDA device, measured by its own clock in the same run: copies, multiply-adds and matrix products."""

from __future__ import annotations

from benchmarks.timing import device_limits


class DeviceCeilings:
    """Copies of growing size, multiply-adds, and matrix products on tensor cores."""

    params = (list(device_limits.LIMITS),)
    param_names = ("ceiling",)
    version = "1"

    def setup(self, ceiling):
        self.cell = device_limits.prepare(ceiling)

    def time_ceiling(self, ceiling):
        self.cell.call()

    time_ceiling.ceilings = {repr(name): {**what, "device": "cuda"} for name, what in device_limits.LIMITS.items()}  # type: ignore[attr-defined]
    time_ceiling.device = "cuda"  # type: ignore[attr-defined]
    time_ceiling.quick = [repr(name) for name in device_limits.LIMITS]  # type: ignore[attr-defined]
