"""Every row of docs/seeds.md names files, implementations and commands that are there."""

import contextlib
import importlib
import re
import shlex
from pathlib import Path

import click
import pytest

import benchmarks.__main__ as verbs
import impls
from benchmarks.harness import cell
from convbench.cli.main import main

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
QUOTED = re.findall(r"`([^`]+)`", TEXT)
FILES = sorted({one for one in QUOTED if re.fullmatch(r"(impls|benchmarks|convbench)/[\w/]+\.py", one)})
NAMES = sorted({name for one in QUOTED for name in re.findall(r"(?<![\w/.])(?:cpu|gpu|im2col)\.[a-z]\w+", one)})
COMMANDS = sorted({one for one in QUOTED if one.startswith("convbench ")})
VERBS = sorted({one.split()[3] for one in QUOTED if one.startswith("python -m benchmarks ")})


def test_the_document_is_read():
    assert min(map(len, (FILES, NAMES, COMMANDS, VERBS))) > 4


@pytest.mark.parametrize("path", FILES)
def test_a_file_is_there_and_is_imported(path):
    assert (ROOT / path).is_file()
    with contextlib.suppress(ImportError, impls.Unavailable):  # of a library or a device
        importlib.import_module(path.removesuffix(".py").replace("/", "."))


@pytest.mark.parametrize("name", NAMES)
def test_an_implementation_is_there(name):
    assert any(name in impls.names(operation) for operation in cell.TASKS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_there(verb):
    assert verb in {*verbs.PICTURES, *(name for name in vars(verbs) if not name.startswith("_"))}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_understood(command):
    """Up to where it would begin to work."""
    name, *words = [word for word in shlex.split(command)[1:] if word not in ("NAMES", "FILE")]
    found = main.commands[name]
    if words and words[-1] in ("--graph", "--native", "--trace", "--output"):
        words.append("file.svg")
    with contextlib.suppress(click.MissingParameter):  # some are named without what they are about
        found.make_context(name, words)
