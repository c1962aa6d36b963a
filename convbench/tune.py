"""Measures who is fastest on which problem, and has the suite write the table that cpu.auto picks from."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console

from convbench import goals, measure, speed, suite
from convbench.goals import Goals, Key, Line, Row, Times
from convbench.project import Project

Lines = Mapping[Key, Sequence[Line]]


def run(project: Project, again: speed.Again, dirty: bool, console: Console) -> list[str]:
    """Measure what is not there yet, or is to be again, then write the table; return what to say of it.

    Raises ClickException in one sentence for everything that prevents it, and when it is interrupted: what was measured by
    then is kept.
    """
    settings = _settings(project)
    asked = {key: settings[key] for key in ("sets", "random", "seed")}
    every = tuple(event["problem"] for event in suite.ask(project, "problems", asked, console))
    baseline, *others = settings["contenders"]
    about = {"seconds": settings["seconds"], "within": settings["within"]}
    row = Row("tune", "", baseline, every, (), baseline=baseline, also=tuple(others), **about)
    known = Goals((row,))
    # The table itself decides none of the times it is made of.
    store = speed.find_store(project, dirty, (*speed.CODE, f":!{settings['table']}"), "tune")
    # Every number of threads is finished before the next.
    keys = [(label, count) for count in settings["threads"] for label in every]
    failed = speed.measure_all(project, known, store, keys, again, console)
    first = {key: lines[:1] for key, lines in speed.read(store.path).items()}
    said, far = _write(project, store, settings, every, first, console)
    if far:
        what = f"on {len(far)} of {len(first)} measurements all others would pick one over 10 % slower than the fastest"
        console.print(f"{what}: they are made in {goals.SEVERAL} processes")
        for process in range(2, goals.SEVERAL + 1):
            failed += speed.measure_all(project, known, store, far, again, console, process)
        said, _ = _write(project, store, settings, every, speed.read(store.path), console)
    if failed:
        raise click.ClickException(
            f"{failed} contenders failed and have no time; the reasons stand above; " + "; ".join(said)
        )
    return said


def _write(
    project: Project, store: speed.Store, settings: dict[str, Any], every: Sequence[str], lines: Lines, console: Console
) -> tuple[list[str], list[Key]]:
    """Have the table written, each number of threads by itself; return what to say, and what all others pick badly for."""
    times, said, far = Times(lines), [], []
    for count in settings["threads"]:
        found = {label: measured for label in every if (measured := _times(times, label, count))}
        if not found:
            said.append(f"{count} threads: nothing was measured, so the table stays as it is")
            continue
        date = max(lines[label, count][-1]["date"] for label in found)[:10]
        source = {"machine": store.machine, "commit": store.code.removeprefix("commit "), "date": date}
        file = project.work / "tune.json"  # more than an argument holds
        file.write_text(json.dumps(found), encoding="utf-8")
        request = {"times": str(file), "threads": count, **source}
        with measure.interruptible(lambda: "the measurements are kept, and the same command writes the table"):
            for event in suite.ask(project, "table", request, console):
                far += [(label, count) for label in event["far"]]
                near = 1 - len(event["far"]) / event["problems"]
                what = f"{event['table']}, {count} thread{'s' * (count > 1)}: {event['problems']} problems"
                said.append(f"{what}; picked by the others alone, {near:.0%} get one within 10 % of the fastest")
                for rule, (of, slower, much) in sorted(event["rules"].items()):
                    said.append(f"  by rule, {rule}: cpu.torch is faster on {slower} of {of}, by more than 10 % on {much}")
    return said, far


def _settings(project: Project) -> dict[str, Any]:
    path = project.benchmarks / "tune.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise click.ClickException(f"this suite has nothing to tune: {path.parent.name}/{path.name} is not there") from None
    except ValueError as error:
        raise click.ClickException(f"{path.parent.name}/{path.name} cannot be read: {error}") from None


def _times(times: Times, label: str, threads: int) -> dict[str, float]:
    """Seconds of each contender that has a time: by the median of how many times the first one's it is in each process."""
    found = {name: times.cell(label, threads, name).median for name in times.names(label, threads)}
    timed = [name for name, time in found.items() if not math.isnan(time) and not name.endswith(goals.PACKED)]
    ratios = {name: times.ratio(label, threads, timed[0], name) for name in timed}
    return {name: found[timed[0]] / ratio for name, ratio in ratios.items() if not math.isnan(ratio)}
