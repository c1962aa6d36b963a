"""Measures which implementation is fastest on which problem; the suite makes that this machine's wisdom."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import click
from rich.console import Console

from convbench.asv.project import Project
from convbench.common import interrupts
from convbench.speed import goals, measure, times_file
from convbench.speed.goals import Goals, Key, Line, Row, Times
from convbench.suite import ask

FOLDER = "tune"  # of the times, in a machine's results

Lines = Mapping[Key, Sequence[Line]]
Found = dict[int, dict[str, dict[str, float]]]  # seconds by number of threads, problem and candidate


def run(project: Project, again: measure.Again, dirty: bool, console: Console) -> list[str]:
    """Measure missing times, and those to repeat, then have the suite remember all; return the lines of a report.

    Raises ClickException in one sentence for everything that prevents it, and when it is interrupted: the
    measurements so far are kept.
    """
    settings = _settings(project)
    asked = {key: settings[key] for key in ("sets", "random", "seed")}
    every = tuple(event["problem"] for event in ask.ask(project, "problems", asked, console))
    baseline, *others = settings["candidates"]
    about = {"seconds": settings["seconds"], "within": settings["within"]}
    row = Row("tune", "", baseline, every, (), baseline=baseline, also=tuple(others), **about)
    file = times_file.find(project, dirty, folder=FOLDER)
    # Every number of threads is finished before the next.
    keys = [(label, count) for count in settings["threads"] for label in every]
    failed = measure.measure_all(project, Goals((row,)), file, keys, again, console)
    said = _remember(project, _times(times_file.read(file.path), settings["threads"], every), console)
    if failed:
        raise click.ClickException(f"{failed} candidates failed and are not timed; see the reasons above; " + "; ".join(said))
    return [*said, f"the times are in {file.path.relative_to(project.root)}"]


def _remember(project: Project, times: Found, console: Console) -> list[str]:
    """Have the suite remember the times, each number of threads by itself; return the lines of a report."""
    said = []
    for count, found in times.items():
        file = project.work / "tune.json"  # more than an argument holds
        file.write_text(json.dumps(found), encoding="utf-8")
        request = {"times": str(file), "threads": count}
        with interrupts.interruptible(lambda: "the measurements are kept, and the same command remembers them"):
            for event in ask.ask(project, "remember", request, console):
                what = f"impls.conv2d now knows {event['problems']} problems on {count} thread{'s' * (count > 1)}"
                said.append(f"{what} of {event['processor']}, {event['instruction_set']}")
    return said


def _settings(project: Project) -> dict[str, Any]:
    path = project.benchmarks / "commands" / "tune.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise click.ClickException(f"this suite has nothing to tune: {'/'.join(path.parts[-3:])} is not there") from None
    except ValueError as error:
        raise click.ClickException(f"{'/'.join(path.parts[-3:])} cannot be read: {error}") from None


def _times(lines: Lines, threads: Sequence[int], every: Sequence[str]) -> Found:
    """Seconds of every implementation with a time, by number of threads and problem.

    Of several processes it is the median of each speed-up over the first candidate; one that was left out of
    one was slower there than any time says.
    """
    times = Times(lines)
    measured = {count: {label: _seconds(times, label, count) for label in every} for count in threads}
    return {count: {label: found for label, found in each.items() if found} for count, each in measured.items()}


def _seconds(times: Times, label: str, threads: int) -> dict[str, float]:
    names = [name for name in times.names(label, threads) if not name.endswith(goals.PACKED)]
    medians = {name: times.result(label, threads, name).median for name in names}
    first = next((name for name in names if not math.isnan(medians[name])), "")
    processes, found = len(times.lines.get((label, threads), ())), {}
    for name in names:
        ratios = times.ratios(label, threads, first, name)
        if ratio := median([*ratios, *[0.0] * (processes - len(ratios))]):
            found[name] = medians[first] / ratio
    return found
