"""Every module of the suite imports in asv's own environment, and only files of asv classes hold benchmarks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ASV_FILES = {f"benchmarks.{path.stem}" for path in (ROOT / "benchmarks").glob("[!_]*.py")} - {"benchmarks.errors"}

# Prints each module's error, or the benchmarks that asv_runner finds in it.
FOUND = """
import importlib, inspect, json, pkgutil, sys

installed = {*sys.stdlib_module_names, "benchmarks", "numpy", "asv_runner", "importlib_metadata"}

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in installed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hide())
sys.path.append(".")
import benchmarks
from asv_runner import discovery
from asv_runner.benchmarks import benchmark_types

def is_benchmark(name):
    return any(kind.name_regex.match(name) for kind in benchmark_types)

def held(module):
    for name, member in vars(module).items():
        if inspect.isfunction(member) and is_benchmark(name):
            yield name
        elif inspect.isclass(member):
            methods = inspect.getmembers(member, inspect.isfunction)
            yield from (f"{name}.{method}" for method, _ in methods if is_benchmark(method))

found = {}
for module in pkgutil.walk_packages(benchmarks.__path__, "benchmarks."):
    try:
        found[module.name] = sorted(held(importlib.import_module(module.name)))
    except ImportError as error:
        found[module.name] = str(error)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    done = subprocess.run([sys.executable, "-c", FOUND], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_module_imports_with_numpy_and_asv_runner_alone(found):
    files = {path.relative_to(ROOT).with_suffix("") for path in (ROOT / "benchmarks").rglob("*.py")}
    names = {".".join(path.parts).removesuffix(".__init__") for path in files} - {"benchmarks"}
    assert set(found) == names
    assert {name: error for name, error in found.items() if isinstance(error, str)} == {}


def test_only_files_of_asv_classes_hold_benchmarks(found):
    """asv looks into every module, so a function named time_fork would be timed anywhere."""
    assert {name for name, benchmarks in found.items() if benchmarks} == ASV_FILES
