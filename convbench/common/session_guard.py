"""Runs a module in a session of processes that ends with its parent.

python -m convbench.common.session_guard MODULE ARGUMENTS.

asv puts its fork server and every build into process groups of their own, so that killing asv or its group leaves them. But
they all stay in one session, that of the process which `convbench run` started, and a session can be ended as a whole.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import signal
import subprocess
import sys
import threading
import time

import psutil

INTERRUPT_SECONDS = 10  # seconds for an interrupted process to end before its session is killed
KILL_SECONDS = 5  # seconds after which processes that SIGKILL has not ended, since the kernel is busy for them, are left


def watch_parent() -> None:
    """End this process's whole session once the other end of its standard input is closed, as where its parent has ended.

    Standard input is empty from then on, for this process and for those it starts.
    """
    watched = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_watch, args=(watched,), daemon=True).start()


def _watch(watched: int) -> None:
    while os.read(watched, 1):
        pass
    end_session(os.getsid(0))
    os.kill(os.getpid(), signal.SIGKILL)


def end_session(session: int) -> None:
    """Kill every process of a session but the calling one, and those that they start meanwhile."""
    give_up = time.monotonic() + KILL_SECONDS
    while (living := _members(session)) and time.monotonic() < give_up:
        for number in living:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.01)


def _members(session: int) -> list[int]:
    """The processes of a session, without the calling one and without zombies."""
    found = []
    for number in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            mine = os.getsid(number) == session and number != os.getpid()
            if mine and psutil.Process(number).status() != psutil.STATUS_ZOMBIE:
                found.append(number)
    return found


def end(process: subprocess.Popen) -> None:
    """End a process that leads a session of its own, and every process in that; on Windows, without sessions, it alone."""
    sessions = hasattr(os, "setsid")
    try:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT) if sessions else process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(INTERRUPT_SECONDS)
    finally:  # also where a second Ctrl-C interrupts the wait
        end_session(process.pid) if sessions else process.kill()
        process.wait()
        if process.stdin:
            process.stdin.close()


if __name__ == "__main__":
    watch_parent()  # first of all, so that the parent is watched from the start
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
