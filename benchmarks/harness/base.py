"""The base class of all operations' benchmarks: cells of implementations and problems, prepared, checked and described."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping

from benchmarks.harness import cell
from benchmarks.workloads.problems import Problem


def named(*labels: str) -> dict[str, Problem]:
    """Problems by their labels."""
    return {label: Problem.parse(label) for label in labels}


def _call(self, *params):
    self.cell.call()


class _Cells:
    """One implementation and one problem a cell, of one operation.

    The implementation is the first parameter, so that asv's pages overlay them. A class names its second parameter, `axis`,
    and gives the problem for each of its values; `quick` are the values that a short run measures; `baseline` is what all
    are compared with, the operation's where a class names none. What readers of results need travels as attributes of its
    function: asv copies those of functions, not of classes, into benchmarks.json, so every class has a copy of its own.
    """

    operation = "conv2d"
    timeout = 60
    axis = "problem"
    problems: Mapping = types.MappingProxyType({})
    quick: tuple = ()
    baseline: str | None = None
    device: str | None = None
    params: tuple
    param_names: tuple
    version = "1"  # asv drops a class's old results when it changes: raise it when what a cell means changes
    further: Mapping = types.MappingProxyType({})  # parameters after the second: name to values
    unit = "seconds"
    rated = True  # whether the figure is the time of one call, so that a rate and a percentage of the limit make sense

    def __init_subclass__(cls, name: str | None = None, function: Callable = _call) -> None:
        name = name or f"time_{cls.operation}"
        cls.params = (cell.implementations(cls.operation), list(cls.problems), *map(list, cls.further.values()))
        cls.param_names = ("implementation", cls.axis, *cls.further)
        described = {repr(value): cell.task(cls.operation, problem).describe() for value, problem in cls.problems.items()}
        if not cls.rated:
            described = {value: {"label": problem["label"]} for value, problem in described.items()}
        own = types.FunctionType(function.__code__, function.__globals__, name)
        own.problems = described  # type: ignore[attr-defined]
        own.axis = cls.axis  # type: ignore[attr-defined]
        own.quick = [repr(value) for value in cls.quick]  # type: ignore[attr-defined]
        own.implementations = cell.declarations(cls.operation)  # type: ignore[attr-defined]
        own.baseline = cls.baseline or cell.kind(cls.operation).baseline  # type: ignore[attr-defined]
        if cls.device:  # nothing of the class can be measured without it
            own.device = cls.device  # type: ignore[attr-defined]
        setattr(cls, name, own)

    def setup(self, implementation, value, *further):
        self.cell = cell.prepare(implementation, self.problems[value], operation=self.operation)
