"""Whether base and head return the same array."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Answer(NamedTuple):
    """An array that a benchmark returned, in a file as it lies in memory. format: of its elements, as memoryview has it."""

    format: str
    shape: list[int]
    file: Path

    def read(self) -> np.ndarray:
        """The array. Raises TypeError, ValueError or OSError if NumPy does not have the format or the file is cut."""
        return np.fromfile(self.file, np.dtype(self.format)).reshape(self.shape)


def compare(answers: Mapping[str, Answer]) -> str | None:
    """Say whether base and head returned the same array, None if one returned none."""
    if len(answers) < 2:
        return None
    try:
        base, head = answers["base"].read(), answers["head"].read()
    except (TypeError, ValueError, OSError):
        return None
    if base.shape != head.shape or base.dtype != head.dtype:
        return f"changed: {base.dtype}{list(base.shape)} became {head.dtype}{list(head.shape)}"
    if base.tobytes() == head.tobytes():
        return "same"
    with np.errstate(all="ignore"):
        finite = np.isfinite(base) & np.isfinite(head)
        if not np.array_equal(base[~finite], head[~finite], equal_nan=base.dtype.kind in "fc"):
            return "changed: NaN or infinite where it was not, or no longer"
        largest = float(np.abs(base[finite]).max(initial=0)) or 1.0
        difference = float(np.abs(head[finite].astype(complex) - base[finite]).max(initial=0))
    return f"changed: by at most {difference / largest:.1e} of the largest value" if difference else "same"
