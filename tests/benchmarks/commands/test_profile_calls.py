"""The calls of a profile: counted by perf, and marked as ranges for Nsight Systems."""

import contextlib
import os
import shutil
import sys
from time import process_time
from types import ModuleType, SimpleNamespace

import pytest
import stand_in_perf

from benchmarks.commands import perf_stat, profile

REQUEST = {"calls": 3, "seconds": 60.0}


@pytest.fixture
def perf(tmp_path, monkeypatch):
    """Puts a perf of our own before the system's."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return lambda *arguments, **more: stand_in_perf.install(tmp_path, *arguments, **more)


def test_perf_counts_the_calls_alone(tmp_path, perf):
    heard = perf("a report")
    request = {**REQUEST, "files": {"counters": str(tmp_path / "report")}}
    assert profile._counters(lambda: None, request, "title") == 3
    assert (tmp_path / "report").read_text() == "a report"
    assert heard.read_bytes() == b"enable\ndisable\n"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'Error:' >&2; echo 'Access to performance monitoring is limited.' >&2; exit 255", perf_stat.REFUSED),
        ("echo 'Error: No permission to enable cycles:u event.'; exit 1", perf_stat.REFUSED),
        (
            "echo >&2; echo 'WARNING: perf not found for kernel 9.9' >&2; exit 2",
            "perf ended with status 2: WARNING: perf not",
        ),
        ("echo '  Error: unknown option `control' >&2; exit 129", "perf ended with status 129: Error: unknown option"),
        ("exit 7", "perf ended with status 7: it printed nothing"),
    ],
)
def test_what_perf_cannot_do(tmp_path, perf, script, words):
    perf(instead=script)
    with pytest.raises(ValueError, match="perf") as caught:
        perf_stat.count(lambda: pytest.fail("nothing counts this"), tmp_path / "report")
    assert str(caught.value).startswith(words)


def test_calls_that_fail_leave_no_perf(tmp_path, perf):
    heard = perf("")
    with pytest.raises(ZeroDivisionError):
        perf_stat.count(lambda: 1 // 0, tmp_path / "report")
    assert heard.read_bytes() == b"enable\n"


@pytest.mark.skipif(not shutil.which("perf"), reason="perf is not installed")
def test_the_real_perf_counts_between_its_orders(tmp_path):
    def busy():
        end = process_time() + 0.05
        while process_time() < end:
            pass
        return 1

    try:
        assert perf_stat.count(busy, tmp_path / "report") == 1
    except ValueError as error:
        pytest.skip(str(error))
    clock = next(line for line in (tmp_path / "report").read_text().splitlines() if "task-clock" in line)
    assert 40 < float(clock.partition(";")[0]) < 80


def library(name, calls):
    """A torch or CuPy that notes its ranges, as of a machine with a device."""

    @contextlib.contextmanager
    def mark(text):
        calls.append(text)
        yield
        calls.append("end")

    found = ModuleType(name)
    if name == "torch":
        found.version, found.cuda = SimpleNamespace(cuda="13.0"), SimpleNamespace(nvtx=SimpleNamespace(range=mark))
        return {"torch": found}
    profiler = ModuleType("cupyx.profiler")
    profiler.time_range = mark
    return {"cupy": found, "cupyx": ModuleType("cupyx"), "cupyx.profiler": profiler}


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_each_call_is_a_range_within_one_of_all(monkeypatch, name):
    calls = []
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    for module, stand_in in library(name, calls).items():
        monkeypatch.setitem(sys.modules, module, stand_in)
    assert profile._repeat(lambda: calls.append("call"), REQUEST, "conv2d") == 3
    assert calls == [profile.ALL_CALLS, *["conv2d", "call", "end"] * 3, "end"]


def test_without_a_library_of_cuda_nothing_is_marked(monkeypatch):
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(version=SimpleNamespace(cuda=None)))
    assert profile._repeat(lambda: None, REQUEST, "conv2d") == 3
