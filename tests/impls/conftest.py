"""Fixtures shared by the tests of implementations."""

import contextlib
import shutil

import numpy as np
import pytest
from auto_tables import HERE, text
from filelock import FileLock
from hostile_tiles import READERS
from packages import PACKAGE

import impls
from impls.conv2d import arguments, choice, measurements, wisdom

BY_NUMBA = ("cpu.numba_direct", "cpu.numba_loops", "cpu.numba_winograd", "im2col.indirect", "im2col.numba")


@pytest.fixture
def copy(tmp_path):
    """A copy of the package's sources, nothing compiled, in a folder of its own."""
    shutil.copytree(PACKAGE, tmp_path / "impls", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    return tmp_path / "impls"


@pytest.fixture(scope="session")
def compiled_once(request, tmp_path_factory):
    """Compile in one process what several test files call; the others wait and load it from Numba's cache.

    Nothing where no slow test is selected: all of Numba's are.
    """
    if not any(item.get_closest_marker("slow") for item in request.session.items):
        return
    with FileLock(tmp_path_factory.getbasetemp().parent / "numba.lock"):
        for name in BY_NUMBA:
            for dtype in ("float32", "float64"):
                with contextlib.suppress(impls.Unavailable):
                    impls.load(name)(np.ones((1, 2, 7, 9), dtype), np.ones((3, 2, 3, 3), dtype))


@pytest.fixture(autouse=True)
def no_wisdom(tmp_path, monkeypatch):
    """Each test has a cache of its own, and none knows what the user's has measured."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wisdom._path.cache_clear()
    arguments.dispatcher.clear()
    yield
    wisdom._path.cache_clear()
    arguments.dispatcher.clear()


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Writes measurements in place of the real ones: put({instruction set, or that and another processor: [entries]})."""

    def forget():
        measurements.table.cache_clear()
        arguments.dispatcher.clear()

    def put(tables):
        keys = {key: key if isinstance(key, tuple) else (key, HERE) for key in tables}
        (tmp_path / "auto.json").write_text(text({keys[key]: entries for key, entries in tables.items()}))
        forget()

    monkeypatch.setattr(measurements, "FILE", tmp_path / "auto.json")
    monkeypatch.setattr(choice, "instruction_set", lambda: "avx9")
    monkeypatch.setattr(measurements, "processor", lambda: HERE)
    put({})
    yield put
    forget()


@pytest.fixture(scope="module")
def readers():
    found = {}
    for name in READERS:
        try:
            found[name] = impls.load(name, "read_batch")
        except impls.Unavailable:
            continue
    return found
