"""Imports between packages go one way and stay cheap, and names are the field's."""

import ast
import graphlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("impls", "benchmarks", "convbench")
FORBIDDEN = {
    "impls": {"benchmarks", "convbench", "asv", "asv_runner"},
    "benchmarks": {"convbench", "asv"},
    "convbench": {"impls", "benchmarks"},
}
# What each package may import beside itself; whatever has no line here may import all others of its room.
ALLOWED = {
    "benchmarks.errors": set(),
    "benchmarks.timing": {"errors"},
    "benchmarks.workloads": {"errors", "timing"},
    "benchmarks.harness": {"errors", "timing", "workloads"},
    "benchmarks.commands": {"errors", "timing", "workloads", "harness"},
    "benchmarks.pictures": {"errors", "timing", "workloads", "harness"},
    "benchmarks.tour": {"errors", "timing", "workloads", "harness", "commands", "pictures"},
    "convbench.common": set(),
    "convbench.asv": {"common"},
    "convbench.stored": {"common", "asv"},
    "convbench.changed": {"common", "asv"},
    "convbench.adopt": {"common", "asv", "gate"},
    "convbench.run": {"common", "asv", "stored"},
    "convbench.gate": {"common", "asv", "stored", "changed"},
    "convbench.bisect": {"common", "asv", "stored", "gate"},
    "convbench.cluster": {"common", "asv", "stored", "run", "gate", "bisect", "speed", "suite"},
    "convbench.suite": {"common", "asv", "stored"},
    "convbench.speed": {"common", "asv", "stored", "suite"},
    "convbench.doctor": {"common", "asv", "gate", "suite"},
    "convbench.pages": {"common", "asv", "stored"},
}
STATISTICS = {"convbench.gate.judge", "convbench.stored.change_points"}
# Names that say nothing, and names that were given up for the field's own, in these packages.
EMPTY_NAMES = {"part", "misc", "common2", "utils", "util"}
GIVEN_UP = {
    "": {
        "doubt",
        "apart",
        "contest",
        "contender",
        "contenders",
        "salvage",
        "lifeline",
        "private_asv",
        "bad_files",
        "noise_work",
    },
    "benchmarks": {"updates", "reading", "preprocessing", "record", "types", "trial"},
    "benchmarks.workloads": {"draw"},
    "convbench": {"store", "layout", "steps", "tables", "record", "trial"},
    "convbench.gate": {"pair", "side"},
    "impls": {"tables"},
}
ASV_CLASSES = {path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py")}  # benchmarks keep their names
MODULES_A_PACKAGE = 16
LINES_A_FILE = 400


def sources(room):
    """The files of a room by the names of their modules."""
    found = {}
    for path in sorted((ROOT / room).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path, known=()):
    """The full names of everything a file imports, wherever in the file; a module of `known` where that is meant."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else node.module or ""


def package(module):
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_one_way(room):
    files = sources(room)
    assert files
    wrong = {name: {one.partition(".")[0] for one in imported(path)} & FORBIDDEN[room] for name, path in files.items()}
    assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.parametrize("name", ALLOWED)
def test_packages_import_one_way(name):
    room = name.partition(".")[0]
    known = sources(room)
    files = {module: path for module, path in known.items() if package(module) == name}
    assert files
    allowed = {f"{room}.{other}" for other in ALLOWED[name]} | {name, room}
    wrong = {
        module: {one for one in imported(path, known) if one in known and package(one) not in allowed}
        for module, path in files.items()
    }
    assert {module: found for module, found in wrong.items() if found} == {}


def test_only_one_package_imports_asv():
    users = {
        package(name)
        for name, path in sources("convbench").items()
        if any(one.partition(".")[0] == "asv" for one in imported(path))
    }
    assert users == {"convbench.asv"}


@pytest.mark.parametrize("name", sorted(STATISTICS))
def test_statistics_import_numpy_and_scipy_alone(name):
    others = {one.partition(".")[0] for one in imported(sources("convbench")[name])} - sys.stdlib_module_names
    assert others <= {"numpy", "scipy", "ruptures", "__future__"}


@pytest.mark.parametrize("name", ["gate.programs.worker", "gate.programs.probe", "changed.tracer"])
def test_what_a_gate_runs_in_the_suites_environment_needs_python_3_9_and_asv_runner_alone(name):
    pytest.importorskip("vermin", reason="vermin is not installed: pip install vermin")
    program = ROOT.joinpath("convbench", *name.split(".")).with_suffix(".py")
    command = [Path(sys.executable).with_name("vermin"), "--target=3.9-", "--eval-annotations", "--violations", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    names = {one.partition(".")[0] for one in imported(sources("convbench")[f"convbench.{name}"])}
    assert names - sys.stdlib_module_names <= {"asv_runner"}


@pytest.mark.parametrize("room", ROOMS)
def test_no_circle(room):
    known = sources(room)
    graph = {name: {one for one in imported(path, known) if one in known} - {name} for name, path in known.items()}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError with the modules of a circle


@pytest.mark.parametrize("room", FORBIDDEN)
def test_no_import_is_hidden_in_a_string(room):
    """importlib.import_module() of another room would pass the tests above."""
    for path in (ROOT / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
                text = ast.unparse(node.args[0]).strip("f'\"")
                assert text.partition(".")[0] not in FORBIDDEN[room], f"{path}: {text}"


def test_impls_imports_with_numpy_alone():
    code = "import sys, impls; print(sorted({m.partition('.')[0] for m in sys.modules} & {'torch', 'numba', 'scipy', 'asv'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def tracked(*patterns):
    done = subprocess.run(["git", "ls-files", "--", *patterns], capture_output=True, text=True, check=True, cwd=ROOT)
    return [ROOT / line for line in done.stdout.splitlines() if (ROOT / line).is_file()]


def test_source_files_are_short():
    long = {}
    for path in tracked("*.py", "*.pyx", "*.h", "*.js", "*.css", "*.html"):
        count = len(path.read_text(encoding="utf-8").splitlines())
        if count > LINES_A_FILE:
            long[str(path.relative_to(ROOT))] = count
    assert long == {}


@pytest.mark.parametrize("room", ["benchmarks", "convbench"])
def test_packages_are_small_and_names_are_given_once(room):
    names = [name for name in sources(room) if name != room]
    # An operation's asv classes are one file in the suite's own folder, however many operations there are.
    counted = [name for name in names if not name.endswith("__main__") and name.partition(".")[2] not in ASV_CLASSES]
    sizes = Counter(name.rpartition(".")[0] for name in counted)
    assert {name: size for name, size in sizes.items() if size > MODULES_A_PACKAGE} == {}
    leaves = Counter(name.rpartition(".")[2] for name in names if package(name) != "convbench.cli" and name.count(".") > 1)
    assert {name: count for name, count in leaves.items() if count > 1} == {}


@pytest.mark.parametrize("room", ROOMS)
def test_no_name_is_one_that_was_given_up(room):
    """Of a module, function or class; implementations' files, benchmarks and their parameters keep their names."""
    wrong = []
    for name, path in sources(room).items():
        words = EMPTY_NAMES.union(*(found for prefix, found in GIVEN_UP.items() if f"{name}.".startswith(prefix)))
        if name.rpartition(".")[2] in words:
            wrong.append(name)
        if room == "benchmarks" and name.partition(".")[2] in ASV_CLASSES:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name.lower().strip("_") in words:
                wrong.append(f"{name}.{node.name}")
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in {"LEAST", "MOST"}:
                wrong.append(f"{name}.{node.id}")
    assert wrong == []
