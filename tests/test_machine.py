"""What convbench says of the machine it runs on."""

from types import SimpleNamespace

import psutil
import pytest

from convbench import machine


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
    found = machine.busy(seconds)
    assert found is None if said is None else found.startswith(said)
