"""Cells of both sides are matched by their parameters, and each has a process and a folder of its own."""

import json
import re
from collections import Counter

import pytest
from command_line import inside
from gate_commits import addresses_can_be_set, built_by, interpreter
from gate_projects import Sample

from convbench.gate import judge, workers
from convbench.gate import sample as sampling

pytestmark = [pytest.mark.slow, pytest.mark.first]
SPIN = """
import time


def spin(microseconds):
    end = time.perf_counter() + microseconds / 1e6
    while time.perf_counter() < end:
        pass
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return interpreter(tmp_path_factory.mktemp("python"))


@pytest.fixture
def gate(tmp_path, python):
    """Gates two versions of a package by a suite: its report, and what it printed."""

    def run(before, after, suite, *arguments, **settings):
        made = Sample(tmp_path / "project")
        conf = json.loads((made.folder / "asv.conf.json").read_text())
        made.write({"asv.conf.json": json.dumps(conf | settings)})
        base = made.commit({"benchmarks/b.py": suite, "sample/__init__.py": SPIN + before})
        head = made.commit({"sample/__init__.py": SPIN + after})
        file = tmp_path / "report.json"
        with built_by(python):
            done = inside(made.folder, "gate", base, head, "--json", str(file), "--all", "--budget", "0.5", *arguments)
        report = json.loads(file.read_text())
        assert report["exit_status"] == done.returncode
        return report, done.stdout

    return run


def verdicts(report):
    return {", ".join(cell["params"]) or cell["benchmark"]: cell["verdict"] for cell in report["cells"]}


REGISTRY = """
class Sort:
    params = sorted(sample.REGISTRY, key=repr)
    sample_time = 0.002

    def time_sort(self, name):
        sample.spin(sample.REGISTRY[name])
"""


def test_parameters_from_the_package_are_matched_by_name(gate):
    """A parameter added in front or removed at the end does not change the match of the others."""
    report, _ = gate(
        "REGISTRY = {'heap': 100, 'merge': 300, 'old': 900}",
        "REGISTRY = {'bubble': 900, 'heap': 100, 'merge': 900}",
        "import sample\n" + REGISTRY,
    )
    assert verdicts(report) == {"'bubble'": "new", "'heap'": "same", "'merge'": "regressed", "'old'": "gone"}
    assert report["exit_status"] == 1


def test_parameters_in_the_order_of_a_set_are_not_judged(gate):
    report, said = gate(
        "REGISTRY = {'heap': 100, 'merge': 300, 'quick': 200, 'radix': 50}",
        "REGISTRY = {'heap': 100, 'merge': 300, 'quick': 200, 'radix': 50}",
        "import sample\n"
        + REGISTRY.replace("sorted(sample.REGISTRY, key=repr)", "list(set(sample.REGISTRY))")
        + "\n\ndef time_plain():\n    sample.spin(100)\n",
    )
    assert set(verdicts(report).values()) == {"unstable", "same"}
    assert "sort them" in said
    assert report["exit_status"] == 4


def test_parameters_that_show_an_address_are_matched_without_it(gate):
    """Parameters that are then alike are paired by order."""
    report, said = gate(
        "CALLS = [(lambda: spin(100),), (lambda: spin(200),)]",
        "CALLS = [(lambda: spin(100),), (lambda: spin(600),)]",
        "import sample\n\n\nclass Held:\n    params = [[*sample.CALLS, [sample.spin]]]\n    sample_time = 0.002\n\n"
        "    def time_it(self, held):\n        held[0]() if type(held) is tuple else held[0](100)\n",
    )
    assert verdicts(report) == {
        "(<function <lambda>>,) (0)": "same",
        "(<function <lambda>>,) (1)": "regressed",
        "[<function spin>]": "same",
    }, said


@pytest.mark.parametrize("more", [(), ("--bench", r"Held.time_it\(K\(\)\)")], ids=str)
def test_the_first_of_several_alike_was_alone_before(gate, more):
    """asv_runner numbers equal parameters where there are several."""
    kind = "\n\nclass K:\n    def __init__(self, n):\n        self.n = n\n\n"
    kind += "    def __repr__(self):\n        return 'K()'\n\n\n"
    report, said = gate(
        kind + "KS = [K(100)]",
        kind + "KS = [K(300), K(100)]",
        "import sample\n\n\nclass Held:\n    params = sample.KS\n    sample_time = 0.002\n\n"
        "    def time_it(self, k):\n        sample.spin(k.n)\n",
        *more,
    )
    new = {} if more else {"K() (1)": "new"}
    assert verdicts(report) == {"K() (0)": "regressed", **new}, said


def test_parameters_that_change_with_the_process_are_not_timed_under_another_name(gate, monkeypatch):
    """The two lists agree, but the worker prepares other parameters."""
    report, _ = gate(
        "",
        "",
        "import sys, sample\n\n\nclass Late:\n    params = [50, 200] if 'list' in sys.argv else [200, 50]\n\n"
        "    def time_it(self, n):\n        sample.spin(n)\n",
    )
    assert set(verdicts(report).values()) == {"not measured"}
    assert "its parameters are not those that were listed" in report["cells"][0]["reason"]


MODES = """
import os
import sample


def time_default():
    sample.spin(sample.LONG if sample.MODE == "default" else 100)


class Exact:
    params = [0, 1, 2, 3]

    def setup(self, n):
        sample.MODE = "exact"

    def time_exact(self, n):
        sample.spin(100)


class Files:
    params = [1, 2]

    def setup(self, n):
        if not getattr(self, "made", False):
            os.mkdir("store")
            self.made = True

    def time_write(self, n):
        open("store/data", "w").write("x" * n)
        sample.spin(100)


class Cached:
    def setup_cache(self):
        open("data", "w").write("left by setup_cache")
        return 100

    def time_cached(self, microseconds):
        assert open("data").read() == "left by setup_cache" and not os.path.exists("store")
        sample.spin(microseconds)


time_default.sample_time = Exact.sample_time = Files.sample_time = Cached.sample_time = 0.002
"""


@pytest.mark.parametrize("launch_method", ["forkserver", pytest.param("spawn", marks=pytest.mark.proof)])
def test_no_benchmark_sees_what_another_has_left(gate, launch_method):
    versions = ("MODE, LONG = 'default', 100", "MODE, LONG = 'default', 300")
    report, _ = gate(*versions, MODES, "--budget", "2", launch_method=launch_method)
    found = {(cell["benchmark"], *cell["params"]): cell["verdict"] for cell in report["cells"]}
    assert found.pop(("b.time_default",)) == "regressed"
    assert set(found.values()) == {"same"}


def test_a_parameter_may_be_longer_than_an_argument_of_a_program(gate):
    suite = "import sample\n\n\nclass Long:\n    params = ['x' * 200_000]\n    sample_time = 0.002\n\n"
    report, _ = gate("", "", suite + "    def time_it(self, text):\n        sample.spin(100)\n", launch_method="spawn")
    assert set(verdicts(report).values()) == {"same"}


def test_a_suite_that_starts_threads_is_loaded_for_each_cell(gate):
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n"
    report, said = gate("", "", thread + "import sample\n\n\ndef time_it():\n    sample.spin(100)\n")
    assert verdicts(report) == {"b.time_it": "same"}
    assert "each cell loads the suite anew, since loading it starts threads" in said


ONCE = """
import os
import numpy as np
import sample


class Once:
    number = repeat = 1
    warmup_time = 0

    def time_lazy(self):
        sample.lazy()

    def time_mkdir(self):
        os.mkdir("once")
        sample.spin(2000)
        return np.ones(3)


Once.time_mkdir.repeat = (1, 1, 10.0)
"""
LAZY = "import functools\n\n\n@functools.lru_cache\ndef lazy():\n    spin({})\n"


@pytest.mark.parametrize("launch_method", ["forkserver", pytest.param("spawn", marks=pytest.mark.proof)])
def test_what_asv_calls_once_in_a_process_is_called_once_in_a_round(gate, launch_method):
    report, said = gate(LAZY.format(2000), LAZY.format(6000), ONCE, launch_method=launch_method)
    assert verdicts(report)["b.Once.time_lazy"] == "regressed", said
    assert verdicts(report)["b.Once.time_mkdir"] in ("same", "ambiguous"), said  # a single call varies
    assert "answers are not compared" not in said


def test_a_clock_that_shows_nothing_of_the_only_call_is_named(gate):
    clock = "\n\nOnce.timer = staticmethod(lambda: 1.0)\n"
    report, _ = gate(LAZY.format(2000), LAZY.format(2000), ONCE + clock)
    assert set(verdicts(report).values()) == {"not measured"}
    assert "its timer returned 0 seconds for its only call" in report["cells"][0]["reason"]


def test_threads_of_a_benchmark_on_one_core_are_told(gate):
    suite = "from concurrent.futures import ThreadPoolExecutor\nimport sample\n\n\ndef time_alone():\n    sample.spin(1000)\n"
    suite += (
        "\n\ndef time_threads():\n    with ThreadPoolExecutor(2) as pool:\n        list(pool.map(sample.spin, [500, 500]))\n"
    )
    report, said = gate("", "", suite, "--budget", "0.3")
    assert {cell["benchmark"]: cell["notes"] for cell in report["cells"]} == {
        "b.time_alone": [],
        "b.time_threads": ["it computes in threads of its own, all of them on one core"],
    }, said


WHERE = """
import os
import numpy as np
import sample


class Where:
    params = list(range(10))
    sample_time = 0.002

    def setup(self, n):
        self.array = np.ones(1 << 19)
        side = "head" if "/head/" in sample.__file__ else "base"
        if folder := os.environ.pop("WHERE", None):  # once in a process
            with open(os.path.join(folder, side), "a") as file:
                print(self.array.ctypes.data, file=file)

    def time_it(self, n):
        sample.spin(50)
"""


@pytest.mark.skipif(
    not addresses_can_be_set(), reason="this machine does not let a process have addresses that are not random"
)
@pytest.mark.parametrize("launch_method", ["forkserver", pytest.param("spawn", marks=pytest.mark.proof)])
def test_arrays_of_4_mb_lie_alike_on_both_sides_in_every_cell(gate, tmp_path, monkeypatch, launch_method):
    monkeypatch.setenv("WHERE", str(tmp_path))
    monkeypatch.setattr(sampling, "MAX_ROUNDS", judge.MIN_ROUNDS)
    gate("", "", WHERE, "--budget", "3", launch_method=launch_method)
    base, head = ((tmp_path / side).read_text().split() for side in ("base", "head"))
    assert len(base) == 10 * (judge.MIN_ROUNDS + 1)  # and the call before the rounds
    assert base == head
    assert len(set(base)) >= judge.MIN_ROUNDS - 1


def test_a_large_cache_is_shared_and_that_is_told_once(gate):
    suite = "import os\nimport sample\n\n\nclass Cached:\n    params = [1, 2]\n    sample_time = 0.002\n\n"
    suite += "    def setup_cache(self):\n        open('large', 'wb').truncate(65 << 20)\n        return 1\n\n"
    suite += "    def time_it(self, cache, n):\n        assert os.path.exists('large')\n        sample.spin(100)\n"
    report, said = gate("", "", suite)
    assert set(verdicts(report).values()) == {"same"}
    assert said.count("all cells share what setup_cache left") == 1


LONG_SETUPS = """
import time
import sample


class Long:
    params = list(range(20))
    sample_time = 0.002

    def setup(self, n):
        if not getattr(Long, "done", False):
            time.sleep(0.6)
            Long.done = True

    def time_it(self, n):
        sample.spin(100)
"""


@pytest.mark.parametrize(("more", "status"), [((), 4), pytest.param(("--partial",), 0, marks=pytest.mark.proof)])
def test_a_short_budget_is_enough_for_some_cells_and_the_others_are_not_reached(gate, more, status):
    report, said = gate("", "", LONG_SETUPS, "--budget", "0.4", *more)
    counts = Counter(verdicts(report).values())
    assert set(counts) == {"same", "not reached"}, said
    assert counts["same"] >= 3
    assert report["exit_status"] == status
    (first,) = [line for line in said.splitlines() if line.startswith("base ")]
    assert first.endswith(f"not reached: {counts['not reached']} of 20 cells")
    assert "increase --budget" in said
    assert re.search(r"^20 cells, about \d+ .*; --budget reaches about \d+ of them$", said, re.MULTILINE)


@pytest.mark.parametrize(("seconds", "verdict"), [(0.5, "not measured"), pytest.param(30, "same", marks=pytest.mark.proof)])
def test_a_benchmark_has_the_time_that_the_configuration_says(gate, monkeypatch, seconds, verdict):
    monkeypatch.setattr(workers, "EXTRA_SECONDS", 0.0)
    suite = LONG_SETUPS.replace("list(range(20))", "[1]").replace("0.6", "2")
    report, said = gate("", "", suite, default_benchmark_timeout=seconds)
    assert verdicts(report) == {"1": verdict}, said


def test_where_setup_cache_fails_on_both_sides_nothing_is_new(gate):
    suite = "import sample\n\n\ndef time_plain():\n    sample.spin(100)\n\n\nclass Cached:\n    def setup_cache(self):\n"
    suite += "        open('/no/such/data')\n\n    def time_it(self, data):\n        pass\n"
    report, said = gate("", "", suite)
    assert verdicts(report) == {"b.Cached.time_it": "not measured", "b.time_plain": "same"}
    assert report["exit_status"] == 4
    assert "fails on both sides: setup_cache: FileNotFoundError" in said


def test_a_suite_that_ends_its_process_is_told(gate):
    suite = "import os\n\n\nclass Cached:\n    def setup_cache(self):\n        os._exit(0)\n\n    def time_it(self, data):\n"
    report, said = gate("", "", suite + "        pass\n")
    assert report["exit_status"] == 4
    assert "fails on both sides: setup_cache: it ended its process, with status 0, before it was done" in said
    report, said = gate("", "", "import os\n\nos._exit(0)\n")
    assert report["exit_status"] == 4
    assert "cannot be listed with the code of the base: it ended its process, with status 0" in said


def test_a_coarse_clock_gets_more_calls(gate):
    """A clock with ticks of 10 ms reads 0 for most calls."""
    suite = "import time\nimport sample\n\n\ndef time_it():\n    sample.spin(sample.LONG)\n\n\n"
    suite += "time_it.timer = staticmethod(lambda: int(time.perf_counter() * 100) / 100)\ntime_it.sample_time = 0.002\n"
    report, said = gate("LONG = 200", "LONG = 600", suite)
    assert verdicts(report) == {"b.time_it": "regressed"}, said


@pytest.mark.proof
def test_a_clock_that_stands_still_is_named(gate, monkeypatch):
    monkeypatch.setattr(sampling, "MAX_FAILURES", 1)
    report, said = gate("", "", "def time_it():\n    pass\n\n\ntime_it.timer = staticmethod(lambda: 1.0)\n")
    assert verdicts(report) == {"b.time_it": "not measured"}
    assert "its timer does not advance: 0 seconds for" in said
