"""The clock, the ceilings and the transfers on a device (pytest -m gpu)."""

import itertools

import pytest

from benchmarks import transfers
from benchmarks.timing import cuda_clock, device_limits


@pytest.fixture
def on_a_device():
    for library in ("torch", "cupy"):
        try:
            cuda_clock.require(library)
        except ImportError as error:
            pytest.skip(str(error))


@pytest.mark.gpu
@pytest.mark.usefixtures("on_a_device")
@pytest.mark.parametrize("limit", device_limits.LIMITS)
def test_a_limit_on_a_device(limit):
    made = device_limits.prepare(limit)
    assert made.block(3) > 0
    made.verify(made.block.output)


@pytest.mark.gpu
@pytest.mark.usefixtures("on_a_device")
@pytest.mark.parametrize("parameters", list(itertools.product(*transfers.Transfers.params)))
def test_a_transfer_on_a_device(parameters):
    made = transfers.prepare(*parameters)
    assert made.block(3) > 0
    made.verify(made.block.output)


@pytest.mark.gpu
@pytest.mark.usefixtures("on_a_device")
@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_the_clock_on_a_device(library):
    """Ten times the calls take ten times as long, and the device is the one the system knows."""
    made = device_limits.prepare("device matrix product, fp16" if library == "torch" else "device copy, 512 MiB")
    made.block(3)
    few, many = made.block(4), made.block(40)
    assert 8 < many / few < 12
    assert made.block.remark is None
    assert set(cuda_clock.facts(library)) == {"gpu", "driver", "sm_mhz", "memory_mhz", "celsius"}
