"""Picks what the kernels are compiled for: a build for any machine has each of them once for every level of instructions.

Their files differ by the level, as in `_cython_direct.avx2.cpython-311-x86_64-linux-gnu.so`, and their modules have one name.
The best level of this processor is used, or the one that the environment variable IMPLS_CPU names. A build for one machine
has that level alone.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from pathlib import Path

VARIABLE = "IMPLS_CPU"

try:
    import impls._cython_levels as kernels  # type: ignore[import-not-found]
except ImportError:  # no kernel is compiled
    kernels = None


def available() -> list[str]:
    """The levels that are compiled and that this processor has, from the slowest on."""
    there: list[str] = kernels.compiled() if kernels else []
    if len(there) < 2:
        return there
    return there[: there.index(best) + 1] if (best := kernels.best()) in there else []


def chosen() -> str | None:
    """The level that is used; None where there is none. Raises ValueError where IMPLS_CPU names none that is there."""
    there, asked = available(), os.environ.get(VARIABLE)
    if asked and asked not in there:
        raise ValueError(
            f"{VARIABLE}={asked}: the kernels are not compiled for that, or this processor lacks it; "
            f"unset {VARIABLE}, or set it to one of: {', '.join(there) or '(none is there)'}"
        )
    return asked or (there[-1] if there else None)


class Finder:
    """Finds the kernels of one level where a folder has none for one machine."""

    def __init__(self, level: str) -> None:
        self.ending = f".{level}{EXTENSION_SUFFIXES[0]}"

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        if name.startswith("impls."):
            for folder in path or ():
                file = Path(folder, name.rpartition(".")[2] + self.ending)
                if file.is_file():
                    return importlib.util.spec_from_file_location(name, file)
        return None


if level := chosen():
    sys.meta_path.append(Finder(level))
