"""Inputs are the same everywhere, and a damaged cache costs time, not truth."""

import numpy as np
import pytest

from benchmarks.errors import Missing
from benchmarks.workloads import inputs, oracle
from benchmarks.workloads.problems import Problem, load_set


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CONVBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("label", ["n1c1h7w7k1r3s3p1", "n2c3h9w8k6r3s2g3", "n4c64h56w56k64r3s3p1"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_same_numbers_every_time(label, dtype):
    problem = Problem.parse(label, dtype=dtype)
    (input, weight), again = inputs.make(problem), inputs.make(problem)
    assert input.shape == problem.input_shape
    assert weight.shape == problem.weight_shape
    assert input.dtype == weight.dtype == dtype
    assert np.array_equal(input, again[0])
    assert np.array_equal(weight, again[1])
    assert -1 <= input.min() < input.max() < 1


@pytest.mark.parametrize("size", [(7, 7), (427, 640), (1000, 1500), (2160, 3840)])
@pytest.mark.parametrize("channels", [1, 3])
def test_the_photograph_fills_any_size(size, channels):
    problem = Problem(1, channels, *size, 1, 3, 3, data="photo")
    image, _ = inputs.make(problem)
    assert image.shape == problem.input_shape
    assert -1 <= image.min() < image.max() <= 1
    assert image.flags.c_contiguous
    if size[0] > 900:  # mirrored at the edge: the rows on both sides of it are the same
        assert np.array_equal(image[0, :, 426], image[0, :, 427])


def test_filters_are_what_they_are_called():
    problems = load_set("filters")
    identity, box = (next(p for name, p in problems.items() if name.startswith(kind)) for kind in ("identity", "box"))
    assert inputs.make(identity)[1].tolist() == [[[[0, 0, 0], [0, 1, 0], [0, 0, 0]]]]
    assert inputs.make(box)[1].sum() == pytest.approx(1)


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 half a file", None])
def test_a_damaged_reference_is_computed_anew(own_cache, damage):
    problem = Problem.parse("n1c1h7w7k1r3s3p1")
    input, weight = inputs.make(problem)
    calls = []

    def compute():
        calls.append(1)
        return oracle.reference(problem, input, weight)

    first = inputs.cached_reference(problem, (1, 2), compute)
    assert np.array_equal(inputs.cached_reference(problem, (1, 2), compute).values, first.values)
    assert len(calls) == 1
    assert inputs.cached_reference(problem, (3, 2), compute) is not None  # of another input
    assert len(calls) == 2
    for path in sorted(own_cache.glob("*.npz"), key=lambda path: path.stat().st_mtime)[1:]:
        path.unlink()
    (path,) = own_cache.glob("*.npz")
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    assert np.array_equal(inputs.cached_reference(problem, (1, 2), compute).values, first.values)
    assert len(calls) == 3


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CONVBENCH_CACHE", str(tmp_path / "file"))
    problem = Problem.parse("n1c1h7w7k1r3s3p1")
    known = inputs.cached_reference(problem, (1, 2), lambda: oracle.reference(problem, *inputs.make(problem)))
    assert len(known.values) == 49


def test_without_scikit_learn_the_photograph_says_what_to_install(monkeypatch):
    monkeypatch.setattr(inputs.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Missing, match="pip install scikit-learn pillow"):
        inputs.make(Problem.parse("n1c1h7w7k1r3s3p1", data="photo"))
