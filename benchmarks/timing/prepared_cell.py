"""A prepared cell: a call that is ready, its clock, and the check of its last output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.timing import clock, cuda_clock


@dataclass
class PreparedCell:
    """One thing to time: a call, blocks of it, and the judge of its last output.

    verify judges the last timed output: it returns what it found (errors, and "called", the seconds of a call it made
    itself) for the side file, or raises WrongAnswer.
    threads: what each pool said it has. called: seconds spent in calls while preparing. arrays: their library, "numpy", or
    "cupy" or "torch" on a device. synchronize waits until the device has done what it was given.
    """

    call: Callable[[], Any]
    block: clock.Block
    verify: Callable[[Any], dict[str, Any]]
    threads: dict[str, int]
    called: float = 0.0
    arrays: str = "numpy"
    synchronize: Callable[[], None] | None = None

    @property
    def on_device(self) -> bool:
        return self.arrays != "numpy"

    @classmethod
    def of(
        cls,
        function: Any,
        call: Callable[[], Any],
        verify: Callable[[Any], dict[str, Any]],
        threads: dict[str, int],
        called: float,
    ) -> PreparedCell:
        """The cell of an implementation's call, by the clock of where it computes.

        What takes NumPy arrays to a device and back is timed by the wall, transfers and all.
        """
        if function.arrays == "numpy":
            return cls(call, clock.Wall(call), verify, threads, called)
        block = cuda_clock.block(function, call)
        return cls(call, block, verify, threads, called, function.arrays, function.synchronize)
