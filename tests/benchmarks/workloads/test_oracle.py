"""The oracle's reference is right, whole or sampled: other libraries compute the same."""

import ast
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import MODES, by_torch, fractions, mode, some

from benchmarks.workloads import oracle
from benchmarks.workloads.problems import Problem

correlate2d = pytest.importorskip("scipy.signal", reason="SciPy is the second opinion").correlate2d


def by_scipy(problem, input, weight):
    """Channel by channel: zeros between the taps for dilation, every stride-th output kept."""
    d, t = problem.dilation, problem.stride
    spread = np.zeros((*weight.shape[:2], d * (problem.r - 1) + 1, d * (problem.s - 1) + 1))
    spread[..., ::d, ::d] = weight
    padded = np.pad(input.astype("float64"), ((0, 0), (0, 0), *((pad, pad) for pad in problem.padding)))
    output = np.zeros(problem.output_shape)
    channels, outputs = problem.c // problem.groups, problem.k // problem.groups
    for n, k, c in np.ndindex(problem.n, problem.k, channels):
        image = padded[n, k // outputs * channels + c]
        output[n, k] += correlate2d(image, spread[k, c], mode="valid")[::t, ::t]
    return output


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("other", [by_torch, by_scipy])
def test_reference_is_what_others_compute(other, how):
    @settings(max_examples=30, deadline=None)
    @given(problem=some(), seed=st.integers(0, 2**16))
    def agrees(problem, seed):
        arrays = fractions(problem, seed)
        with mode(how):
            known = oracle.reference(problem, *arrays)
        values = other(problem, *arrays).reshape(-1)[known.positions]
        sizes = other(problem, *map(np.abs, arrays)).reshape(-1)[known.positions]
        assert known.values.dtype == "float64"
        assert np.all(np.abs(known.values - values) <= 1e-14 * sizes)
        assert np.allclose(known.magnitudes, sizes, rtol=1e-13, atol=0)
        if how == "whole":
            assert np.array_equal(known.positions, np.arange(problem.outputs))

    agrees()


def test_a_large_problem_is_sampled():
    problem = Problem.parse("n2c8h40w50k8r3s3p1g2")
    with mock.patch.object(oracle, "WHOLE", problem.outputs * problem.taps - 1):
        sampled = oracle.reference(problem, *fractions(problem))
    whole = oracle.reference(problem, *fractions(problem))
    assert len(sampled.positions) < len(whole.positions) == problem.outputs
    assert np.array_equal(sampled.values, whole.values[sampled.positions])
    assert np.array_equal(sampled.magnitudes, whole.magnitudes[sampled.positions])


@pytest.mark.parametrize("label", ["n2c4h9w11k6r3s3p1", "n1c1h30w31k1r3s3", "n3c2h8w40k5r3s3t2p1", "n1c1h3w9k4r3s3"])
def test_a_sample_has_corners_and_borders(label):
    problem = Problem.parse(label)
    n, k, p, q = problem.output_shape
    with mode("sampled"):
        positions, again = (oracle.reference(problem, *fractions(problem, seed)).positions for seed in (0, 1))
    assert np.array_equal(positions, again)  # the same places whatever the data
    assert np.all(np.diff(positions) > 0)
    assert 0 <= positions[0] < positions[-1] == problem.outputs - 1
    places = set(zip(*map(np.ndarray.tolist, np.unravel_index(positions, problem.output_shape)), strict=True))
    for image in ((0, 0), (n - 1, k - 1)):
        assert {(*image, y, x) for y in (0, p - 1) for x in (0, q - 1)} <= places


def test_a_sample_looks_harder_at_borders():
    problem = Problem.parse("n2c1h200w220k2r3s3p1")
    with mode("sampled"):
        known = oracle.reference(problem, *fractions(problem))
    _, _, y, x = np.unravel_index(known.positions, problem.output_shape)
    # A quarter of BORDER on each, of 64 elsewhere less than one.
    for border in (y == 0, y == 199, x == 0, x == 219):
        assert 12 <= np.count_nonzero(border) <= 32


def test_a_chunk_is_no_boundary():
    problem = Problem.parse("n2c4h9w11k6r3s3p1g2")
    whole = oracle.reference(problem, *fractions(problem))
    for chunk in (1, problem.taps, 7 * problem.taps + 1):
        with mock.patch.object(oracle, "CHUNK", chunk):
            known = oracle.reference(problem, *fractions(problem))
        assert np.array_equal(known.values, whole.values)
        assert np.array_equal(known.magnitudes, whole.magnitudes)


def test_the_oracle_shares_no_code_with_what_it_judges():
    tree = ast.parse(Path(oracle.__file__).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    known = {"__future__", "math", "dataclasses", "typing", "numpy", "benchmarks"}
    assert {name.partition(".")[0] for name in imported} <= known


@pytest.mark.parametrize("label", ["n1c512h28w28k512r3s3p1", "n1c512h7w7k512r3s3p1", "n16c256h28w28k512r3s3p1"])
def test_a_sample_meets_every_channel_and_every_image(label):
    problem = Problem.parse(label)
    n, k, _, _ = np.unravel_index(oracle._positions(problem), problem.output_shape)
    assert set(k) == set(range(problem.k))
    assert set(n) == set(range(problem.n))
