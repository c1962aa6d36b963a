"""A checkout fits on a lent machine: tracked files, one commit, and the missing wheels."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MIB = 1 << 20
MAX_TRACKED_MIB = 40
MAX_BUNDLE_MIB = 60  # of the 64 that such a machine takes


@pytest.fixture(scope="module")
def tracked():
    """MiB of the files that git tracks, as they are in the working tree."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout of git's")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return sum(path.lstat().st_size for path in paths if path.is_file()) / MIB


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "proofs").glob("*.py")), ids=lambda path: path.stem)
def test_a_proof_finds_what_it_imports(path):
    """Where only its own folder is added to the search path, as `python FILE` does."""
    if path.stem == "gate_proof":
        pytest.skip("make gate-proof adds its folder of helpers")
    code = f"import runpy, sys; sys.path[0] = {str(path.parent)!r}; runpy.run_path({str(path)!r})"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_tracked_files_are_light(tracked):
    assert tracked < MAX_TRACKED_MIB


def test_what_is_carried_to_a_lent_machine_is_light(tracked, tmp_path):
    clone = ["git", "clone", "--quiet", "--bare", "--depth", "1", f"file://{ROOT}", tmp_path / "one"]
    subprocess.run(clone, check=True)
    commit = sum(path.stat().st_size for path in (tmp_path / "one").rglob("*") if path.is_file()) / MIB
    assert tracked + commit + wheels() < MAX_BUNDLE_MIB, (tracked, commit, wheels())


def wheels():
    """MiB of what `make wheelhouse` fetched here, or else of what it fetched when wheelhouse.txt was written."""
    if found := list((ROOT / "wheelhouse").glob("*.whl")):
        return sum(path.stat().st_size for path in found) / MIB
    said = re.search(r"^# Together (\d+) MiB", (ROOT / "wheelhouse.txt").read_text(encoding="utf-8"), re.MULTILINE)
    return float(said[1])
