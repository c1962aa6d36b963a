"""Implementations from outside the working tree's impls: from other files, and from a commit."""

from __future__ import annotations

import ast
import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from convbench.asv import git


@contextlib.contextmanager
def files(root: Path, operation: str, names: Sequence[str], given: Sequence[str]) -> Iterator[dict[str, str]]:
    """The paths of implementations by the names they get: those given by the names of their files, and NAME@COMMIT.

    The latter are written to a folder that is removed afterwards. Raises ClickException for two of one name, and where git
    has no such file.
    """
    found = {Path(path).stem: str(Path(path).absolute()) for path in given}
    if len(found) < len(given):
        raise click.ClickException("two of the files have the same name: rename one of them")
    with tempfile.TemporaryDirectory(prefix="convbench-") as folder:
        for number, name in enumerate(name for name in names if "@" in name):
            path = Path(folder, f"committed_{number}.py")
            path.write_text(_committed(root, operation, name), encoding="utf-8")
            found[name] = str(path)
        yield found


def _committed(root: Path, operation: str, name: str) -> str:
    """A file as a commit has it. What it imports is the working tree's; raises ClickException if that is compiled."""
    implementation, _, commit = name.partition("@")
    path = f"./impls/{operation}/{implementation.replace('.', '/')}.py"
    text = git.run(root, "show", "--end-of-options", f"{commit or 'HEAD'}:{path}") + "\n"
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise click.ClickException(f"{name} is not Python: {error}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(alias.name.rpartition(".")[2].startswith("_") for alias in node.names):
            raise click.ClickException(
                f"{name} has a compiled part, and only the working tree's is built here: "
                f"`convbench gate {commit or 'HEAD'}` compares commits that it builds"
            )
    return text
