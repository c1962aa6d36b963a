"""The changes between commits, from asv's step detection, which `asv publish` has run before."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from convbench.common import numbers
from convbench.common.cells import spelling

MIN_COMMITS = 2  # commits on either side of a change: a step between two single ones may be noise
MAX_CHANGES = 500  # changes on the page, the largest first; asv's own page lists all regressions


def changes(benchmarks: Mapping[str, dict[str, Any]], graphs: Any, commits: Mapping[int, str]) -> dict[str, Any]:
    """Every step in every series, the largest first: {"rows": [...], "left_out": how many more there are}.

    graphs: asv's GraphSet. commits: a commit's hash by asv's number for it.
    """
    several = {name for name, values in graphs.get_params().items() if len(values) > 1}
    rows = []
    for _, graph in graphs:
        benchmark = benchmarks.get(graph.benchmark_name)
        if not benchmark or "summary" in graph.params:
            continue
        cells = list(itertools.product(*benchmark["params"])) or [()]
        series = [graph.get_steps()] if graph.scalar_series else graph.get_steps()
        data = graph.get_data()
        where = {name: value for name, value in graph.params.items() if name in several and value}
        for i, (params, steps) in enumerate(zip(cells, series, strict=False)):
            values = {revision: value if graph.scalar_series else value[i] for revision, value, _ in data}
            measured = [revision for revision, value in values.items() if value is not None and not math.isnan(value)]
            rows += [_row(benchmark, params, pair, commits, where) for pair in _pairs(steps, measured)]
    rows.sort(key=lambda row: abs(math.log(row["ratio"])), reverse=True)
    return {"rows": rows[:MAX_CHANGES], "left_out": max(0, len(rows) - MAX_CHANGES)}


def _pairs(steps: Iterable[tuple], measured: Sequence[int]) -> Iterable[tuple[tuple, tuple]]:
    """Neighbouring pieces of a series that have a ratio, and MIN_COMMITS commits each."""
    for before, after in itertools.pairwise(steps):
        fewest = min(sum(left <= revision < right for revision in measured) for left, right, *_ in (before, after))
        if fewest >= MIN_COMMITS and before[2] > 0 and after[2] > 0 and 0 < after[2] / before[2] < math.inf:
            yield before, after


def _row(
    benchmark: dict, params: tuple, pair: tuple[tuple, tuple], commits: Mapping[int, str], where: dict
) -> dict[str, Any]:
    (_, end, before, _, _), (start, _, after, _, _) = pair
    last, first = commits[end - 1], commits[start]
    named = {f"p-{name}": value for name, value in zip(benchmark["param_names"], params, strict=False)}
    query = urlencode({**where, **named, "commits": f"{last}-{first}"})
    unit = benchmark.get("unit", "")
    return {
        "cell": spelling((benchmark["name"], params)),
        "machine": where.get("machine", ""),
        "before": numbers.quantity(before, unit),
        "after": numbers.quantity(after, unit),
        "ratio": after / before,
        "ratio_text": numbers.ratio(after / before),
        "commits": f"{last[:8]} to {first[:8]}",
        "link": f"index.html#{quote(benchmark['name'], safe='')}?{query}",
    }
