"""The start and end of the command: missing libraries, and output that cannot be written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from convbench.pages import server

ROOT = Path(__file__).parents[3]


def begin(*arguments, code="pass", **more):
    script = f"import sys; {code}; sys.argv = ['convbench', *{arguments!r}]; from convbench.__main__ import main; main()"
    return subprocess.run([sys.executable, "-c", script], cwd=ROOT, text=True, check=False, stderr=subprocess.PIPE, **more)


def test_without_the_libraries_of_the_commands_they_say_what_brings_them():
    done = begin("table", code="sys.modules['click'] = None")
    assert done.returncode == 1
    assert (
        done.stderr
        == "Error: click is missing, which pip installs together with convbench: pip install --upgrade convbench\n"
    )


def test_a_fault_of_ours_is_not_worded_as_a_missing_library():
    done = begin("table", code="sys.modules['convbench.stored.results'] = None")
    (found,) = re.findall(r"^Error: this is a fault of convbench, .*\(traceback: (.*)\)$", done.stderr, re.MULTILINE)
    assert Path(found).read_text().startswith("Traceback")
    Path(found).unlink()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")
def test_output_that_finds_no_room_is_one_sentence():
    with Path("/dev/full").open("w") as full:
        done = begin("--help", stdout=full)
    assert (done.returncode, done.stderr) == (1, "Error: no space left on device\n")


def test_a_terminal_of_few_signs_gets_others():
    code = "from convbench.cli import table; table.command.callback = lambda **_: print('1 ± 2')"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = begin("table", code=code, stdout=subprocess.PIPE, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 ? 2\n", "")


def test_the_help_needs_none_of_the_libraries_that_take_long_to_import():
    code = "sys.modules.update(dict.fromkeys(['asv', 'numpy', 'pandas']))"
    done = begin("--help", code=code, stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"default: {server.PORT}, or" in begin("dashboard", "--help", stdout=subprocess.PIPE).stdout
