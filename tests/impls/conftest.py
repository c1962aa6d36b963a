"""What several files of tests of implementations prepare."""

import shutil

import pytest
from packages import PACKAGE


@pytest.fixture
def copy(tmp_path):
    """A copy of the package's sources, nothing compiled, in a folder of its own."""
    shutil.copytree(PACKAGE, tmp_path / "impls", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    return tmp_path / "impls"
