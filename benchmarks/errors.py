"""The errors of the suite that mean the same in all its packages."""

from __future__ import annotations

from asv_runner.benchmarks.mark import SkipNotImplemented


class Skip(SkipNotImplemented):
    """This cell is not timed, for a reason that is not a failure; the text is the reason."""


class WrongAnswer(AssertionError):
    """An output differs from the reference by more than its algorithm's rounding can explain."""


class Missing(ImportError):
    """A library or data set that an input needs is not installed; the text says what to install."""
