"""The progress shown while work goes on."""

import io
import time

from convbench.common import progress, terminal


def told(monkeypatch, is_terminal):
    """The output of two kinds of work, and of the time after them."""
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.05)
    out = io.StringIO()
    console = terminal.SafeConsole(file=out, force_terminal=is_terminal, width=80)
    with progress.told(console, "building [/x]", total=2) as update:
        time.sleep(0.2)
        update(description="listing", completed=1)
        time.sleep(0.2)
    printed = out.getvalue()
    time.sleep(0.2)
    assert out.getvalue() == printed
    return printed


def test_where_the_output_is_no_terminal_a_line_comes_now_and_then(monkeypatch):
    lines = told(monkeypatch, False).splitlines()
    assert {line.rpartition(",")[0] for line in lines} == {"building [/x]", "listing"}
    assert all(line.endswith(" s") for line in lines)


def test_a_terminal_has_a_bar(monkeypatch):
    printed = told(monkeypatch, True)
    assert "building [/x]" in printed
    assert "listing" in printed
    assert ", 0 s" not in printed
