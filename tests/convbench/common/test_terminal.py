"""No text of a file, a commit or an exception moves the cursor, sets a title or passes for another line."""

import contextlib
import io
import json
import os
import pty
import re
import subprocess
import sys

import compressed
import pytest
from click.testing import CliRunner
from gate_projects import Sample
from hypothesis import given
from hypothesis import strategies as st
from measured_suites import COLUMNS

from convbench.cli.main import main
from convbench.common import progress, terminal
from convbench.stored import table

EVIL = "\x1b]0;title\x07\x1b[2J\x1b[1A\x9b2J\r\b\x00\u202egnp.exe"
STYLES = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\r\n")  # Rich's own: colours, and the cursor of a bar


def is_clean(text):
    return not set(text) & set(map(chr, terminal.CONTROL))


@given(st.text(alphabet=st.characters()))
def test_nothing_but_ends_of_lines_is_left(text):
    made = terminal.printable(text)
    assert is_clean(made)
    assert len(made) == len(text)
    assert "\n" not in terminal.line(text)
    assert is_clean(terminal.line(text))


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("style", ["bold", ""])
def test_a_console_prints_no_control_and_reads_no_markup(color, style):
    out = io.StringIO()
    console = terminal.SafeConsole(file=out, force_terminal=color, width=200)
    console.print(f"[/x] [bold]{EVIL} :smile:", style=style or None)
    console.print(terminal.one_line(f"[link=file:///etc/passwd]{EVIL}\nError: "))
    printed = STYLES.sub("", out.getvalue())
    assert is_clean(printed)
    assert "[/x] [bold]" in printed
    assert ":smile:" in printed
    assert printed.count("\n") == 2


@pytest.mark.parametrize("make", [progress.bar, progress.counting_bar])
def test_a_bar_takes_a_parameter_for_what_it_is(make):
    """A closing tag without an opening one must not end the run."""
    out = io.StringIO()
    console = terminal.SafeConsole(file=out, force_terminal=True, width=200)
    with make(console) as bar:
        bar.update(bar.add_task(f"[/x]{EVIL}", total=1, now=f"[/x]{EVIL}"), completed=1)
        bar.refresh()
    assert "[/x]" in out.getvalue()
    assert "title" in out.getvalue()
    assert "\x1b]0" not in out.getvalue()


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_spreadsheet_takes_no_text_for_a_formula(start):
    assert table.for_spreadsheet(start).startswith("'")
    assert table.for_spreadsheet(-1.5) == -1.5
    assert table.for_spreadsheet("a=1") == "a=1"


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """Two commits with results; every text in them that a command prints is hostile."""
    made = Sample(tmp_path_factory.mktemp("project"))
    name, params = f"b.{EVIL}.time_x", [[f"'{EVIL}'", "'[/x]'"]]
    suite = {name: {"name": name, "param_names": ["implementation"], "params": params, "unit": "seconds", "version": "1"}}
    folder = made.folder / "results" / "m"
    folder.mkdir(parents=True)
    (folder.parent / "benchmarks.json").write_text(json.dumps(suite))
    (folder / "machine.json").write_text("{}")
    for i in range(8):
        commit = made.commit({"n": str(i)}, f"subject {EVIL.replace(chr(0), '')} {i}")
        value = 1.0 if i < 4 else 9.0
        samples = [[value, value * 1.01, value * 0.99], None]
        row = [[value, None], params, "1", 1.7e12 + i, 1, [value * 0.99, None], [value * 1.01, None], samples]
        whole = {"commit_hash": commit, "env_name": f"env{EVIL}", "date": 1, "params": {"machine": "m"}}
        whole |= {"result_columns": COLUMNS, "results": {name: row}}
        (folder / f"{commit[:8]}-env.json").write_text(json.dumps(whole))
        line = {
            "benchmark": name,
            "params": [params[0][1]],
            "status": "failed",
            "reason": f"wrong {EVIL}\nError: all is well",
        }
        compressed.write_text(folder / f"{commit[:8]}-env.cells.jsonl.gz", json.dumps(line))
    (folder / f"bad{EVIL.replace(chr(0), '')}-x.json").write_text("{")
    return made


COMMANDS = [
    ("table",),
    ("table", "--csv"),
    ("table", "--json"),
    ("history",),
    ("compare", "HEAD~1", "HEAD"),
    ("compare", "HEAD~7", "HEAD"),
    ("table", "--machine", f"x{EVIL.replace(chr(0), '')}"),
    ("gate", "--bench", f"({EVIL.replace(chr(0), '')}"),
]


# One process that has loaded what commands need, and runs each in a fork of itself.
FORKS = """
import json, os, sys
from convbench.__main__ import main
from convbench.cli import main as cli
from convbench.stored import compare, export, history_formats, table

for number, command in enumerate(json.loads(sys.argv[1])):
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    for descriptor in (1, 2):
        os.dup2(os.open(f"{sys.argv[2]}/{number}.{descriptor}", os.O_CREAT | os.O_WRONLY), descriptor)
    sys.argv = ["convbench", *command]
    sys.exit(main())
"""


def run(suite, folder, commands, **environment):
    """Output and errors of commands, as bytes."""
    process = [sys.executable, "-c", FORKS, json.dumps([list(command) for command in commands]), str(folder)]
    subprocess.run(process, cwd=suite.folder, timeout=60, check=True, env=os.environ | environment)
    return {
        command: [(folder / f"{number}.{descriptor}").read_bytes() for descriptor in (1, 2)]
        for number, command in enumerate(commands)
    }


@pytest.fixture(scope="module")
def printed(suite, tmp_path_factory):
    """What each of COMMANDS prints."""
    return run(suite, tmp_path_factory.mktemp("printed"), COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_what_a_file_would_have_a_terminal_do(printed, command):
    out, err = printed[command]
    assert out or err
    for stream in (out, err):
        assert is_clean(stream.decode())
    if "--csv" not in command:  # where a quoted text may have several lines
        assert not re.search(r"^Error: all is well", out.decode(), re.MULTILINE)
    assert b"Traceback" not in err


@pytest.mark.slow
def test_nor_where_only_ascii_is_printed(suite, tmp_path):
    commands = [("table", "--machine", "x\x1b]0;t\x07"), ("history",)]
    for out, err in run(suite, tmp_path, commands, PYTHONIOENCODING="ascii").values():
        assert out or err
        for stream in (out, err):
            assert is_clean(stream.decode("ascii"))
        assert b"Traceback" not in err


@pytest.mark.slow
def test_nor_on_a_terminal_where_it_has_colours_of_its_own(suite):
    ours, theirs = pty.openpty()
    process = [sys.executable, "-m", "convbench", "history"]
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"}
    with subprocess.Popen(process, cwd=suite.folder, stdout=theirs, stderr=theirs, env=env) as running:
        os.close(theirs)
        printed = b""
        while True:
            try:
                more = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            printed += more
        running.wait(60)
    os.close(ours)
    text = printed.decode()
    assert "\x1b[1m" in text  # a heading
    assert "subject" in text
    assert is_clean(STYLES.sub("", text).replace("\r", ""))


@pytest.mark.slow
def test_an_export_for_people_has_none_either(suite, tmp_path):
    with contextlib.chdir(suite.folder):
        done = CliRunner().invoke(main, ["export", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.stderr
    assert is_clean((tmp_path / "out.csv").read_text(encoding="utf-8"))
