"""Names code that was compiled at run time, for which a profiler has no file of symbols."""

from __future__ import annotations

import itertools
import os
import re
import stat
import sys
from pathlib import Path

Code = tuple[int, int, str]  # where it starts and ends, and a name with its place, as py-spy writes them


def announce() -> None:
    """Have oneDNN, which torch computes with, list its kernels where Linux's perf looks for such lists; before it starts.

    Not where another user has taken the list's name: oneDNN would write through a link, and the list be read as ours.
    """
    path = _list()
    if is_own(path):
        path.unlink()  # of an earlier process of this number
    try:
        path.touch(mode=0o600, exist_ok=False)
    except OSError:
        os.environ.pop("ONEDNN_JIT_PROFILE", None)
    else:
        os.environ.setdefault("ONEDNN_JIT_PROFILE", "2")


def _list() -> Path:
    return Path(f"/tmp/perf-{os.getpid()}.map")


def is_own(path: Path) -> bool:
    """Whether there is a file of this name, and this user's."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def compiled() -> list[Code]:
    """All code compiled at run time in this process that has a name."""
    return sorted(_numba() + _listed(_list()))


def _listed(path: Path) -> list[Code]:
    """A list for perf: start and size in hexadecimal, and a name, a line each; nothing if it is not this user's."""
    if not is_own(path):
        return []
    fields = [line.split(maxsplit=2) for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
    starts = [(int(start, 16), int(size, 16), name) for start, size, name in fields]
    return [(start, start + size, f"{name} (compiled at run time)") for start, size, name in starts]


def _numba() -> list[Code]:
    """Numba gives only the start of a function: its end is taken to be the next start, or the end of its memory.

    Nothing where Numba is not in use or is no longer built this way inside; addresses then stay without names.
    """
    if "numba" not in sys.modules:
        return []
    from numba.core.registry import cpu_target

    try:
        engine = cpu_target.target_context.codegen()._engine
        starts = sorted((engine.get_function_address(symbol), symbol) for symbol in engine._defined_symbols)
        maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except (AttributeError, OSError):
        return []
    found = []
    for fields in map(str.split, maps):
        if "x" in fields[1] and len(fields) == 5:  # executable, without a file
            low, high = (int(bound, 16) for bound in fields[0].split("-"))
            here = [(start, symbol) for start, symbol in starts if low <= start < high]
            pairs = itertools.pairwise([*here, (high, "")])
            found += [(start, end, _spell(symbol)) for (start, symbol), (end, _) in pairs]
    return found


def _spell(symbol: str) -> str:
    """A symbol of Numba's as name and place: _ZN5impls6conv2d5_sumsB2v1... is _sums (impls.conv2d, by Numba).

    Symbols are C++'s: after _ZN each part of the name behind its length, then what tells overloads apart.
    """
    parts, rest = [], symbol.partition("_ZN")[2]
    while match := re.match(r"\d+", rest):
        end = match.end() + int(match[0])
        parts.append(rest[match.end() : end])
        rest = rest[end:]
    if not parts:
        return f"{symbol} (by Numba)"
    if "parfor" in parts[-1]:  # made of a loop over prange, and numbered by an address
        return "parallel loop (by Numba)"
    wrapper = parts[0] == "cpython" or not symbol.startswith("_ZN")
    place = ".".join(parts[parts[0] == "cpython" : -1])
    return f"{'wrapper of ' if wrapper else ''}{parts[-1]} ({place}, by Numba)"
