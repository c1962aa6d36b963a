"""A project with this suite and goals of its own, made once."""

import shutil
from pathlib import Path

import pytest
from speed_suites import DOCS, GOALS, with_suite


@pytest.fixture(scope="session")
def committed(tmp_path_factory):
    files = {"benchmarks/commands/speed.toml": GOALS, "docs/speed.md": DOCS}
    return with_suite(tmp_path_factory.mktemp("speed") / "project", files)


@pytest.fixture
def project(committed, tmp_path):
    """A project with this suite and goals of its own, everything committed."""
    return Path(shutil.copytree(committed, tmp_path / "project"))
