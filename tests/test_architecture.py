"""The arrows between the rooms run one way, and importing a room costs no more than it says."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FORBIDDEN = {
    "impls": {"benchmarks", "convbench", "asv", "asv_runner"},
    "benchmarks": {"convbench", "asv"},
    "convbench": {"impls", "benchmarks"},
}


def imported(path):
    """First names of everything a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


@pytest.mark.parametrize("room", FORBIDDEN)
def test_imports_run_one_way(room):
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    wrong = {str(path.relative_to(ROOT)): set(imported(path)) & FORBIDDEN[room] for path in files}
    assert {path: names for path, names in wrong.items() if names} == {}


@pytest.mark.parametrize("room", FORBIDDEN)
def test_no_import_is_hidden_in_a_string(room):
    """importlib.import_module() of another room would pass the test above."""
    for path in (ROOT / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
                text = ast.unparse(node.args[0]).strip("f'\"")
                assert text.partition(".")[0] not in FORBIDDEN[room], f"{path}: {text}"


def test_the_rooms_are_the_ones_that_are_tested():
    code = "import sys, impls; print(sorted({m.partition('.')[0] for m in sys.modules} & {'torch', 'numba', 'scipy', 'asv'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
