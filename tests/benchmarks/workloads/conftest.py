"""Fixtures for the tests of workloads."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def one_torch_thread():
    """Problems of a few numbers are not shared out to threads, which would wait for each other on a busy machine."""
    torch = pytest.importorskip("torch")
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(count)
