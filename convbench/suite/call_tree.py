"""A deterministic profile as an indented tree: calls, own and cumulative time from each caller, every subtree once.

A profile of this kind knows callers and callees, and no further: what a function cost is known for each of its callers, what
its callees cost is known over all its calls. So a line has the numbers of the calls from the function above it, and the lines
below a function stand where it comes first, for all its calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from convbench.common import numbers

Function = tuple[str, int, str]  # file, line and name, as pstats has them

BUILT_IN = "~"  # the file of functions that have none
MIN_SHARE = 0.005  # of the whole; branches below it are folded into one line
TITLES = ("calls", "own", "cumulative", "share", "function")
LEGEND = {
    "*": "* is called from several places: its line counts the calls from here, the lines below it all of them",
    "[above]": "[above]: its callees are listed at its first occurrence",
    "[recursion]": "[recursion]: the function is one of its own callers",
}


@dataclass(frozen=True)
class Cost:
    """Calls, and the seconds they took in the function itself and together with all that it calls."""

    calls: int
    own: float
    cumulative: float


@dataclass(frozen=True)
class Graph:
    """Callers and their callees, {caller: {callee: cost of its calls from there}}; the caller None is outside."""

    callees: Mapping[Function | None, Mapping[Function, Cost]]
    whole: float

    def several_callers(self, function: Function) -> bool:
        """Whether a function is called from more than one place."""
        return sum(function in callees for callees in self.callees.values()) > 1


@dataclass(frozen=True)
class Line:
    """One line of the tree; mark is a key of LEGEND, or nothing."""

    cost: Cost
    depth: int
    text: str
    mark: str = ""


def read(stats: Mapping[Function, tuple[Any, ...]]) -> Graph:
    """The call graph in pstats's form: {function: (_, calls, own, cumulative, {caller: (calls, _, own, cumulative)})}."""
    callees: dict[Function | None, dict[Function, Cost]] = {}
    for function, (*_, callers) in stats.items():
        for caller, (calls, _, own, cumulative) in callers.items():
            callees.setdefault(caller, {})[function] = Cost(calls, own, cumulative)
    for function, (_, calls, own, cumulative, callers) in stats.items():
        if (calls := calls - sum(each[0] for each in callers.values())) > 0:
            own -= sum(each[2] for each in callers.values())
            # The time of a call within a call of the same function is not counted again.
            inside = _reach(callees, function)
            cumulative -= sum(each[3] for caller, each in callers.items() if caller not in inside)
            callees.setdefault(None, {})[function] = Cost(calls, max(0.0, own), max(0.0, cumulative))
    return Graph(callees, sum(own for _, _, own, *_ in stats.values()))


def _reach(callees: Mapping[Function | None, Mapping[Function, Cost]], function: Function) -> set[Function]:
    """The function and all that it calls, however indirectly."""
    found, todo = {function}, [function]
    while todo:
        new = callees.get(todo.pop(), {}).keys() - found
        found |= new
        todo += new
    return found


def lines(graph: Graph) -> Iterator[Line]:
    """The lines of the tree, the most expensive first; cheap branches are folded into one line."""
    yield from _below(graph, None, (), set())


def _below(graph: Graph, caller: Function | None, path: tuple[Function, ...], seen: set[Function]) -> Iterator[Line]:
    ranked = sorted(graph.callees.get(caller, {}).items(), key=lambda item: (-item[1].cumulative, item[0]))
    dear = [item for item in ranked if item[1].cumulative >= MIN_SHARE * graph.whole]
    for function, cost in dear:
        calls_others = function in graph.callees
        mark = ""
        if calls_others and function in path:
            mark = "[recursion]"
        elif calls_others and function in seen:
            mark = "[above]"
        elif calls_others and graph.several_callers(function):
            mark = "*"
        yield Line(cost, len(path), spell(function), mark)
        if calls_others and function not in seen:
            seen.add(function)
            yield from _below(graph, function, (*path, function), seen)
    if cheap := [cost for _, cost in ranked[len(dear) :]]:
        yield Line(_total(cheap), len(path), f"... {len(cheap)} more")


def _total(costs: Iterable[Cost]) -> Cost:
    columns = zip(*((cost.calls, cost.own, cost.cumulative) for cost in costs), strict=True)
    return Cost(*map(sum, columns))


def spell(function: Function) -> str:
    """The readable name of a function, with its file and line if it has one."""
    file, line, name = function
    return name.strip("<>") if file == BUILT_IN else f"{name} ({file}:{line})"


def _cells(line: Line, whole: float) -> tuple[str, ...]:
    own, cumulative = (numbers.quantity(seconds, "seconds") for seconds in (line.cost.own, line.cost.cumulative))
    share = numbers.percent(line.cost.cumulative / whole if whole else 0.0)
    return f"{line.cost.calls:,}", own, cumulative, share, f"{'  ' * line.depth}{line.text} {line.mark}".rstrip()


def render(stats: Mapping[Function, tuple[Any, ...]]) -> str:
    """The tree as text, a line a function, with a legend of the marks that are in it."""
    graph = read(stats)
    found = list(lines(graph))
    rows = [TITLES, *(_cells(line, graph.whole) for line in found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = ["  ".join([*map(str.rjust, row[:-1], widths), row[-1]]) for row in rows]
    marks = {line.mark for line in found}
    legend = [words for mark, words in LEGEND.items() if mark in marks]
    return "\n".join([*text, *([""] if legend else []), *legend])
