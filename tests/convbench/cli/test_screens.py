"""Every command's output and help on terminals of 80, 100 and 160 characters and in a pipe, as in tests/golden/screens."""

import sys

import click
import pytest
import screens
import shown_reports
from published import BENCHMARKS, LINES, QUARTILES, SWEEP, TIMES, Published

from convbench.cli.main import main
from convbench.doctor import diagnose
from convbench.gate import pipeline
from convbench.run import session
from convbench.stored import compare, history
from convbench.suite import one_problem

RUN = ["run", "HEAD~2..HEAD"]
TRY = ["try", "1x64x56x56", "64x64x3x3", "--padding", "1"]
COMMANDS = {
    "table": ["table", "--machine", "box", "--bench", "."],
    "table-summary": ["table", "--machine", "box"],
    "table-one-problem": ["table", "--machine", "box", "--bench", "256x256.\\)", "--why"],
    "try": TRY,
    "gate": ["gate"],
    "run": RUN,
    "history": ["history", "--machine", "box"],
    "doctor": ["doctor"],
    "doctor-not-fit": ["doctor"],
    "compare": ["compare", "HEAD", "HEAD", "--machine", "box"],
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with the results of one commit."""
    made = Published(tmp_path_factory.mktemp("screens") / "project", BENCHMARKS)
    wrong = {**LINES[0], "status": "failed", "reason": "WrongAnswer: off by 1.4, 1e+05 times what rounding allows"}
    times = {**TIMES, SWEEP["name"]: [None, *TIMES[SWEEP["name"]][1:]]}
    made.hash = made.add(times, QUARTILES, [wrong, *LINES[1:]])
    return made


@pytest.fixture
def unmeasured(project, monkeypatch):
    """The project, with made-up measurements."""
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(pipeline, "run", lambda *_: shown_reports.EVERYTHING)
    monkeypatch.setattr(session, "run", lambda _project, _request, console: shown_reports.told_run(console))
    monkeypatch.setattr(history, "history", lambda *_: shown_reports.history_report())
    monkeypatch.setattr(compare, "compare", lambda *_: shown_reports.comparison())
    monkeypatch.setattr(one_problem, "run", lambda *_: shown_reports.tried())
    monkeypatch.setattr(sys, "argv", ["convbench", *TRY])


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_looks_as_before(project, unmeasured, monkeypatch, name):
    found = shown_reports.not_fit() if name == "doctor-not-fit" else shown_reports.fit()
    monkeypatch.setattr(diagnose, "diagnose", lambda *_: found)
    shown = screens.at_every_width(monkeypatch, *COMMANDS[name])
    screens.require_same(f"screens/{name}.txt", shown.replace(project.hash[:8], "01234567"))


def test_the_help_looks_as_before(monkeypatch):
    pages = [[], *([name] for name in main.list_commands(click.Context(main)))]
    shown = (screens.at_every_width(monkeypatch, *page, "--help").rstrip() for page in pages)
    screens.require_same("screens/help.txt", "\n\n".join(shown) + "\n")


@pytest.mark.parametrize("name", [*COMMANDS, "help"])
@pytest.mark.parametrize("width", screens.WIDTHS)
def test_no_line_is_longer_than_the_terminal(name, width):
    """But for commands, which are copied, and for errors, which click prints."""
    blocks = (screens.GOLDEN / "screens" / f"{name}.txt").read_text(encoding="utf-8").split("=== ")[1:]
    for titles, _, text in (block.partition("\n") for block in blocks):
        if str(width) in titles:
            assert [
                line for line in text.splitlines() if len(line) > width and not line.startswith(("again: ", "Error: "))
            ] == []
