"""torch's traces of training on tiles: one a reader, with the batches, shapes and stacks that the schedule says."""

import gzip
import json

import pytest

from benchmarks.commands import tile_traces

pytest.importorskip("torch", reason="the profiler is torch's")
pytest.importorskip("tifffile", reason="tiles are made with tifffile")


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setenv("CONVBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CONVBENCH_EUROSAT", raising=False)
    return tmp_path


@pytest.mark.proof
@pytest.mark.parametrize("workers", [0, 1])
def test_a_trace_of_each_reader(workers, small):
    request = {
        "names": ["cpu.skimage", "cpu.absent"],
        "batch": 2,
        "threads": 1,
        "workers": workers,
        "folder": str(small / "traces"),
    }
    first, found, *rest = tile_traces.run(request)
    assert (first, *rest) == (
        {"preparing": "cpu.skimage"},
        {"preparing": "cpu.absent"},
        {"name": "cpu.absent", "skipped": "not in this commit"},
    )
    path = small / "traces" / "cpu.skimage" / "resnet18.pt.trace.json.gz"
    assert (found["name"], found["trace"], found["batches"]) == ("cpu.skimage", str(path), 3)
    assert 0 < found["waiting"] < found["seconds"]
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    names = [event.get("name", "") for event in events]
    assert [name for name in names if name.startswith("ProfilerStep#") and "." not in name] == [
        f"ProfilerStep#{i}" for i in (2, 3, 4)
    ]
    assert any("Input Dims" in event.get("args", {}) for event in events if event["name"] == "aten::conv2d")
    assert any("resnet18.py" in name for name in names)  # Python's stack
    assert any("skimages.py" in name for name in names) is (workers == 0)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"reader": "cpu.skimage"}, "a request has names, batch, workers, threads, folder, not reader"),
        ({"threads": 0}, "threads must be at least 1, not 0"),
    ],
)
def test_a_request_that_is_none(request_, words):
    with pytest.raises(ValueError, match=words):
        next(tile_traces.run(request_))
