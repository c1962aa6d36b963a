"""Implementations from files of anywhere and from commits, for `convbench try`."""

import subprocess
from pathlib import Path

import click
import pytest

from convbench.suite import other_kernels

COMPILED = "import impls.conv2d.cpu._cython_direct as _cython_direct\n"


@pytest.fixture
def root(tmp_path):
    """A repository with a suite in a folder of it, and an implementation in two versions."""
    folder = tmp_path / "suite/impls/conv2d/cpu"
    folder.mkdir(parents=True)

    def git(*words):
        command = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
        subprocess.run(command, check=True, capture_output=True)

    git("init", "-q")
    for number in (1, 2):
        (folder / "mine.py").write_text(f"x = {number}\n")
        (folder / "fast.py").write_text(COMPILED)
        (folder / "bad.py").write_text("def (\n")
        git("add", ".")
        git("commit", "-q", "-m", str(number))
    (folder / "mine.py").write_text("x = 3\n")
    return tmp_path / "suite"


def test_files_and_commits_by_name(root, tmp_path):
    (tmp_path / "own.py").write_text("")
    names = ["cpu.mine", "cpu.mine@HEAD", "cpu.mine@HEAD~1", "cpu.mine@"]
    with other_kernels.files(root, "conv2d", names, [str(tmp_path / "own.py")]) as found:
        assert {name: Path(path).read_text() for name, path in found.items()} == {
            "own": "",
            "cpu.mine@HEAD": "x = 2\n",
            "cpu.mine@HEAD~1": "x = 1\n",
            "cpu.mine@": "x = 2\n",
        }
    assert [Path(path).exists() for path in found.values()] == [True, False, False, False]


@pytest.mark.parametrize(
    ("names", "given", "words"),
    [
        (["cpu.nine@HEAD"], [], "impls/conv2d/cpu/nine.py' does not exist"),
        (["cpu.mine@nowhere"], [], "nowhere"),
        (["cpu.mine@--output=x"], [], "git show failed"),
        (["cpu.fast@HEAD"], [], "cpu.fast@HEAD has a compiled part, and only the working tree's is built here"),
        (["cpu.bad@HEAD"], [], "cpu.bad@HEAD is not Python"),
        ([], ["a/mine.py", "b/mine.py"], "two of the files have the same name"),
    ],
)
def test_mistakes(root, names, given, words):
    with pytest.raises(click.ClickException, match=words), other_kernels.files(root, "conv2d", names, given):
        pass
    assert not (root / "x:impls").exists()
