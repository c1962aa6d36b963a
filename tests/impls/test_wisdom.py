"""Wisdom: what is measured on a machine decides impls.conv2d alone, and its file may be shared, broken or planted."""

import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from choices import W, X, asked
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

import impls
from benchmarks.commands import tune as suite
from benchmarks.workloads.problems import Problem
from impls.conv2d import arguments, choice, measurements, tuning, wisdom

PROBLEM = measurements.problem(X.shape, W.shape)
NOBODY = 65534


def remember(**seconds):
    wisdom.remember(
        {(PROBLEM, arguments.thread_count()): {f"cpu.{name}": s for name, s in seconds.items()}}, choice.instruction_set()
    )


def path():
    return wisdom._path(choice.instruction_set())


def forget():
    """As in another process."""
    wisdom._here.clear()
    arguments.dispatcher.clear()


def picked(**settings):
    return impls.explain(X, W, **settings).implementation.name


def test_the_fastest_that_was_measured_is_picked():
    remember(shift_matmul=1e-6, torch=5e-6, numba_winograd=5e-7)
    for _ in range(2):
        said = str(impls.explain(X, W)).splitlines()
        assert said[0].startswith(
            "cpu.shift_matmul for input 1x32x9x9"
        )  # the kernel is no 3x3's, which Numba's Winograd needs
        assert said[2] == "measured here: cpu.numba_winograd 0.5 us, cpu.shift_matmul 1 us, cpu.torch 5 us"
        assert np.array_equal(impls.conv2d(X, W), impls.load("cpu.shift_matmul")(X, W))
        forget()
    for source in ("shipped", "rules"):
        assert choice.choose(PROBLEM, arguments.thread_count(), source=source).by == source
    assert picked(stride=2) == choice.choose(PROBLEM._replace(stride=(2, 2)), 1, source="shipped").implementation.name


def test_wisdom_is_of_a_processor_an_instruction_set_a_version_and_a_number_of_threads(monkeypatch):
    remember(shift_matmul=1e-6)
    assert wisdom.times(PROBLEM, arguments.thread_count() + 1, choice.instruction_set()) == {}
    assert wisdom.times(PROBLEM, arguments.thread_count(), "avx9") == {}
    here = path()
    for place, name in ((measurements, "processor"), (wisdom.importlib.metadata, "version")):
        with monkeypatch.context() as changed:
            changed.setattr(place, name, lambda *_: "another")
            wisdom._path.cache_clear()
            assert path() != here
    wisdom._path.cache_clear()


def test_a_tuned_problem_is_picked_by_its_times(monkeypatch):
    monkeypatch.setattr(tuning, "SECONDS", 0.01)
    impls.conv2d(X, W)
    found = impls.tune(X, W)
    assert found.by == "wisdom"
    assert len(found.expected) >= 4
    assert list(found.expected.values()) == sorted(found.expected.values())
    forget()
    assert str(impls.explain(X.shape, W.shape)) == str(found)
    with pytest.raises(ValueError, match="do not fit groups=5"):
        impls.tune(X, W, groups=5)


def test_a_plan_measures_the_first_call_alone(monkeypatch):
    monkeypatch.setattr(tuning, "PLAN_SECONDS", 0.01)
    measured = []
    measure = tuning._measure
    monkeypatch.setattr(tuning, "_measure", lambda *given: (measured.append(given[0]), measure(*given)))
    expected = impls.load("cpu.shift")(X, W)
    for _ in range(3):
        np.testing.assert_allclose(impls.conv2d(X, W, plan="measure"), expected, rtol=1e-4)
        assert measured == [PROBLEM]
    assert 1 <= len(json.loads(path().read_text()).popitem()[1]) <= 3
    forget()
    assert np.array_equal(impls.conv2d(X, W, plan="measure"), impls.conv2d(X, W))
    assert (len(measured), impls.explain(X, W).by) == (1, "wisdom")
    with pytest.raises(ValueError, match="plan must be None or \"measure\", not 'fast'"):
        impls.conv2d(X, W, plan="fast")


@examples(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from([b"[" * 100_000, b"{}" * 2, b"\xff\xfe", b'{"a": [1]}', b'{"a": {"cpu.shift": 1e-9}}', b"null"]),
        st.recursive(st.none() | st.floats() | st.text(), lambda some: st.lists(some) | st.dictionaries(st.text(), some)).map(
            lambda one: json.dumps(one).encode()
        ),
        st.sampled_from(["cpu.auto", "gpu.torch", "os.system", "../x"]).map(
            lambda name: json.dumps({wisdom._key(PROBLEM, arguments.thread_count()): {name: 1e-9}}).encode()
        ),
    )
)
def test_a_broken_file_is_ignored_with_one_warning_and_replaced(content):
    remember(torch=1e-6)
    path().write_bytes(content)
    forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert impls.explain(X, W).by != "wisdom"
            arguments.dispatcher.clear()
    assert len(caught) <= 1
    assert content == b"{}" or not caught or "is ignored: " in str(caught[0].message)
    remember(shift_matmul=1e-6)
    forget()
    assert picked() == "cpu.shift_matmul"


def a_link(there):
    there.rename(there.with_name("elsewhere"))
    there.symlink_to(there.with_name("elsewhere"))


def a_pipe(there):
    there.unlink()
    os.mkfifo(there)


def anothers(there):
    os.chown(there, NOBODY, NOBODY)


def open_to_others(there):
    there.parent.parent.chmod(0o777)


def large(there):
    os.truncate(there, wisdom.MAX_BYTES + 1)


def a_folder(there):
    there.unlink()
    there.mkdir()


@pytest.mark.parametrize("plant", [a_link, a_pipe, anothers, open_to_others, large, a_folder])
def test_what_another_may_have_planted_is_not_read(plant):
    if plant is anothers and os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    remember(shift_matmul=1e-6)
    plant(path())
    forget()
    with pytest.warns(RuntimeWarning, match="is ignored: "):
        assert impls.explain(X, W).by != "wisdom"


def test_without_a_place_to_write_measurements_hold_in_the_process(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    wisdom._path.cache_clear()
    with pytest.warns(RuntimeWarning, match="measurements are kept in this process alone"):
        remember(shift_matmul=1e-6)
    assert picked() == "cpu.shift_matmul"


ONE_OF_SEVERAL = """
import sys
from impls.conv2d import measurements, wisdom
for i in range(20):
    wisdom.remember({(measurements.problem((1, 8, 9, 9 + i), (8, 8, 3, 3)), int(sys.argv[1])): {"cpu.torch": 1e-6}}, "avx9")
"""


def test_several_processes_write_at_once():
    running = [subprocess.Popen([sys.executable, "-c", ONE_OF_SEVERAL, str(threads)]) for threads in (1, 2, 3)]
    assert [one.wait(timeout=60) for one in running] == [0, 0, 0]
    assert len(json.loads(wisdom._path("avx9").read_text())) == 60
    assert sorted(one.suffix for one in wisdom._path("avx9").parent.iterdir()) == [".json", ".lock"]


def test_the_times_of_convbench_tune_are_remembered(tmp_path):
    (tmp_path / "times.json").write_text(json.dumps({"n1c1h64w64k1r3s3": {"cpu.torch": 1e-4, "cpu.opencv": 5e-5}}))
    (said,) = suite.remember({"times": str(tmp_path / "times.json"), "threads": 3})
    key = {"instruction_set": choice.instruction_set(), "processor": measurements.processor()}
    assert said == {"problems": 1, **key}
    forget()
    found = wisdom.times(asked(Problem.parse("n1c1h64w64k1r3s3")), 3, choice.instruction_set())
    assert list(found.items()) == [("cpu.opencv", 5e-5), ("cpu.torch", 1e-4)]
