"""Changes at random of a package with everything that Python offers: no cell is missed whose cost changes."""

import random
import shutil
import sys
from types import SimpleNamespace

import changing_package
import pytest

from convbench.common.selection import Selection
from convbench.gate import discover
from convbench.gate.build import Built

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc is installed")
CHANGES = random.Random(0).sample(list(changing_package.places()), 60)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Both sides built and their cells listed; touched(change) gives the difference that touches each cell, or None."""
    work = tmp_path_factory.mktemp("changes")
    benchmarks = work / "benchmarks"
    benchmarks.mkdir()
    (benchmarks / "__init__.py").touch()
    (benchmarks / "b.py").write_text(changing_package.suite())
    python = sys.executable
    pyx = (changing_package.PYX, changing_package.PYX.replace("2", "7"))
    shared = [changing_package.shared_object(work / f"cython{i}", python, text) for i, text in enumerate(pyx)]
    built = {}
    for side in ("base", "head"):
        changing_package.write(work / side / "code", shared)
        (work / side / "numba").mkdir()
        built[side] = Built(work / side, python, {}, benchmarks, benchmarks, "e", False)
    conf = SimpleNamespace(default_benchmark_timeout=60, regressions_thresholds=None)
    suite = discover.discover(built, work, Selection(), conf)

    def touched(change):
        changing_package.write(work / "head" / "code", shared, change)
        difference = discover.differences(built, {})
        assert len(difference.changes) == 1
        found = discover.narrowed(built, suite, difference)
        assert not any(found.broken.values())
        return dict.fromkeys((cell.name for cell in found.untouched), None) | found.touched

    def costs(side):
        return changing_package.costs(python, work / side / "code", benchmarks)

    return SimpleNamespace(touched=touched, costs=costs, unchanged=costs("base"))


def check(world, change):
    """Whether no cell is missed; how many are touched, of how many."""
    touched, costs = world.touched(change), world.costs("head")
    assert touched.keys() == costs.keys()
    missed = {name for name in costs if costs[name] != world.unchanged[name] and not touched[name]}
    assert missed == set(), change
    return sum(map(bool, touched.values())), len(touched)


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_no_slower_cell_is_missed_and_few_others_are_measured(world):
    counts = [check(world, change) for change in CHANGES if change[2]]
    assert sum(touched for touched, _ in counts) < sum(count for _, count in counts) / 10
    for change in CHANGES:
        if not change[2]:
            check(world, change)


EACH = ("plain03.py", "constants.py", *(pytest.param(file, marks=pytest.mark.proof) for file in ("properties.py", "fast.so")))


@pytest.mark.slow
@pytest.mark.parametrize("file", EACH)
def test_a_change_of_each_kind(world, file):
    change = next(place for place in changing_package.places() if place[0] == file)
    assert check(world, change)[0] > 0
