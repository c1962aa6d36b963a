"""The tests see the checkout's root last, behind an installed package."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))

COMPILING = "cpu.torch_compile"  # a second and more for every new problem
FEW = {"plain", "depthwise", "same, even kernel", "strides that differ", "no image"}
THROUGHOUT = {"test_implementations", "test_arguments", "test_extremes"}


def pytest_collection_modifyitems(items):
    """What compiles for every problem is tried on a few of them each time and on the rest among the slow proofs."""
    for item in items:
        calls = getattr(item, "callspec", None)
        if calls is None or calls.params.get("name") != COMPILING or item.module.__name__ not in THROUGHOUT:
            continue
        if calls.id.removeprefix(f"{COMPILING}-") not in FEW:
            item.add_marker(pytest.mark.slow)
