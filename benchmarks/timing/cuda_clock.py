"""The clock on a CUDA device: its own events around calls that were queued before, and cold caches on request.

A call's time on the device leaves out what the host takes to launch it; clock.Wall has both. Knows nothing of asv.
"""

from __future__ import annotations

import contextlib
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from time import perf_counter, sleep
from typing import Any

from benchmarks.timing.clock import Block, Measurement, Plan, Wall, measure, no_garbage_collection

MAX_QUEUED_CALLS = 200  # a device takes about a thousand launches before the host has to wait
MAX_WAIT_SECONDS = 0.1  # seconds that a device is kept busy until they are queued
TICKS_PER_SECOND = 2e9  # of the fastest known: a device that has more waits less, and is asked to wait longer
PAUSE = 1e-3  # seconds between two questions what holds a device back
# https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
HELD_BACK = {
    0x4: "its power cap",
    0x8: "a slow-down of the hardware",
    0x20: "its temperature",
    0x40: "its temperature",
    0x80: "a power brake",
}

SPIN = r"""
extern "C" __global__ void spin(long long ticks) {
    long long start = clock64();
    while (clock64() - start < ticks) {}
}
"""


class Device(ABC):
    """The clock's functions of a device, by array library; all except the last three return at once."""

    @abstractmethod
    def mark(self) -> Any:
        """Put an event behind all that is queued."""

    @abstractmethod
    def occupy(self, seconds: float) -> None:
        """Queue work that keeps the device busy for some seconds and does nothing else."""

    @abstractmethod
    def flush(self) -> None:
        """Overwrite the device's last cache."""

    @abstractmethod
    def happened(self, mark: Any) -> bool:
        """Whether the device has reached an event."""

    @abstractmethod
    def between(self, start: Any, end: Any) -> float:
        """Seconds from one event to another, for which it waits."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all that is queued is done."""

    @abstractmethod
    def handle(self, management: Any) -> Any:
        """The device's handle in NVIDIA's management library, pynvml. Raises pynvml.NVMLError."""

    def held_back(self) -> str | None:
        """The cause that slows the device's clock now, in words; None if there is none, or it is unknown."""
        if (managed := _managed(self)) is None:
            return None
        library, handle = managed
        try:
            reasons = library.nvmlDeviceGetCurrentClocksEventReasons(handle)
        except Exception:  # any error: the figure does not depend on it
            return None
        return " and ".join(dict.fromkeys(words for bit, words in HELD_BACK.items() if reasons & bit)) or None


class Torch(Device):
    """The device of torch's tensors. https://docs.pytorch.org/docs/stable/generated/torch.cuda.Event.html"""

    def __init__(self) -> None:
        import torch

        self.torch, self.properties = torch, torch.cuda.get_device_properties(torch.cuda.current_device())
        self.other = torch.empty(2 * self.properties.L2_cache_size, dtype=torch.uint8, device="cuda")

    def mark(self) -> Any:
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def occupy(self, seconds: float) -> None:
        self.torch.cuda._sleep(int(seconds * TICKS_PER_SECOND))  # not documented; torch's own tests have used it for years

    def flush(self) -> None:
        self.other.zero_()

    def happened(self, mark: Any) -> bool:
        return mark.query()

    def between(self, start: Any, end: Any) -> float:
        end.synchronize()
        return start.elapsed_time(end) / 1e3

    def synchronize(self) -> None:
        self.torch.cuda.synchronize()

    def handle(self, management: Any) -> Any:
        return management.nvmlDeviceGetHandleByUUID(f"GPU-{self.properties.uuid}")


class Cupy(Device):
    """The device of CuPy's arrays. https://docs.cupy.dev/en/stable/reference/generated/cupy.cuda.Event.html"""

    def __init__(self) -> None:
        import cupy

        self.cupy, self.spin = cupy, cupy.RawKernel(SPIN, "spin")
        self.properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
        self.other = cupy.empty(2 * self.properties["l2CacheSize"], cupy.uint8)

    def mark(self) -> Any:
        event = self.cupy.cuda.Event()
        event.record()
        return event

    def occupy(self, seconds: float) -> None:
        self.spin((1,), (1,), (self.cupy.int64(seconds * TICKS_PER_SECOND),))

    def flush(self) -> None:
        self.other.fill(0)

    def happened(self, mark: Any) -> bool:
        return mark.done

    def between(self, start: Any, end: Any) -> float:
        end.synchronize()
        return self.cupy.cuda.get_elapsed_time(start, end) / 1e3

    def synchronize(self) -> None:
        self.cupy.cuda.get_current_stream().synchronize()

    def handle(self, management: Any) -> Any:
        # Its properties have the UUID too, but as a C string, which ends at the first byte that is zero.
        return management.nvmlDeviceGetHandleByPciBusId(self.cupy.cuda.Device().pci_bus_id)


@functools.cache
def of(arrays: str) -> Device:
    """The device of "torch" or "cupy" arrays."""
    return {"torch": Torch, "cupy": Cupy}[arrays]()


def require(library: str) -> None:
    """Raise ImportError, which says what is missing, where "cupy" or "torch" sees no CUDA device."""
    if library == "torch":
        import torch

        seen = torch.cuda.is_available()
    else:
        import cupy

        try:
            seen = cupy.cuda.runtime.getDeviceCount() > 0
        except cupy.cuda.runtime.CUDARuntimeError:
            seen = False
    if not seen:
        raise ImportError(f"it needs a CUDA device, and {library} sees none here")


class Queued(Block):
    """Blocks of calls by the device's events. While the host queues them the device is kept busy, so that it then finds each
    call ready and no launch stands in between (nvbench's blocking kernel: https://github.com/NVIDIA/nvbench).

    cold: each call finds the caches full of other data; the time to fill them is not counted.
    """

    def __init__(self, call: Callable[[], Any], device: Device, cold: bool = False) -> None:
        self.call, self.device, self.cold = call, device, cold
        self.launching = 2e-5  # seconds that the host takes for one call, as far as is known
        self.patience: tuple[float, ...] = (1.5, 3.0, 6.0)  # times what launches should take

    def __call__(self, number: int) -> float:
        self.remark = None
        with no_garbage_collection():
            counts = (min(MAX_QUEUED_CALLS, number - first) for first in range(0, number, MAX_QUEUED_CALLS))
            return sum(map(self._patiently, counts))

    def _patiently(self, number: int) -> float:
        """Seconds of so many calls; with a longer wait where the device was done waiting before all of them were queued."""
        for patience in self.patience:
            seconds, queued = self._queue(number, min(MAX_WAIT_SECONDS, patience * self.launching * number))
            if queued:
                return seconds
        # A call that waits for the device is never queued, and a wait before would only seem to be its launches.
        self.patience = (0.0,)
        self.remark = "the device had to wait for the host: launches are part of the time"
        return seconds

    def _queue(self, number: int, wait: float) -> tuple[float, bool]:
        """Seconds of so many calls on the device, and whether all were queued before it came to the first."""
        device = self.device
        device.synchronize()
        device.occupy(wait)
        start = perf_counter()
        marks = []
        if not self.cold:
            marks.append(device.mark())
        for _ in range(number):
            if self.cold:
                device.flush()
                marks.append(device.mark())
            self.output = self.call()
            if self.cold:
                marks.append(device.mark())
        if not self.cold:
            marks.append(device.mark())
        queued = not device.happened(marks[0])
        self.launching = (perf_counter() - start) / number
        self._watch(marks[0], marks[-1])
        return sum(device.between(*pair) for pair in zip(marks[::2], marks[1::2], strict=True)), queued

    def _watch(self, first: Any, last: Any) -> None:
        """Read the reasons for throttling between the first and the last call; an idle device has none."""
        while not self.device.happened(first):
            sleep(PAUSE)
        while not self.held_back:
            self.held_back = self.device.held_back()
            if self.device.happened(last):
                break
            sleep(PAUSE)


class Launched(Wall):
    """Blocks of calls by the host's clock. What holds the device back is asked during one call more, which is not timed:
    a device without work has nothing to hold back, and asking takes the host as long as some launches.
    """

    def __init__(self, call: Callable[[], Any], device: Device) -> None:
        super().__init__(call, device.synchronize)
        self.device = device

    def __call__(self, number: int) -> float:
        seconds = super().__call__(number)
        self.call()
        self.held_back = self.held_back or self.device.held_back()
        self.device.synchronize()
        return seconds


def block(function: Any, call: Callable[[], Any], cold: bool = False) -> Queued:
    """Blocks of a call of an implementation that is on a device."""
    return Queued(call, of(function.arrays), cold)


def cold(block: Block) -> Measurement | None:
    """A few calls of a block's that each find the device's caches full of other data; None for a block that is on no device,
    or is cold itself.
    """
    if not isinstance(block, (Queued, Launched)) or (isinstance(block, Queued) and block.cold):
        return None
    return measure(Queued(block.call, block.device, cold=True), Plan(warmup_time=0.0, repeat=(5, 20, 0.2), number=1))


@functools.cache
def _managed(device: Device) -> tuple[Any, Any] | None:
    """NVIDIA's management library, and what it calls the device; None if it cannot be asked."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return pynvml, device.handle(pynvml)
    except Exception:  # not installed, no driver, no such device: the figure is good without
        return None


def facts(arrays: str) -> dict[str, Any]:
    """Name, driver, clocks in MHz and temperature of the device, as far as they can be had."""
    if (managed := _managed(of(arrays))) is None:
        return {}
    library, handle = managed
    asked: dict[str, Callable[[], Any]] = {
        "gpu": lambda: library.nvmlDeviceGetName(handle),
        "driver": lambda: library.nvmlSystemGetDriverVersion(),
        "sm_mhz": lambda: library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_SM),
        "memory_mhz": lambda: library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_MEM),
        "celsius": lambda: library.nvmlDeviceGetTemperature(handle, library.NVML_TEMPERATURE_GPU),
    }
    found = {}
    for name, ask in asked.items():
        with contextlib.suppress(Exception):  # a fact that one device lacks does not affect the others
            found[name] = ask()
    return found
