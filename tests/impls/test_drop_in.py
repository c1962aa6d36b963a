"""impls.conv2d, the drop-in: as users call it, as the documents show it, with NumPy alone, and the cost of picking."""

import itertools
import re
import shutil
import sys
import timeit
from pathlib import Path

import numpy as np
import pytest
from choices import PROBLEMS, W, X, needs_compiled
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from packages import PACKAGE, python

import impls
import impls.conv2d.cpu.auto as auto  # as a module, though the package above it is the operation

ROOT = Path(__file__).parents[2]
# The sections whose code is run, one after the other.
SHOWN = {"README.md": "Use it", "docs/operations.md": "Convolution"}


def test_the_package_is_the_operation():
    output = impls.conv2d(X, W[:, :, :3, :3], padding="same")
    assert np.allclose(output, impls.load("cpu.loops")(X, W[:, :, :3, :3], padding="same"), rtol=1e-4)
    assert impls.conv2d.arguments is sys.modules["impls.conv2d.arguments"]
    assert auto is sys.modules["impls.conv2d.cpu.auto"]
    for bad in [{"stride": 0}, {"padding": "full"}, {"groups": 5}]:
        with pytest.raises(ValueError, match=next(iter(bad))) as here:
            impls.conv2d(X, W, **bad)
        with pytest.raises(ValueError, match=re.escape(str(here.value))):
            impls.load("cpu.loops")(X, W, **bad)


@needs_compiled
@pytest.mark.parametrize("compiles", [False, pytest.param(True, marks=pytest.mark.proof)])
def test_it_is_what_it_picks(compiles):
    """Where Numba compiles for seconds for each problem, it is a proof."""

    def pick(problem, exact, dtype):
        arrays = [np.broadcast_to(np.ones((), dtype), shape) for shape in (problem.input_shape, problem.weight_shape)]
        return impls.explain(*arrays, **problem.arguments, exact=exact).implementation

    every = itertools.product([p for p in PROBLEMS if p.flops < 2e7], [False, True], ["float32", "float64"])
    calls = [call for call in every if ("numba" in pick(*call).name) == compiles]

    @given(st.sampled_from(calls))
    @examples(max_examples=40, deadline=None)
    def agree(call):
        problem, exact, dtype = call
        rng = np.random.default_rng(1)
        arrays = [rng.random(shape).astype(dtype) for shape in (problem.input_shape, problem.weight_shape, (problem.k,))]
        picked = impls.explain(*arrays[:2], **problem.arguments, exact=exact).implementation
        assert np.array_equal(impls.conv2d(*arrays, **problem.arguments, exact=exact), picked(*arrays, **problem.arguments))

    agree()


BARE = """
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in ("numpy", "impls") and name.partition(".")[0] not in sys.stdlib_module_names:
            raise ImportError(f"{name} is hidden", name=name)
sys.meta_path.insert(0, Hide())
import numpy as np, impls
X, W = np.arange(2 * 12 * 49.0).reshape(2, 12, 7, 7), np.arange(12 * 12 * 9.0).reshape(12, 12, 3, 3)
X, W = (X % 7).astype("float32"), (W % 5).astype("float32")
same = [
    bool(np.array_equal(impls.conv2d(*arrays, **settings, exact=exact), impls.load("cpu.loops")(*arrays, **settings)))
    for arrays, settings in (
        ((X, W), {"padding": 1}),
        ((X[:, :1], W[:1, :1]), {"padding": 1}),
        ((X, W[:, :4]), {"groups": 3, "stride": 2}),
        ((X.astype(float), W.astype(float)), {"dilation": 2, "padding": "same"}),
    )
    for exact in (False, True)
]
print(json.dumps({"same": same, "said": str(impls.explain(X, W))}))
"""


def test_numpy_alone_is_enough(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "impls", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    found = python(BARE, tmp_path)
    assert found["same"] == [True] * 8
    assert "\nby rule: vectors along output channels" in found["said"]
    assert "\nthe compiled kernels, for which measurements hold, are not there\n" in found["said"]
    assert re.search(r"cpu\.cython_packed cannot run here: .*pip install \.", found["said"])


def test_a_large_exact_filter_is_exact():
    """Whole numbers, whose sums are exact, through a kernel that OpenCV transforms for."""
    rng = np.random.default_rng(3)
    image, kernel = rng.integers(-8, 9, (1, 1, 99, 99)).astype("f4"), rng.integers(-8, 9, (1, 1, 31, 31)).astype("f4")
    assert np.array_equal(impls.conv2d(image, kernel, exact=True), impls.load("cpu.shift")(image, kernel))


@pytest.mark.slow
def test_the_documents_run():
    """What README and docs/operations.md show of conv2d, block after block; README names NumPy's way to the same output."""
    blocks = []
    for path, heading in SHOWN.items():
        section = (ROOT / path).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        blocks.append(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
    assert list(map(len, blocks)) == [1, 2]
    names = {}
    for block in itertools.chain(*blocks):
        exec(block, names)
    windows = np.lib.stride_tricks.sliding_window_view(names["image"], (7, 7))
    np.testing.assert_allclose(names["fast"], np.einsum("hwrs,rs->hw", windows, names["kernel"]), rtol=1e-4)


@pytest.mark.alone
@needs_compiled
def test_picking_takes_less_than_two_microseconds():
    input, weight = np.ones((1, 1, 8, 8), np.float32), np.ones((1, 1, 3, 3), np.float32)
    picked = impls.explain(input, weight).implementation
    impls.conv2d(input, weight)

    calls = [picked, impls.load("cpu.auto"), impls.conv2d]
    fastest = dict.fromkeys(range(3), float("inf"))
    for _ in range(200):  # in turn, so that a busy moment affects all of them
        for i, call in enumerate(calls):
            fastest[i] = min(fastest[i], timeit.timeit(lambda call=call: call(input, weight), number=100) / 100)
    assert max(fastest[1], fastest[2]) - fastest[0] < 2e-6
