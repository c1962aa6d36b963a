"""This machine: its name in the results, and whether it is quiet enough to measure on."""

from __future__ import annotations

import contextlib
import platform
import re
from pathlib import Path

import psutil
from asv import util
from asv.machine import MachineCollection

MACHINES = "machines.json"  # what convbench.asv.isolated calls asv's list of machines


def facts() -> dict[str, str]:
    """What asv stores of a machine, named by its CUDA devices, processor and cores. Host name and kernel stay out."""
    cpu = _processor()
    cores = str(psutil.cpu_count() or 1)
    model = re.sub(r"\((R|TM)\)|\bCPU\b|\bProcessor\b|@.*", "", cpu, flags=re.IGNORECASE)
    name = re.sub(r"[^a-z0-9]+", "-", " ".join([*_devices(), model]).lower()).strip("-")
    memory = f"{round(psutil.virtual_memory().total / 2**30)} GiB"
    return {
        "machine": f"{name}-{cores}cores",
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": cpu,
        "num_cpu": cores,
        "ram": memory,
    }


def _processor() -> str:
    """The processor's name, with family and model where Linux tells: on hosts in a cloud "AMD EPYC" may be any of five."""
    name = util.get_cpu_info() or platform.machine()
    with contextlib.suppress(OSError):
        known = dict(re.findall(r"^(cpu family|model)\s*: (\d+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE))
        if len(known) == 2:
            return f"{name} (family {known['cpu family']}, model {known['model']})"
    return name


def _devices() -> list[str]:
    """The names of the CUDA devices, each once; nothing where there is none or NVIDIA's management library is missing."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no such module, no driver, no device: the library has an error of its own for each
        return []
    handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
    return list(dict.fromkeys(map(pynvml.nvmlDeviceGetName, handles)))


def register(folder: Path) -> None:
    """Tell the asv that works in a private folder about this machine."""
    known = facts()
    MachineCollection.save(known["machine"], known, str(folder / MACHINES))
