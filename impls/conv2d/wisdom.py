"""Wisdom: what was measured on this machine, in a file of the user's cache. impls.conv2d alone asks it, no benchmark does.

One file for each processor, instruction set and version: {problem and threads: {implementation: seconds}}. It is data that
another may have written: it is read only if it is this user's alone, and can but choose among implementations.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.metadata
import json
import math
import os
import stat
import warnings
from collections.abc import Mapping
from pathlib import Path

from impls import private_cache
from impls.contract import Unavailable
from impls.conv2d import measurements, rules
from impls.conv2d.measurements import Problem

Times = dict[str, dict[str, float]]
MAX_BYTES = 1 << 24  # of a file that is read: some 50,000 problems

_here: dict[Path, Times] = {}  # what this process knows: the file, read once, and what was measured since


def times(problem: Problem, threads: int, instructions: str | None) -> dict[str, float]:
    """The seconds that implementations took for a problem with so many threads, the fastest first; {} if not measured."""
    found = _known(_path(instructions)).get(_key(problem, threads), {})
    return dict(sorted(found.items(), key=lambda one: one[1]))


def remember(measured: Mapping[tuple[Problem, int], Mapping[str, float]], instructions: str | None) -> None:
    """Keep seconds by problem and threads, and by implementation: here and, if the cache can be written to, in the file."""
    path = _path(instructions)
    new = {_key(*key): dict(found) for key, found in measured.items()}
    _known(path).update(new)
    try:
        private_cache.folder(path.parent.name)
        with path.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # what other processes measured is kept
            beside = path.with_suffix(".new")
            beside.write_text(json.dumps({**_checked(path)[0], **new}), encoding="utf-8")
            beside.replace(path)
    except (OSError, Unavailable) as error:
        warnings.warn(f"measurements are kept in this process alone: {error}", RuntimeWarning, stacklevel=3)


def _known(path: Path) -> Times:
    if path not in _here:
        _here[path], fault = _checked(path)
        if fault:
            warnings.warn(f"{path} is ignored: {fault}; it is replaced by the next measurement", RuntimeWarning, stacklevel=2)
    return _here[path]


def _checked(path: Path) -> tuple[Times, str]:
    """The file's content, and what is wrong with one that is not to be trusted, which counts as empty."""
    try:
        return _read(path), ""
    except (OSError, ValueError, RecursionError, Unavailable) as error:
        return {}, str(error)


def _read(path: Path) -> Times:
    if not os.path.lexists(path):
        return {}
    private_cache.folder(path.parent.name)
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), encoding="utf-8") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_size > MAX_BYTES:
            raise ValueError("it is no file of this user's, or too large")
        content = json.load(file)
    if not isinstance(content, dict) or not all(map(_sound, content.values())):
        raise ValueError("it does not hold measurements")
    return content


def _sound(found: object) -> bool:
    return isinstance(found, dict) and all(
        name in rules.NAMES and isinstance(seconds, float) and 0 < seconds < math.inf for name, seconds in found.items()
    )


@functools.cache
def _path(instructions: str | None) -> Path:
    try:
        version = importlib.metadata.version("convbench-impls")
    except importlib.metadata.PackageNotFoundError:  # a checkout that is not installed
        version = "unknown"
    machine = hashlib.sha256(json.dumps([measurements.processor(), instructions, version]).encode()).hexdigest()[:16]
    return private_cache.place("wisdom") / f"{machine}.json"


def _key(problem: Problem, threads: int) -> str:
    return f"{problem}, {problem.padding}, {threads}"
