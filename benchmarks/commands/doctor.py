"""Lists what the measured environment has and lacks, for `convbench doctor`: implementations, libraries, thread pools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.harness import cell, side_file
from benchmarks.timing import threads


def run() -> Iterator[dict[str, Any]]:
    """Yield events: {"preparing": name} and {"implementation", "operation", "lacks"} for each, then "instructions",
    "versions" and "pools".

    lacks: None, or in words what keeps it from running here. instructions: of the compiled kernels; None without any.
    """
    import impls  # imported here, because asv imports every file of the suite, also with a commit that has no impls
    from impls.conv2d import choice

    for operation in cell.TASKS:
        for name in impls.names(operation):
            yield {"preparing": name}
            lacks = None
            try:
                impls.load(name, operation)
            except impls.Unavailable as error:
                lacks = str(error)
            yield {"implementation": name, "operation": operation, "lacks": lacks}
    yield {"instructions": choice.instruction_set()}
    yield {"versions": side_file.versions()}
    yield {"pools": threads.pools()}
