"""The cost of copying arrays to a CUDA device and back, from pageable and from pinned memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.errors import Skip, WrongAnswer
from benchmarks.timing import clock, cuda_clock
from benchmarks.timing.prepared_cell import PreparedCell

MIB = 1 << 20


class Transfers:
    """Copies of growing size by the host's clock, each waited for, as a program has to that goes on with the result."""

    params = (["to the device", "to the host"], ["pageable", "pinned"], [MIB, 16 * MIB, 256 * MIB])
    param_names = ("direction", "memory", "bytes")
    version = "1"

    def setup(self, direction, memory, size):
        try:
            cuda_clock.require("torch")
        except ImportError as error:
            raise Skip(f"unavailable: {error}") from error
        self.cell = prepare(direction, memory, size)

    def time_copy(self, direction, memory, size):
        self.cell.call()

    time_copy.device = "cuda"  # type: ignore[attr-defined]


def prepare(direction: str, memory: str, size: int) -> PreparedCell:
    """The cell of one copy."""
    import torch

    numbers = torch.from_numpy(np.random.default_rng(0).integers(0, 256, size, np.uint8))
    there, here = torch.empty(size, dtype=torch.uint8, device="cuda"), torch.empty(size, dtype=torch.uint8)
    if memory == "pinned":
        numbers, here = numbers.pin_memory(), here.pin_memory()
    source, target = (numbers, there) if direction == "to the device" else (numbers.cuda(), here)
    call: Callable[[], Any] = lambda: target.copy_(source, non_blocking=True)  # noqa: E731

    def verify(output: Any) -> dict[str, Any]:
        if not torch.equal(output.cpu(), numbers):
            raise WrongAnswer("the received data differ from the sent data")
        return {}

    return PreparedCell(
        call, clock.Wall(_each(call), torch.cuda.synchronize), verify, {}, 0.0, "torch", torch.cuda.synchronize
    )


def _each(call: Callable[[], Any]) -> Callable[[], Any]:
    """A call that is waited for."""
    import torch

    def waited() -> Any:
        output = call()
        torch.cuda.synchronize()
        return output

    return waited
