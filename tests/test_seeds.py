"""Every row of docs/seeds.md names files, implementations and commands that are there."""

import contextlib
import importlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

import benchmarks.__main__ as verbs
import impls
from benchmarks.harness import cell
from benchmarks.tour import stories
from convbench.cli.main import main

pytestmark = pytest.mark.first
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
    """Each command is run up to the start of its work."""
    name, *words = [word for word in shlex.split(command)[1:] if word not in ("NAMES", "FILE")]
    found = main.commands[name]
    if words and words[-1] in ("--graph", "--native", "--trace", "--output"):
        words.append("file.svg")
    # click keeps a command's help option as its first context has it, which is to be the program's.
    program = click.Context(main, **main.context_settings)
    with contextlib.suppress(click.MissingParameter):  # some are named without what they are about
        found.make_context(name, words, parent=program)


# What each row's command does in a few seconds: words that make it small, and what it then says. What no word makes small is
# set in the module that has it.
ONE = json.dumps(["cpu.torch"])
SHORT = {
    "convbench doctor": ("", "convbench.doctor.noise.ROUNDS = 2", "this machine"),
    "convbench profile cpu.numpy perceptron-n100 --operation train_step --flat": ("--calls 1", "", "numpy_calls"),
    "convbench profile im2col.naive n1c1h7w7k1r3s3 --flat --sort cumulative": ("--calls 2", "", "naive.py"),
    "convbench table --layout compare --bench read_batch": (
        "--machine amd-epyc-family-25-model-17-2cores",
        "",
        "Times are in",
    ),
    "convbench try --operation im2col 7x7 3x3 --padding 1": ("cpu.naive --seconds 0.01", "", "cpu.naive"),
    "convbench try 1x1x7x7 1x1x3x3 NAMES": ("cpu.loops --seconds 0.01", "", "cpu.loops"),
    "convbench try 1x3x427x640 3x3x3x3 NAMES": ("cpu.auto --seconds 0.01", "", "cpu.auto"),
    """python -m benchmarks bound '{"operation": "preprocess"}'""": (
        json.dumps({"operation": "preprocess", "names": ["cpu.opencv"], "problem": "n1h48w64y24x32s16"}),
        "",
        "cpu.opencv: ",
    ),
    "python -m benchmarks curves": (f"--epochs 1 --names '{ONE}' --path FILE", "", "cpu.torch: "),
    "python -m benchmarks curves --seeds 5": (f"--epochs 1 --names '{ONE}' --path FILE", "", "by start)"),
    "python -m benchmarks gallery": ("""--names '["cpu.shift"]' --path FILE""", "", "cpu.shift: drawn"),
    "python -m benchmarks ladder": (
        """--names '["cpu.cython_fused"]' --path FILE""",
        "benchmarks.pictures.ladder.ROUNDS = 1",
        "cpu.cython_fused: ",
    ),
    "python -m benchmarks seeds": ("", "", "# Where the project came from"),
    "python -m benchmarks shifts": ("--path FILE", "", "the shifts are"),
    "python -m benchmarks stages": (
        """--names '["cpu.opencv"]' --problem n1h48w64y24x32s16 --path FILE""",
        "benchmarks.pictures.stages.ROUNDS = 1",
        "cpu.opencv, 16 images: ",
    ),
    "python -m benchmarks tile_curves": (
        """--names '["cpu.raw_numba"]' --tiles 50 --passes 1 --threads 1 --path FILE""",
        "",
        "cpu.raw_numba: ",
    ),
    "python -m benchmarks tile_sheet": (
        "--name cpu.raw_numba --path FILE",
        "benchmarks.pictures.tile_sheet.AMONG = 50",
        "the tile sheet is",
    ),
    "python -m benchmarks tile_traces": (
        """--names '["cpu.raw_numba"]' --batch 2 --threads 1 --folder FOLDER""",
        "",
        "resnet18.pt.trace.json.gz",
    ),
}
ELSEWHERE = {
    "make profiled": "tests/convbench/suite/test_profiled_kernels.py",  # it compiles for minutes
    **dict.fromkeys(("convbench tour", "convbench tour --keep"), "tests/convbench/cli/test_tour.py"),
    **{f"convbench tour {name}": "tests/convbench/cli/test_tour.py" for name in stories.STORIES},
}


def test_every_command_has_a_short_form():
    quoted = {one for one in QUOTED if re.match(r"convbench \w|python -m benchmarks |make ", one)}
    assert quoted == {*SHORT, *ELSEWHERE}
    for command, path in ELSEWHERE.items():
        assert repr(command.split()[1]).replace("'", '"') in (ROOT / path).read_text(encoding="utf-8")


# The doctor, tables, profiles, try and the training of tiles have tests of their own.
LONG = {
    "convbench doctor",
    "convbench profile cpu.numpy perceptron-n100 --operation train_step --flat",
    "convbench table --layout compare --bench read_batch",
    "convbench try --operation im2col 7x7 3x3 --padding 1",
    "convbench try 1x1x7x7 1x1x3x3 NAMES",
    "convbench try 1x3x427x640 3x3x3x3 NAMES",
    "python -m benchmarks curves",
    "python -m benchmarks curves --seeds 5",
    "python -m benchmarks ladder",
    "python -m benchmarks tile_curves",
    "python -m benchmarks tile_sheet",
    "python -m benchmarks tile_traces",
}


@pytest.mark.slow
@pytest.mark.parametrize("command", [pytest.param(one, marks=[pytest.mark.proof] * (one in LONG)) for one in sorted(SHORT)])
def test_a_short_form_of_a_command_shows_what_it_is_to_show(command, tmp_path):
    more, setting, said = SHORT[command]
    words = [word for word in shlex.split(command) if word != "NAMES"]
    *module, words = ("benchmarks", words[3:]) if words[0] == "python" else ("convbench", words[1:])
    if more.startswith("{"):
        words, more = [*words[:1], more], ""  # one request in place of another
    words += shlex.split(more.replace("FILE", str(tmp_path / "picture.svg")).replace("FOLDER", str(tmp_path)))
    code = f"import runpy, sys\nsys.argv[1:] = {words!r}\n"
    if setting:
        code += f"import {setting.partition(' ')[0].rpartition('.')[0]}\n{setting}\n"
    code += f"runpy.run_module({module[0]!r}, run_name='__main__')\n"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in ((0, 1) if command == "convbench doctor" else (0,)), done.stderr  # 1: unfit to measure on
    assert said in done.stdout
    assert ("FILE" in more) == (tmp_path / "picture.svg").is_file()
