"""A deterministic profile as a table, a line for each function with the cost of all its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from convbench.common import numbers
from convbench.suite import call_tree
from convbench.suite.call_tree import Function

TITLES = ("calls", "primitive", "own", "per call", "cumulative", "per call", "function")
Costs = tuple[int, int, float, float]  # primitive calls, calls, and the seconds of all: own and cumulative
ORDERS: dict[str, Callable[[Costs], float]] = {
    "own": lambda costs: costs[2],
    "cumulative": lambda costs: costs[3],
    "calls": lambda costs: costs[1],
}


def render(stats: Mapping[Function, tuple[Any, ...]], order: str) -> str:
    """The table as text, the largest first, under a line with the sums.

    stats: in pstats's form, {function: (primitive calls, calls, own, cumulative, callers)}. order: a key of ORDERS. A call is
    primitive where the function was not running already; cumulative time is theirs, own time that of all calls.
    """
    costs: dict[Function, Costs] = {function: each[:4] for function, each in stats.items()}
    ranked = sorted(costs, key=lambda function: (-ORDERS[order](costs[function]), function))
    rows = [TITLES, *((*_cells(costs[function]), call_tree.spell(function)) for function in ranked)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = ["  ".join([*map(str.rjust, row[:-1], widths), row[-1]]) for row in rows]
    primitive, calls, own = (sum(each[column] for each in costs.values()) for column in range(3))
    total = (
        f"{numbers.many(int(calls), 'function call')}, {primitive:,} of them primitive, in {numbers.quantity(own, 'seconds')}"
    )
    return "\n".join([total, "", *text])


def _cells(costs: Costs) -> tuple[str, ...]:
    primitive, calls, own, cumulative = costs
    seconds = own, own / calls, cumulative, cumulative / max(primitive, 1)
    return f"{calls:,}", f"{primitive:,}", *(numbers.quantity(each, "seconds") for each in seconds)
