"""This machine: its name and properties in the results, and its CUDA devices."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import sys
from pathlib import Path

import psutil
from asv import util
from asv.machine import MachineCollection

from convbench.common import extras

DRIVER = Path("/proc/driver/nvidia/version")
DEVICES = (DRIVER, Path("/dev/nvidiactl"), Path("/dev/dxg"))  # the last is of Linux under Windows
OVERRIDE = "CONVBENCH_MACHINE"  # for tests, in which one machine stands for several
MACHINES = "machines.json"  # what convbench.asv.isolated calls asv's list of machines


def name() -> str:
    """This machine's name in the results: its CUDA devices, processor and cores."""
    if given := os.environ.get(OVERRIDE):
        return given
    model = re.sub(r"\((R|TM)\)|\bCPU\b|\bProcessor\b|@.*", "", _processor(), flags=re.IGNORECASE)
    named = re.sub(r"[^a-z0-9]+", "-", " ".join([*_devices(), model]).lower()).strip("-")
    return f"{named}-{psutil.cpu_count() or 1}cores"


def kind() -> str:
    """What a wheel that is compiled here depends on: the system, its C library and Python, the processor's instructions."""
    flags: list[str] = []
    with contextlib.suppress(OSError):
        flags = re.findall(r"^(?:flags|Features)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[:1]
    known = (platform.system(), platform.machine(), platform.libc_ver(), sys.implementation.cache_tag, flags)
    return hashlib.sha256(repr(known).encode()).hexdigest()[:10]


def facts() -> dict[str, str]:
    """What asv stores of a machine. Host name and kernel stay out."""
    return {
        "machine": name(),
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": _processor(),
        "num_cpu": str(psutil.cpu_count() or 1),
        "ram": f"{round(psutil.virtual_memory().total / 2**30)} GiB",
    }


def _processor() -> str:
    """The processor's name, with family and model where Linux tells: on hosts in a cloud "AMD EPYC" may be any of five."""
    processor = platform.machine()
    with contextlib.suppress(util.ProcessError, OSError):  # asv runs sysctl on macOS, and reads the registry on Windows
        processor = util.get_cpu_info() or processor
    with contextlib.suppress(OSError):
        known = dict(re.findall(r"^(cpu family|model)\s*: (\d+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE))
        if len(known) == 2:
            return f"{processor} (family {known['cpu family']}, model {known['model']})"
    return processor


def _devices() -> list[str]:
    """The names of the CUDA devices, each once; nothing if there is none or NVIDIA's management library is missing."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no such module, no driver, no device: the library has an error of its own for each
        return []
    handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
    return list(dict.fromkeys(map(pynvml.nvmlDeviceGetName, handles)))


def has_device() -> bool:
    """Whether this machine may have a CUDA device; no library is asked."""
    return any(path.exists() for path in DEVICES)


def require_device_names() -> None:
    """Raise ClickException if results would be kept under the processor's name alone, although there is a GPU."""
    if DRIVER.exists():
        extras.require("The name of this machine, which has an NVIDIA driver,", "gpu", "pynvml")


def register(folder: Path) -> None:
    """Tell the asv that works in a private folder about this machine."""
    known = facts()
    MachineCollection.save(known["machine"], known, str(folder / MACHINES))
