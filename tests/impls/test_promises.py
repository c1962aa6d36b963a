"""The promises of docs/measuring.md that no other test file covers, and that each promise has its test."""

import ast
import functools
import itertools
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import impls

ROOT = Path(__file__).parents[2]
SETTINGS = {"conv2d": {"padding": 1}, "conv_transpose2d": {"stride": 2}, "conv2d_backward": {}}
INTERPRETED = {"cpu.loops", "cpu.cython_untyped", "cpu.sliced_loops", "im2col.naive", "im2col.recursive"}


def random(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32")


def given(operation, seed=0):
    """Arrays that several threads are worth starting for."""
    layer, weight = random(2, 8, 24, 24, seed=seed), random(8, 8, 3, 3)
    return {"conv2d_backward": (random(2, 8, 22, 22), layer, weight)}.get(operation, (layer, weight))


every = pytest.mark.parametrize(
    ("operation", "name"),
    [
        pytest.param(
            operation,
            name,
            id=f"{operation} {name}",
            # torch's compiler takes half a minute for one call.
            marks=[
                *([] if "cython" in name or name == "cpu.auto" else [pytest.mark.slow]),
                *([pytest.mark.proof] if "compile" in name else []),
            ],
        )
        for operation in SETTINGS
        for name in impls.names(operation, "cpu")
        if name not in INTERPRETED
    ],
)


def load(operation, name):
    try:
        function = impls.load(name, operation)
    except impls.Unavailable as reason:
        pytest.skip(str(reason))
    if reason := function.unsupported(*(array.shape for array in given(operation)), **SETTINGS[operation]):
        pytest.skip(reason)
    return lambda *arrays: [np.asarray(part) for part in _tuple(function(*arrays, **SETTINGS[operation]))]


def _tuple(found):
    return found if isinstance(found, tuple) else (found,)


@every
def test_a_call_repeated_gives_the_same_bits(operation, name):
    function = load(operation, name)
    first = function(*given(operation))
    for _ in range(3):
        assert all(map(np.array_equal, function(*given(operation)), first))


@every
def test_calls_of_several_threads_at_a_time_do_not_disturb_each_other(operation, name):
    function = load(operation, name)
    # A library's own sums may be in another order where other threads take its pool; ours never are.
    same = functools.partial(np.allclose, rtol=1e-4, atol=1e-4) if "torch" in name else np.array_equal
    inputs = [given(operation, seed) for seed in range(4)]
    alone = [function(*each) for each in inputs]
    with ThreadPoolExecutor(4) as pool:
        for found, expected in zip(pool.map(lambda each: function(*each), inputs * 2), itertools.cycle(alone)):
            assert all(map(same, found, expected))


def test_every_promise_has_its_test():
    table = (ROOT / "docs" / "measuring.md").read_text().partition("\n## What is promised\n")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 8
    for row in rows:
        named = re.findall(r"`(\w+)\.py::(test_\w+)`", row)
        assert named, row
        for file, test in named:
            (path,) = (ROOT / "tests").rglob(f"{file}.py")
            assert test in {one.name for one in ast.parse(path.read_text()).body if isinstance(one, ast.FunctionDef)}, row
