"""Measures which implementation is fastest on which problem; the suite writes the table that cpu.auto picks from."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import click
from rich.console import Console

from convbench.asv.project import Project
from convbench.common import interrupts
from convbench.speed import goals, measure, times_file
from convbench.speed.goals import Goals, Key, Line, Row, Times
from convbench.speed.times_file import TimesFile
from convbench.suite import ask

Lines = Mapping[Key, Sequence[Line]]
Found = dict[int, dict[str, dict[str, float]]]  # seconds by number of threads, problem and candidate


def run(project: Project, again: measure.Again, dirty: bool, console: Console) -> list[str]:
    """Measure missing times, and those to repeat, then write the table; return the lines of a report.

    A result that all other problems contradict is measured in two more processes.
    Raises ClickException in one sentence for everything that prevents it, and when it is interrupted: the
    measurements so far are kept.
    """
    settings = _settings(project)
    asked = {key: settings[key] for key in ("sets", "random", "seed", "problems")}
    every = tuple(event["problem"] for event in ask.ask(project, "problems", asked, console))
    baseline, *others = settings["candidates"]
    about = {"seconds": settings["seconds"], "within": settings["within"]}
    row = Row("tune", "", baseline, every, (), baseline=baseline, also=tuple(others), **about)
    known = Goals((row,))
    # The table itself decides none of the times it is made of.
    file = times_file.find(project, dirty, (*times_file.CODE, f":!{settings['table']}"), "tune")
    # Every number of threads is finished before the next.
    keys = [(label, count) for count in settings["threads"] for label in every]
    failed = measure.measure_all(project, known, file, keys, again, console)
    # One process alone is not trusted if all similar problems contradict it.
    first = {key: lines[:1] for key, lines in times_file.read(file.path).items()}
    outliers = _outliers(project, _times(first, settings["threads"], every), console)
    if outliers:
        what = f"on {len(outliers)} of {len(first)} measurements the pick without them is over 10 % slower than the fastest"
        console.print(f"{what}: they are made in {goals.SEVERAL} processes")
        for process in range(2, goals.SEVERAL + 1):
            failed += measure.measure_all(project, known, file, outliers, again, console, process)
    lines = {key: several if key in outliers else several[:1] for key, several in times_file.read(file.path).items()}
    said = _write(project, file, lines, _times(lines, settings["threads"], every), console)
    if failed:
        raise click.ClickException(f"{failed} candidates failed and are not timed; see the reasons above; " + "; ".join(said))
    return said


def _outliers(project: Project, times: Found, console: Console) -> list[Key]:
    """The measurements that are not settled by one process."""
    return [
        (event["problem"], count)
        for count, found in times.items()
        if found
        for event in _ask(project, "outliers", found, {}, console)
    ]


def _write(project: Project, file: TimesFile, lines: Lines, times: Found, console: Console) -> list[str]:
    """Write the table, each number of threads by itself; return the lines of a report."""
    said = []
    for count, found in times.items():
        if not found:
            said.append(f"{count} threads: nothing was measured; the table is unchanged")
            continue
        date = max(lines[label, count][-1]["date"] for label in found)[:10]
        about = {"threads": count, "machine": file.machine, "commit": file.code.removeprefix("commit "), "date": date}
        for event in _ask(project, "write_choice", found, about, console):
            what = f"{event['table']}, {count} thread{'s' * (count > 1)}: {event['problems']} problems"
            said.append(f"{what}; leave-one-out: {event['near']:.0%} of the picks are within 10 % of the fastest")
            for rule, (of, slower, much) in sorted(event["rules"].items()):
                said.append(f"  by rule, {rule}: cpu.torch is faster on {slower} of {of}, by more than 10 % on {much}")
    return said


def _ask(
    project: Project, verb: str, found: Mapping[str, Any], about: Mapping[str, Any], console: Console
) -> Iterator[dict[str, Any]]:
    """Ask the suite about the times of one number of threads."""
    file = project.work / "tune.json"  # more than an argument holds
    file.write_text(json.dumps(found), encoding="utf-8")
    with interrupts.interruptible(lambda: "the measurements are kept, and the same command writes the table"):
        yield from ask.ask(project, verb, {"times": str(file), **about}, console)


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
