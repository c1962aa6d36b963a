"""The limits of this machine, with which every other figure is compared, measured in the same run."""

from __future__ import annotations

from benchmarks.timing import limits, threads


class Ceilings:
    """Copies of growing size and the multiply-add rate, by threads."""

    params = (list(limits.LIMITS), list(threads.COUNTS))
    param_names = ("ceiling", "threads")
    version = "3"

    def setup(self, ceiling, count):
        self.cell = limits.prepare(ceiling, threads.resolve(count))

    def time_ceiling(self, ceiling, count):
        self.cell.call()

    time_ceiling.ceilings = {repr(name): what for name, what in limits.LIMITS.items()}  # type: ignore[attr-defined]
    time_ceiling.quick = [repr(name) for name in limits.LIMITS]  # type: ignore[attr-defined]
