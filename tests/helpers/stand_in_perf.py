"""A stand-in for perf: it follows commands, and ends with a report that a test gave it."""

import sys
from pathlib import Path

SCRIPT = """#!{python} -S
import os, signal, sys
words = sys.argv
report, control = words[words.index("--output") + 1], words[words.index("--control") + 1]
orders, answers = map(int, control.removeprefix("fd:").split(","))
assert "--delay=-1" in words  # or it would count before it is told to
heard = []
def end(*_):
    open(report, "w").write({report!r})
    open({heard!r}, "wb").write(b"".join(heard))
    os._exit(0)
signal.signal(signal.SIGINT, end)
while order := os.read(orders, 64):
    heard.append(order)
    os.write(answers, b"ack\\n\\0")
"""


def install(folder: Path, report: str = "", instead: str = "") -> Path:
    """Put it into a folder, or a shell script `instead`; return the file in which it leaves the orders that it got."""
    heard = folder / "heard"
    script = f"#!/bin/sh\n{instead}\n" if instead else SCRIPT.format(python=sys.executable, report=report, heard=str(heard))
    (folder / "perf").write_text(script)
    (folder / "perf").chmod(0o755)
    return heard
