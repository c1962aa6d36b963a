"""Counts cycles, instructions and cache misses during calls in this process, by Linux's perf."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

# In user space alone, which Linux allows each user by default. Few, since a processor counts four to eight at a time.
EVENTS = (
    *("task-clock", "page-faults", "cycles", "instructions", "branches", "branch-misses"),
    *("L1-dcache-loads", "L1-dcache-load-misses", "cache-references", "cache-misses", "dTLB-load-misses"),
)
ACKNOWLEDGED = 5  # bytes of perf's answer to a command
REFUSED = (
    "perf may not count here: run as root, or in a container started with --cap-add PERFMON, "
    "or let it count: sysctl kernel.perf_event_paranoid=2"
)


def count(work: Callable[[], int], report: Path) -> int:
    """Return the result of `work`; perf counts while it runs, in all threads of this process, and writes its report.

    The report has a line an event: value, unit, name, nanoseconds counted, percent of the time counted, ..., separated by
    semicolons. Needs perf 5.10 or later. Raises ValueError in one sentence where perf is refused or ends before its time.
    """
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context(tempfile.TemporaryFile("w+", errors="replace"))
        its_orders, orders = _pipe(stack)
        answers, its_answers = _pipe(stack)
        inherited = (its_orders.fileno(), its_answers.fileno())
        command = ["perf", "stat", "--field-separator", ";", "--output", str(report), "--pid", str(os.getpid())]
        command += ["--event", ",".join(f"{event}:u" for event in EVENTS)]
        command += ["--delay=-1", "--control", "fd:{},{}".format(*inherited)]  # counting starts on command
        language = {**os.environ, "LC_ALL": "C"}  # in some locales the decimal point is a comma
        perf = subprocess.Popen(command, pass_fds=inherited, stdout=errors, stderr=errors, env=language)
        stack.callback(perf.wait)
        stack.callback(perf.send_signal, signal.SIGINT)  # it writes its report and ends
        its_orders.close()
        its_answers.close()  # so that reading ends when perf ends

        def tell(order: bytes) -> None:
            with contextlib.suppress(BrokenPipeError):
                orders.write(order)
            if not answers.read(ACKNOWLEDGED):
                status = perf.wait()
                errors.seek(0)
                raise ValueError(_cause(status, errors.read()))

        tell(b"enable\n")
        done = work()
        tell(b"disable\n")
    return done


def _pipe(stack: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    """The two ends of a pipe: for reading, for writing."""
    read, write = os.pipe()
    return stack.enter_context(os.fdopen(read, "rb", buffering=0)), stack.enter_context(os.fdopen(write, "wb", buffering=0))


def _cause(status: int, text: str) -> str:
    """Why perf ended, in one sentence."""
    if re.search("permission|not permitted|access to performance", text, re.IGNORECASE):
        return REFUSED
    lines = [line.strip() for line in text.splitlines() if line.strip(" :").lower() not in ("", "error")]
    cause = next((line for line in lines if "error" in line.lower()), (lines or ["it printed nothing"])[0])
    return f"perf ended with status {status}: {cause}"
