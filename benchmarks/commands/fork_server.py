"""Answers questions one after the other, each in a fork of a process that has loaded the libraries.

What one question leaves behind, in memory, pools or caches, meets no other; and it does not wait for torch and Numba to be
imported, which takes longer than most answers. A process that has only imported them can be forked; one that has called
them, or CUDA, cannot.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.harness import cell
from benchmarks.timing import threads

PR_SET_PDEATHSIG = 1  # sys/prctl.h


def serve(answer: Callable[[dict[str, Any]], Iterator[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield the events of an answer to each line of standard input, a JSON object, and then {"ended": exit status}.

    A negative status is the signal that ended the process. Questions have operation, names and threads; as many threads for
    all of them, since a library makes its pool for the cores that it finds.
    """
    end_with_parent()
    for line in iter(sys.stdin.readline, ""):
        question = json.loads(line)
        threads.confine(question["threads"])
        _load(question)
        sys.stderr.flush()
        if not (child := os.fork()):
            end_with_parent()
            yield from answer(question)
            sys.stderr.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        yield {"ended": os.waitstatus_to_exitcode(status)}


def end_with_parent() -> None:
    """Have the kernel end this process when the one that started it is gone: its calls may have no end of their own."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _load(question: dict[str, Any]) -> None:
    """Import the implementations for the CPU, and torch and OpenCV as such; whatever prevents it the answer will say."""
    known = cell.declarations(question["operation"])
    for name in question["names"]:
        with contextlib.suppress(Exception):
            if known.get(name, {}).get("device") == "cpu":
                cell.load(name, question["operation"])
            elif name in ("torch", "opencv"):
                __import__({"opencv": "cv2"}.get(name, name))
