"""The cost of a cell beside the calls it times: `make overhead`, after a run.

Reads the newest side file: from the end of one cell to the end of the next, less the seconds spent in calls (asv's warm-up
is calls). That is everything else: asv's fork and bookkeeping, inputs, checks, thread pools, the process's end. Of each cell
the last round counts, whose reference is on disk.
"""

import itertools
import statistics
import sys

from convbench.asv import project
from convbench.stored import results, side_lines


def main():
    files = results.result_files(project.find().results)
    lines = list(side_lines.json_lines(side_lines.path(files[-1]))) if files else []
    cost = {}
    for before, line in itertools.pairwise(lines):
        if before["benchmark"] == line["benchmark"]:  # between two of them asv starts anew
            name = (line["benchmark"], tuple(line["params"]))
            cost[name] = line["ended"] - before["ended"] - line.get("called", 0.0), line["status"]
    timed = {name: seconds for name, (seconds, status) in cost.items() if status == "ok"}
    if not timed:
        sys.exit("no side file with timed cells; measure with `convbench run` first")
    classes = {}
    for (benchmark, params), seconds in timed.items():
        classes.setdefault(benchmark.split(".")[-2], []).append((seconds, params))
    print(f"{'class':12} cells  median  largest  above 0.1 s   seconds outside calls")
    for name, costs in classes.items():
        seconds = [cost for cost, _ in costs]
        above = sum(cost > 0.1 for cost in seconds)
        largest, params = max(costs)
        print(f"{name:12} {len(costs):5} {statistics.median(seconds):7.3f} {largest:8.3f} {above:12}   {', '.join(params)}")


if __name__ == "__main__":
    main()
