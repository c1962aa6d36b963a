"""convbench's description of this machine."""

import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from convbench.asv import machine
from convbench.common import load


@pytest.mark.parametrize(
    ("user", "steal", "said"),
    [(0.0, 0.0, None), (0.02, 0.0, None), (0.6, 0.0, "other processes use "), (0.0, 0.3, "the host takes ")],
)
@pytest.mark.parametrize("seconds", [0.05, 0.2])  # shares of what passed, however short that was
def test_busy(user, steal, said, seconds, monkeypatch):
    share = seconds / 0.3
    times = iter(
        [{"user": 5.0, "idle": 9.0, "steal": 1.0}, {"user": 5 + user * share, "idle": 9.5, "steal": 1 + steal * share}]
    )
    monkeypatch.setattr(psutil, "cpu_times", lambda: SimpleNamespace(**(now := next(times)), _asdict=lambda: now))
    monkeypatch.setattr(psutil, "cpu_count", lambda: 2)
    found = load.busy(seconds)
    assert found is None if said is None else found.startswith(said)


@pytest.fixture(autouse=True)
def management(monkeypatch):
    """NVIDIA's management library, which sees no device."""
    library = SimpleNamespace(names=[], nvmlInit=lambda: None, nvmlDeviceGetHandleByIndex=int)
    library.nvmlDeviceGetCount = lambda: len(library.names)
    library.nvmlDeviceGetName = lambda handle: library.names[handle]
    monkeypatch.setitem(sys.modules, "pynvml", library)
    return library


def test_a_machine_is_named_by_its_devices_too(management, monkeypatch):
    monkeypatch.setattr(machine, "_processor", lambda: "Intel(R) Xeon(R) Gold CPU")
    monkeypatch.setattr(psutil, "cpu_count", lambda: 16)
    assert machine.name() == "intel-xeon-gold-16cores"
    management.names = ["NVIDIA H200"] * 2
    assert machine.name() == "nvidia-h200-intel-xeon-gold-16cores"
    monkeypatch.setitem(sys.modules, "pynvml", None)  # not installed
    assert machine.name() == "intel-xeon-gold-16cores"


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n", "amd-epyc-family-25-model-17-2cores"),
        ("cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n" * 2, "amd-epyc-family-26-model-2-2cores"),
        ("processor\t: 0\nBogoMIPS\t: 50.00\n", "amd-epyc-2cores"),
    ],
)
def test_processors_of_one_name_are_two_machines(told, name, monkeypatch):
    monkeypatch.setattr(machine.util, "get_cpu_info", lambda: "AMD EPYC")
    monkeypatch.setattr(psutil, "cpu_count", lambda: 2)
    monkeypatch.setattr(Path, "read_text", lambda path: told)
    assert machine.name() == name
